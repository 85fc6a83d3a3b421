"""The salesforce_graph toolset, declared."""

from bedstone.services.orgs import has_org
from bedstone.settings import Settings, layout
from bedstone.toolkit import NavigationItem, ToolsetSpec


def is_configured(settings: Settings) -> bool:
    """Return whether there is an org, or a schema imported from files."""
    return has_org(settings) or any((layout.salesforce(settings) / "schemas").glob("import-*"))


SPEC = ToolsetSpec(
    "salesforce_graph",
    "bedstone.toolsets.salesforce_graph.toolset:SalesforceGraphToolset",
    is_configured=is_configured,
    service="bedstone.services.schema.service:open_schemas",
    starts_at_once=lambda settings: bool(settings.salesforce.sync_minutes) and not settings.read_only,
    pages="bedstone.web.schema.pages:schema_routes",
    source_title="Schema",
    navigation=(
        NavigationItem("salesforce", "/salesforce", "Schema", "schema"),
        NavigationItem("soql", "/salesforce/soql", "SOQL", "soql", "work"),
    ),
)
