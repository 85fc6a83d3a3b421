"""The salesforce_graph toolset as a server of its own."""
