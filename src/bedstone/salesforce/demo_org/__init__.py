"""The demo org: a Salesforce REST server of our own, small and faithful, for trying things and for tests."""
