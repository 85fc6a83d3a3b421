"""Schemas of Salesforce orgs: synced, searched, and used to understand what people ask for."""
