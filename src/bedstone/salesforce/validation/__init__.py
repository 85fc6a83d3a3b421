"""SOQL held against a schema: what is wrong, where, and how it should be written."""

from bedstone.salesforce.validation.findings import Finding, Report
from bedstone.salesforce.validation.validator import validate

__all__ = ["Finding", "Report", "validate"]
