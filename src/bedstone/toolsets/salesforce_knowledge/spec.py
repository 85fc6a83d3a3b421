"""The salesforce_knowledge toolset, declared."""

from bedstone.services.orgs import has_org
from bedstone.toolkit import NavigationItem, ToolsetSpec

SPEC = ToolsetSpec(
    "salesforce_knowledge",
    "bedstone.toolsets.salesforce_knowledge.toolset:SalesforceKnowledgeToolset",
    is_configured=has_org,
    service="bedstone.services.articles.service:open_articles",
    starts_at_once=lambda settings: bool(settings.salesforce.sync_minutes) and not settings.read_only,
    source_title="Articles",
    pages="bedstone.web.articles.list:article_routes",
    navigation=(NavigationItem("articles", "/salesforce/articles", "Articles", "article"),),
)
