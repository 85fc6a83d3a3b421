"""Errors of the service over schemas."""

from typing import Any

from bedstone.errors import InvalidInput, NotFound, Unavailable
from bedstone.salesforce.validation import Report


class OrgNotFound(NotFound):
    """No org has that id or name."""


class NotSynced(Unavailable):
    """The schema of the org has not been synced yet."""


class InvalidQuery(InvalidInput):
    """A query does not validate; the details hold every finding and the corrected query."""

    @classmethod
    def of(cls, report: Report, parameter: str, salesforce: Any = None) -> "InvalidQuery":
        """Return the error for a report: the first finding is its message; `salesforce` is what the org answered."""
        wrong = [item for item in report.messages if item.type == "error"]
        messages = [
            {"code": item.code, "message": item.message, "line": item.line, "column": item.column} for item in wrong
        ]
        return cls(
            wrong[0].message,
            parameter=parameter,
            messages=messages,
            correctedQuery=report.corrected,
            salesforce=salesforce,
        )


class UnknownName(NotFound):
    """The org has no such object or field."""
