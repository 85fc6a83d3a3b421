"""The docs toolset, declared."""

from bedstone.settings import Settings, layout
from bedstone.toolkit import NavigationItem, ToolsetSpec


def is_configured(settings: Settings) -> bool:
    """Return whether there is an index, a published corpus or a folder to serve."""
    return bool(settings.docs.dir or settings.docs.published or layout.configured_docs_indexes(settings))


SPEC = ToolsetSpec(
    "docs",
    "bedstone.toolsets.docs.toolset:DocsToolset",
    is_configured=is_configured,
    service="bedstone.services.docs.opening:open_docs",
    source_title="Documentation",
    pages="bedstone.web.docs.pages:docs_routes",
    navigation=(NavigationItem("docs", "/docs", "Documentation", "book"),),
)
