"""An org's schema for agents: objects, fields, relationships, SOQL that holds, values that exist."""
