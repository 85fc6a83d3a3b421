"""The schema of an org: objects, one object among its neighbours, the way between two."""
