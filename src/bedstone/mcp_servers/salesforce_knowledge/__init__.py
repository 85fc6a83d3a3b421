"""The salesforce_knowledge toolset as a server of its own."""
