"""Schemas of Salesforce orgs: kept, searched, validated against."""
