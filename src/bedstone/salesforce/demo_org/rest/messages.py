"""Requests and responses of the REST API."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bedstone.salesforce.demo_org.errors import ApiError

FIRST_ERROR_STATUS = 400


@dataclass(frozen=True)
class Request:
    """A request; header names are in lower case."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None

    def json_object(self) -> Mapping[str, Any]:
        """Return the body, which must be a JSON object."""
        if not isinstance(self.body, dict):
            raise ApiError(
                "JSON_PARSER_ERROR", "The HTTP entity body is required, but this request has no JSON object in it."
            )
        return self.body

    def names(self, parameter: str) -> list[str]:
        """Return the names in a parameter, which are separated by commas."""
        return [name for name in self.query.get(parameter, "").split(",") if name]


@dataclass(frozen=True)
class Response:
    """A response; None means no body."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_error(self) -> bool:
        """Whether the status says that the request failed."""
        return self.status >= FIRST_ERROR_STATUS
