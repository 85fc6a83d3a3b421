"""What the pages about an org share: which org, its schema, its tools, and links that stay with it."""

from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from bedstone.toolkit import Reply
from bedstone.web.frame import Pages, tool_error

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from bedstone.salesforce.graph.model import ObjectSchema
    from bedstone.services.schema.service import OrgSchema, SchemaService
    from bedstone.services.service import Handle
    from bedstone.web.schema.object_list import OrgView

    Endpoint = Callable[[Request], Awaitable[Response]]

HOME = "/salesforce"  # of the default org; any org is below /salesforce/orgs


class UnknownObject(HTTPException):
    """An address names an object that the schema does not have."""

    def __init__(self, name: str, org: "OrgSchema") -> None:
        super().__init__(404, f"No object is called {name}.")
        self.name = name
        self.org = org


class SchemaPage:
    """A page of an org: of the default org at /salesforce, of any org below /salesforce/orgs."""

    key = "salesforce"  # of its navigation item

    def __init__(self, pages: Pages) -> None:
        self.pages = pages
        self.schemas: Handle[SchemaService] = pages.services["salesforce_graph"]
        self._toolset = pages.toolsets["salesforce_graph"]

    @staticmethod
    def org_name(request: Request) -> str | None:
        """Return the org that an address names; None stands for the default org."""
        name: str | None = request.path_params.get("org")
        return name

    def at(self, request: Request) -> str:
        """Return the address of the org's pages."""
        org = self.org_name(request)
        return f"{HOME}/orgs/{quote(org, safe='')}" if org else HOME

    async def org_schema(self, request: Request) -> "OrgSchema":
        """Return the schema of the org that an address names."""
        return await (await self.schemas.open()).org(self.org_name(request))

    async def find_object(self, request: Request) -> "tuple[OrgSchema, ObjectSchema]":
        """Return the object that an address names, with its org."""
        org, name = await self.org_schema(request), request.path_params["name"]
        item = org.graph.get(name)
        if item is None:
            raise UnknownObject(name, org)
        return org, item

    async def call(self, request: Request, tool: str, **arguments: Any) -> Reply:
        """Call a tool about the org that an address names."""
        org = self.org_name(request)
        return await self._toolset.call(tool, arguments | ({"orgId": org} if org else {}))

    async def answer(self, request: Request, tool: str, **arguments: Any) -> Any:
        """Return the answer of a tool, or raise its error."""
        reply = await self.call(request, tool, **arguments)
        if reply.is_error:
            raise tool_error(reply)
        return reply.payload

    def render(self, request: Request, template: str, **context: Any) -> Response:
        """Render a page whose links stay with its org."""
        return self.pages.render(
            request, template, page=self.key, at=self.at(request), org=self.org_name(request), **context
        )


class OrgViews:
    """What pages derive from the schema of each org; derived again after it changed."""

    def __init__(self) -> None:
        self._views: dict[str, OrgView] = {}

    def of(self, org: "OrgSchema") -> "OrgView":
        """Return the view of a schema."""
        from bedstone.web.schema.object_list import OrgView  # noqa: PLC0415 - with the engine

        view = self._views.get(org.name)
        if view is None or view.org is not org:
            view = self._views[org.name] = OrgView(org)
        return view


def change_address(request: Request, **changes: str) -> str:
    """Return the query of an address with other values; what is empty is left out, and so are page numbers."""
    kept = {key: value for key, value in request.query_params.items() if not key.endswith("page")}
    return f"?{urlencode({key: value for key, value in (kept | changes).items() if value})}"


def org_routes(endpoints: "Iterable[tuple[str, str, Endpoint]]") -> list[BaseRoute]:
    """Return the routes of pages, given by method and path below the org: for the default org and for each by name."""
    return [
        Route(f"{prefix}{path}", endpoint, methods=[method])
        for method, path, endpoint in endpoints
        for prefix in (HOME, f"{HOME}/orgs/{{org}}")
    ]
