"""The contracts, one folder each; the table of their names."""

from bedstone.extensions import Kind
from bedstone.toolkit import Toolset, ToolsetSpec

__all__ = ["TOOLSETS", "toolset_spec"]

TOOLSETS: Kind[ToolsetSpec | type[Toolset]] = Kind(
    "toolsets",
    {
        "everything": "bedstone.toolsets.everything.spec:SPEC",
        "knowledge": "bedstone.toolsets.knowledge.spec:SPEC",
        "docs": "bedstone.toolsets.docs.spec:SPEC",
        "kb": "bedstone.toolsets.kb.spec:SPEC",
        "salesforce_knowledge": "bedstone.toolsets.salesforce_knowledge.spec:SPEC",
        "salesforce_graph": "bedstone.toolsets.salesforce_graph.spec:SPEC",
    },
    hidden={"conformance": "bedstone.toolsets.conformance.toolset:ConformanceToolset"},
)


def toolset_spec(label: str) -> ToolsetSpec:
    """Return the declaration of a toolset; a bare class from another package is one without service or pages."""
    found = TOOLSETS.load(label)
    return found if isinstance(found, ToolsetSpec) else ToolsetSpec(label, found)
