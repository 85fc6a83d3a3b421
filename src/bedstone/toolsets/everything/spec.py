"""The everything toolset, declared."""

from bedstone.toolkit import ToolsetSpec

SPEC = ToolsetSpec(
    "everything",
    "bedstone.toolsets.everything.toolset:EverythingToolset",
    is_configured=lambda _: True,  # documents always are a source
    service="bedstone.services.everything.service:open_everything",
)
