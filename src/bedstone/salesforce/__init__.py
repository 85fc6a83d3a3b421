"""Salesforce: its query languages, a client, and an org of our own to try them on."""
