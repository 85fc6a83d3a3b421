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

if TYPE_CHECKING:  # the engine is imported when it is first asked, not when the server starts
    from bedstone.services.schema.service import SchemaService
    from bedstone.services.service import Handle

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
            context.service,
            more_tools=options.more_tools,
            categories=options.categories,
            read_only=context.read_only,
        )

    @cached_property
    def tools(self) -> Mapping[str, Tool]:
        """The contract's tools in its order, and the further ones somebody asked for."""
        declared = super().tools
        more = [name for name in declared if name not in ORDER]
        chosen = more if "all" in self._more_tools else [name for name in more if name in self._more_tools]
        return {name: declared[name] for name in (*ORDER, *chosen)}

    def render_error(self, error: BedstoneError) -> Reply:
        """The envelope and codes of this contract."""
        return render_error_envelope(error, CODES, "SF_API_ERROR")

    # Resources

    async def resources(self) -> Sequence[Resource]:
        """Every object of the org that is asked by default."""
        try:
            org = await self._org(None)
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
