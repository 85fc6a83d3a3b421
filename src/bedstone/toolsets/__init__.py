"""The contracts, one folder each."""

__all__ = ["BUILTIN_TOOLSETS", "HIDDEN_TOOLSETS"]

BUILTIN_TOOLSETS = {
    "knowledge": "bedstone.toolsets.knowledge.toolset:KnowledgeToolset",
    "docs": "bedstone.toolsets.docs.toolset:DocsToolset",
    "kb": "bedstone.toolsets.kb.toolset:KbToolset",
    "salesforce_knowledge": "bedstone.toolsets.salesforce_knowledge.toolset:SalesforceKnowledgeToolset",
    "salesforce_graph": "bedstone.toolsets.salesforce_graph.toolset:SalesforceGraphToolset",
}

# Can be asked for by name, and are never offered.
HIDDEN_TOOLSETS = {
    "conformance": "bedstone.toolsets.conformance.toolset:ConformanceToolset",
}
