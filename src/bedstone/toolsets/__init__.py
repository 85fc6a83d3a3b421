"""The contracts, one folder each."""

__all__ = ["BUILTIN_TOOLSETS"]

BUILTIN_TOOLSETS = {
    "kb": "bedstone.toolsets.kb.toolset:KbToolset",
    "conformance": "bedstone.toolsets.conformance.toolset:ConformanceToolset",
}
