"""The salesforce_graph toolset: fifteen tools, and every object as a resource."""

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote, unquote

from anyio import to_thread

from bedstone.errors import BedstoneError, UnknownResource
from bedstone.toolkit import Reply, Resource, ResourceContents, ResourceTemplate, Tool, ToolsetContext
from bedstone.toolkit.error_envelope import render_error_envelope
from bedstone.toolsets.salesforce_graph.grounding_tools import GroundingTools
from bedstone.toolsets.salesforce_graph.schema_tools import SchemaTools
from bedstone.toolsets.salesforce_graph.soql_tools import SoqlTools

if TYPE_CHECKING:  # the engine is imported on first use, not when a server starts
    from bedstone.services.schema.service import SchemaService
    from bedstone.services.service import Handle

URI_PREFIX = "salesforce://object/"
MAX_COMPLETIONS = 100
TOOL_ORDER = (
    *("list-objects", "get-object", "find-object", "generate-soql", "validate-soql", "mediate-query-intent"),
    *("resolve-entity", "get-filter-recommendation", "execute-soql", "explore-relationships", "find-related-objects"),
    *("generate-sample-data", "semantic-search", "ground-entity", "get-schema-category"),
)
ERROR_CODES = {  # by the code of an error class, or of its nearest base class
    "invalid_input": "INVALID_INPUT",
    "org_not_found": "NOT_FOUND",
    "object_not_found": "NOT_FOUND",
    "record_not_found": "NOT_FOUND",
    "not_synced": "NOT_SYNCED",
    "unknown_org": "AUTH_ERROR",
    "auth_error": "AUTH_ERROR",
    "permission_denied": "PERMISSION_DENIED",
    "limit_exceeded": "RATE_LIMIT_EXCEEDED",
}


class SalesforceGraphToolset(SchemaTools, SoqlTools, GroundingTools):
    """Serves the schemas of orgs."""

    label = "salesforce_graph"
    title = "Schema"
    server_name = "sf-graph"
    plain_initialize: ClassVar[Mapping[str, Any] | None] = {
        "capabilities": {"resources": {"subscribe": False, "listChanged": False}}
    }
    instructions = (
        "The schema of the company's Salesforce org. find-object and semantic-search find objects and fields, "
        "get-object shows one, explore-relationships finds paths between two. validate-soql checks a query before "
        "execute-soql runs it; ground-entity and get-filter-recommendation turn phrases into filters."
    )

    def __init__(
        self,
        schemas: "Handle[SchemaService]",
        *,
        more_tools: Collection[str] = (),
        categories: Mapping[str, str] | None = None,
        read_only: bool = False,
    ) -> None:
        super().__init__(schemas, categories or {}, read_only=read_only)
        self._more_tools = frozenset(more_tools)

    @classmethod
    def build(cls, context: ToolsetContext) -> "SalesforceGraphToolset":
        """Serve the schemas of every known org."""
        assert context.service is not None
        options = context.settings.salesforce
        return cls(
            context.service, more_tools=options.more_tools, categories=options.categories, read_only=context.read_only
        )

    @cached_property
    def tools(self) -> Mapping[str, Tool]:
        """Return the tools of the contract in its order, then the additional ones that are configured."""
        declared = super().tools
        others = [name for name in declared if name not in TOOL_ORDER]
        chosen = others if "all" in self._more_tools else [name for name in others if name in self._more_tools]
        return {name: declared[name] for name in (*TOOL_ORDER, *chosen)}

    def render_error(self, error: BedstoneError) -> Reply:
        """Render an error in the envelope of this contract."""
        return render_error_envelope(error, ERROR_CODES, "SF_API_ERROR")

    # Resources

    async def resources(self) -> Sequence[Resource]:
        """List the objects of the default org."""
        try:
            org = await self._org(None)
        except BedstoneError:  # no schema is synced yet
            return ()
        return [
            Resource(f"{URI_PREFIX}{item.name}", item.name, f"Salesforce {item.label} object", "application/json")
            for item in org.graph.objects.values()
        ]

    def resource_templates(self) -> Sequence[ResourceTemplate]:
        """Return the template for an object by its name."""
        return [
            ResourceTemplate(
                f"{URI_PREFIX}{{objectApiName}}",
                "Salesforce Object",
                "Access metadata for a specific Salesforce object",
                "application/json",
            )
        ]

    async def read_resource(self, uri: str) -> ResourceContents:
        """Return an object as JSON, as get-object does."""
        from bedstone.toolsets.salesforce_graph.views import object_details  # noqa: PLC0415

        name = unquote(uri.removeprefix(URI_PREFIX))
        if not uri.startswith(URI_PREFIX) or not name:
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
            f"{URI_PREFIX}{quote(item.name)}", details.model_dump_json(by_alias=True), "application/json"
        )

    async def complete(self, subject: str, argument: str, value: str) -> Sequence[str]:
        """Complete the name of an object."""
        if subject != f"{URI_PREFIX}{{objectApiName}}" or argument != "objectApiName":
            return ()
        org = await self._org(None)
        names = (item.name for item in org.graph.objects.values())
        return [name for name in names if name.lower().startswith(value.lower())][:MAX_COMPLETIONS]
