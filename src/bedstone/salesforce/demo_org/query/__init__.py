"""SOQL over the database of the demo org."""

from bedstone.salesforce.demo_org.query.engine import QueryEngine

__all__ = ["QueryEngine"]
