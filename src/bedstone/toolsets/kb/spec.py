"""The kb toolset, declared."""

from bedstone.toolkit import NavigationItem, ToolsetSpec

SPEC = ToolsetSpec(
    "kb",
    "bedstone.toolsets.kb.toolset:KbToolset",
    is_configured=lambda settings: settings.kb.file_path is not None,
    service="bedstone.services.text_file:open_text_file",
    source_title="Knowledge file",
    pages="bedstone.web.knowledge_file.page:knowledge_file_routes",
    navigation=(NavigationItem("kb", "/knowledge-file", "Knowledge file", "note"),),
)
