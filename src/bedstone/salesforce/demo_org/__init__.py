"""The demo org: a small, faithful Salesforce REST server for demonstrations and tests."""
