"""The router: finds the handler of a request, and answers every error as an org does."""

import logging
import re
import sqlite3
from urllib.parse import unquote

from bedstone.errors import BedstoneError
from bedstone.salesforce.demo_org.errors import ApiError, not_found
from bedstone.salesforce.demo_org.org import DemoOrg
from bedstone.salesforce.demo_org.rest.composite import CompositeRoutes
from bedstone.salesforce.demo_org.rest.knowledge import KnowledgeRoutes
from bedstone.salesforce.demo_org.rest.messages import Request, Response
from bedstone.salesforce.demo_org.rest.metadata import MetadataRoutes
from bedstone.salesforce.demo_org.rest.queries import QueryRoutes
from bedstone.salesforce.demo_org.rest.records import RecordRoutes
from bedstone.salesforce.demo_org.rest.routes import ApiState, Handler
from bedstone.salesforce.demo_org.rest.searches import SearchRoutes

logger = logging.getLogger(__name__)

FIRST_VERSION = 31
LAST_VERSION = 68
SEASONS = ("Spring", "Summer", "Winter")
VERSION = re.compile(r"v(\d+)\.0")


class RestApi:
    """Everything below /services/data, for a user who is logged in."""

    def __init__(self, org: DemoOrg) -> None:
        self.state = ApiState(org)
        groups = (
            MetadataRoutes(self.state),
            QueryRoutes(self.state),
            SearchRoutes(self.state),
            RecordRoutes(self.state),
            CompositeRoutes(self.state, self.handle),
            KnowledgeRoutes(self.state),
        )
        self._routes: list[tuple[str, re.Pattern[str], Handler]] = [
            (method, re.compile(pattern), handler) for group in groups for method, pattern, handler in group.routes()
        ]

    def versions(self) -> list[dict[str, str]]:
        """Return the versions of the API, which need no login."""
        return [
            {
                "label": f"{SEASONS[number % 3]} '{14 + (number - 29) // 3}",
                "url": f"/services/data/v{number}.0",
                "version": f"{number}.0",
            }
            for number in range(FIRST_VERSION, LAST_VERSION + 1)
        ]

    def handle(self, request: Request) -> Response:
        """Answer a request below /services/data."""
        version, _, path = request.path.removeprefix("/services/data/").strip("/").partition("/")
        found = VERSION.fullmatch(version)
        if not found or int(found[1]) > LAST_VERSION:
            return _error_response(not_found(), request)
        if int(found[1]) < FIRST_VERSION:
            return Response(410, [{"errorCode": "UNSUPPORTED_API_VERSION", "message": "This version is retired"}])
        for method, pattern, handler in self._routes:
            if method == request.method and (match := pattern.fullmatch(path)):
                return _call(handler, request, f"/services/data/{version}", match)
        allowed = [method for method, pattern, _ in self._routes if pattern.fullmatch(path)]
        if not allowed:
            return _error_response(not_found(), request)
        message = f"HTTP Method '{request.method}' not allowed. Allowed are {', '.join(allowed)}"
        return Response(405, [{"errorCode": "METHOD_NOT_ALLOWED", "message": message}])


def _call(handler: Handler, request: Request, base: str, match: "re.Match[str]") -> Response:
    try:
        return handler(request, base, **{key: unquote(value) for key, value in match.groupdict().items()})
    except ApiError as error:
        return _error_response(error, request)
    except BedstoneError as error:
        return _error_response(ApiError("INVALID_SEARCH", error.message), request)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        message = f"The request cannot be read: {type(error).__name__}"
        return _error_response(ApiError("JSON_PARSER_ERROR", message), request)
    except (sqlite3.Error, OverflowError) as error:
        logger.warning("Request failed: %s", error, extra={"action": "request_failed"})
        return _error_response(ApiError("QUERY_TOO_COMPLICATED", "The request is too complicated"), request)


def _error_response(error: ApiError, request: Request) -> Response:
    return Response(error.status, error.body(request.query.get("q", "").strip() or None))
