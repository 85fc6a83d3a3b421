"""What went wrong when an org was asked, in plain words with the next step."""

from dataclasses import dataclass
from typing import Any

from bedstone.toolkit import Reply
from bedstone.web.frame import tool_error

# By the code of the tool, or by Salesforce's code: what happened, and what to do.
EXPLANATIONS: dict[str, tuple[str, str]] = {
    "AUTH_ERROR": (
        "The org rejected the login",
        "Log in again with bedstone salesforce login on the machine that runs Bedstone, then run the query again.",
    ),
    "PERMISSION_DENIED": (
        "The connected user may not read this",
        "Ask an administrator of the org for access, or leave the object out of the query.",
    ),
    "RATE_LIMIT_EXCEEDED": (
        "The org's API calls of the day are used up",
        "Run the query again tomorrow, or ask an administrator of the org for more calls.",
    ),
    "NOT_FOUND": ("There is no such org", "Choose one of the orgs on the Schema page."),
    "NOT_SYNCED": ("The schema is not synced yet", "Sync it on the Schema page, then run the query again."),
    "INVALID_FIELD": (
        "The org does not know a field of the query",
        "Check its name, and whether the connected user may see it. If it is new, sync the schema.",
    ),
    "INVALID_TYPE": (
        "The org does not know the object",
        "Check its name, and whether the connected user may see it. If it is new, sync the schema.",
    ),
    "MALFORMED_QUERY": ("The org cannot read the query", "Change the query where the org points to."),
    "QUERY_TIMEOUT": ("The query took too long", "Add a filter on an indexed field such as Id or CreatedDate."),
    "INVALID_QUERY_LOCATOR": ("The next rows have expired in the org", "Run the query again."),
    "INVALID_INPUT": ("The query is not valid", "Fix the errors below the query, then run it again."),
}
UNANSWERED = ("The org did not answer", "Wait a moment and run the query again.")
FIRST_SERVER_ERROR = 500
REJECTED = ("The org rejected the query", "Change the query as the org says, then run it again.")


@dataclass(frozen=True)
class Problem:
    """A failed run: what happened, in the words of the org, and what to do."""

    title: str
    text: str
    advice: str

    @property
    def is_about_schema(self) -> bool:
        """Return whether the next step is on the page of the schema."""
        return "schema" in self.advice.lower() and self is not IMPORTED


IMPORTED = Problem(
    "No org is connected",
    "This schema was imported from files.",
    "Queries are checked and completed here; to run them, connect the org with bedstone salesforce login.",
)


def describe_problem(reply: Reply) -> Problem:
    """Return what to say about the error of a run."""
    error: Any = reply.payload.get("error") if isinstance(reply.payload, dict) else None
    facts: dict[str, Any] = error if isinstance(error, dict) else {}
    given = facts.get("details")
    details: dict[str, Any] = given if isinstance(given, dict) else {}
    org_code = (details.get("salesforce") or details).get("errorCode")
    is_down = not org_code or int(details.get("status") or 0) >= FIRST_SERVER_ERROR
    known = EXPLANATIONS.get(str(org_code)) or EXPLANATIONS.get(str(facts.get("code")))
    title, advice = known or (UNANSWERED if is_down else REJECTED)
    return Problem(title, tool_error(reply).detail, advice)
