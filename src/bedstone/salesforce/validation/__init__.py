"""Check SOQL against a schema: report what is wrong and where, and how to write it."""

from bedstone.salesforce.validation.findings import Message, Report
from bedstone.salesforce.validation.walker import validate

__all__ = ["Message", "Report", "validate"]
