"""The knowledge toolset, declared."""

from bedstone.settings import Settings, layout
from bedstone.toolkit import NavigationItem, ToolsetSpec


def has_work(settings: Settings) -> bool:
    """Return whether there may be tasks to resume or folders to watch, or documents whose store was lost."""
    storage = settings.storage
    stored = (layout.knowledge_index(settings) / "knowledge.sqlite", layout.knowledge_documents(settings))
    return bool(storage.watch or storage.database or storage.blobs) or any(path.exists() for path in stored)


SPEC = ToolsetSpec(
    "knowledge",
    "bedstone.toolsets.knowledge.toolset:KnowledgeToolset",
    is_configured=lambda _: True,
    service="bedstone.services.knowledge.opening:open_knowledge",
    starts_at_once=has_work,
    source_title="Documents",
    pages="bedstone.web.documents.list:document_routes",
    navigation=(NavigationItem("documents", "/documents", "Documents", "file"),),
)
