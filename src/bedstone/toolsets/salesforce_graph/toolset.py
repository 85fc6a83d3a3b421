"""The salesforce_graph toolset: fifteen tools, and every object as a resource."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote, unquote

from anyio import to_thread

from bedstone.errors import BedstoneError, InvalidInput, UnknownResource
from bedstone.toolkit import Reply, Resource, ResourceContents, ResourceTemplate, Tool
from bedstone.toolsets.salesforce_graph.grounding_tools import GroundingTools
from bedstone.toolsets.salesforce_graph.schema_tools import SchemaTools
from bedstone.toolsets.salesforce_graph.soql_tools import SoqlTools

if TYPE_CHECKING:  # the engine is imported when it is first asked, not when the server starts
    from bedstone.library.schema.service import GraphService

logger = logging.getLogger(__name__)

ADDRESS = "salesforce://object/"
MOST_COMPLETIONS = 100
ORDER = (
    *("list-objects", "get-object", "find-object", "generate-soql", "validate-soql", "mediate-query-intent"),
    *("resolve-entity", "get-filter-recommendation", "execute-soql", "explore-relationships", "find-related-objects"),
    *("generate-sample-data", "semantic-search", "ground-entity", "get-schema-category"),
)
CODES = frozenset(
    {
        "NOT_FOUND",
        "INVALID_INPUT",
        "NOT_SYNCED",
        "AUTH_ERROR",
        "PERMISSION_DENIED",
        "RATE_LIMIT_EXCEEDED",
        "SF_API_ERROR",
    }
)


class SalesforceGraphToolset(SchemaTools, SoqlTools, GroundingTools):
    """Serves the schemas of orgs."""

    label = "salesforce_graph"
    title = "Salesforce schema"
    server_name = "sf-graph"
    plain_initialize: ClassVar[Mapping[str, Any] | None] = {
        "capabilities": {"resources": {"subscribe": False, "listChanged": False}}
    }
    instructions = (
        "The schema of the company's Salesforce org. find-object and semantic-search find objects and fields, "
        "get-object shows one, explore-relationships how two hang together. validate-soql checks a query before "
        "execute-soql runs it; ground-entity and get-filter-recommendation turn what people say into filters."
    )

    def __init__(
        self,
        make_service: "Callable[[], GraphService]",
        *,
        sync_minutes: int = 0,
        more_tools: Collection[str] = (),
        categories: Mapping[str, str] | None = None,
        read_only: bool = False,
    ) -> None:
        super().__init__(read_only=read_only)
        self._make_service = make_service
        self._made: GraphService | None = None
        self._sync_minutes = sync_minutes
        self._more_tools = frozenset(more_tools)
        self._given_categories = dict(categories or {})

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[object]:
        """Keep the schema in step, if that is wanted; let go of connections at the end."""
        syncing = asyncio.create_task(self._keep_in_step()) if self._sync_minutes and not self._read_only else None
        try:
            yield self
        finally:
            if syncing is not None:
                syncing.cancel()
                await asyncio.wait([syncing])
            if self._made is not None:
                await self._made.close()
                self._made = None

    @cached_property
    def tools(self) -> Mapping[str, Tool]:
        """The contract's tools in its order, and the further ones somebody asked for."""
        declared = super().tools
        more = [name for name in declared if name not in ORDER]
        chosen = more if "all" in self._more_tools else [name for name in more if name in self._more_tools]
        return {name: declared[name] for name in (*ORDER, *chosen)}

    def render_error(self, error: BedstoneError) -> Reply:
        """The envelope and codes of this contract."""
        details: Any = error.details.get("details")
        if isinstance(error, InvalidInput):
            named = {key: value for key, value in error.details.items() if key != "parameter" and value is not None}
            details = {"field": error.details.get("parameter"), **named}
        code = error.code if error.code in CODES else _code(error)
        return Reply({"error": {"code": code, "message": error.message, "details": details}}, is_error=True)

    # Resources

    def resources(self) -> Sequence[Resource]:
        """Every object of the org that is asked by default."""
        try:
            org = self._service.graph_now()
        except BedstoneError:  # nothing is synced yet
            return ()
        return [
            Resource(f"{ADDRESS}{item.name}", item.name, f"Salesforce {item.label} object", "application/json")
            for item in org.graph.objects.values()
        ]

    def resource_templates(self) -> Sequence[ResourceTemplate]:
        """Any object by its name."""
        return [
            ResourceTemplate(
                f"{ADDRESS}{{objectApiName}}",
                "Salesforce Object",
                "Access metadata for a specific Salesforce object",
                "application/json",
            )
        ]

    async def read_resource(self, uri: str) -> ResourceContents:
        """An object as get-object gives it."""
        from bedstone.toolsets.salesforce_graph.views import object_details  # noqa: PLC0415

        name = unquote(uri.removeprefix(ADDRESS))
        if not uri.startswith(ADDRESS) or not name:
            raise UnknownResource("Resource not found", uri=uri)
        try:
            org = await self._org(None)
        except BedstoneError as error:
            raise UnknownResource(f"Resource not found: {error.message}", uri=uri) from None
        item = org.graph.get(name)
        if item is None:
            raise UnknownResource("Resource not found", uri=uri)
        details = await to_thread.run_sync(object_details, item, org.graph)
        return ResourceContents(
            f"{ADDRESS}{quote(item.name)}", details.model_dump_json(by_alias=True), "application/json"
        )

    async def complete(self, subject: str, argument: str, value: str) -> Sequence[str]:
        """Names of objects that begin so."""
        if subject != f"{ADDRESS}{{objectApiName}}" or argument != "objectApiName":
            return ()
        org = await self._org(None)
        names = (item.name for item in org.graph.objects.values())
        return [name for name in names if name.lower().startswith(value.lower())][:MOST_COMPLETIONS]

    @property
    def _service(self) -> "GraphService":
        if self._made is None:
            self._made = self._make_service()
        return self._made

    @property
    def _categories(self) -> dict[str, str]:
        return self._given_categories

    async def _keep_in_step(self) -> None:
        while True:
            await asyncio.sleep(1)  # an org that starts with us listens by then
            try:
                report = await self._service.sync()
                logger.info(
                    "Schema synced: %d objects, %d changed, %d removed, %d could not be read",
                    report.objects,
                    report.changed,
                    report.removed,
                    report.failed,
                    extra={"action": "schema_synced"},
                )
                await to_thread.run_sync(self._service.make_vectors)
            except BedstoneError as error:
                logger.warning("The schema could not be synced: %s", error.message, extra={"action": "not_synced"})
            except Exception:  # the next time may be better
                logger.exception("The schema could not be synced", extra={"action": "not_synced"})
            await asyncio.sleep(self._sync_minutes * 60)


def _code(error: BedstoneError) -> str:
    if isinstance(error, InvalidInput):
        return "INVALID_INPUT"
    return "AUTH_ERROR" if error.code == "unknown_org" else "SF_API_ERROR"
