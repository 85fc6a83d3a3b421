"""The kb toolset, declared."""

from bedstone.toolkit import ToolsetSpec

SPEC = ToolsetSpec(
    "kb",
    "bedstone.toolsets.kb.toolset:KbToolset",
    is_configured=lambda settings: settings.kb.file_path is not None,
    service="bedstone.services.text_file:open_text_file",
)
