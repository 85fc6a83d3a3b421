"""Salesforce: its query languages, a client, and a demo org to try them on."""
