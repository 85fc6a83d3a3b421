"""Questions in plain English to SOQL: by rules, and with reasons."""
