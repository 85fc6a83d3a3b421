"""Rules about WITH, and about objects of the Tooling API."""

from bedstone.salesforce.soql.tree import DataCategories, Query, With
from bedstone.salesforce.validation.findings import Finding
from bedstone.salesforce.validation.query_facts import filters_on, is_bare_count, iter_terms
from bedstone.salesforce.validation.rule import Site, broken_by, corrected_to, rule

MAX_CATEGORIES = 3
APEX_OPTIONS = frozenset({"security_enforced", "user_mode", "system_mode"})
REST_OPTIONS = frozenset({"recordvisibilitycontext", "userid"})


@rule(
    "WITH_CATEGORY",
    "WITH DATA CATEGORY needs a filter on PublishStatus (or Id), and names at most three groups, each once.",
)
@broken_by("SELECT Id FROM Knowledge__kav WITH DATA CATEGORY Products__c AT Bikes__c")
@corrected_to("SELECT Id FROM Knowledge__kav WHERE PublishStatus = 'Online' WITH DATA CATEGORY Products__c AT Bikes__c")
def with_category(option: With, at: Site) -> Finding | None:
    if isinstance(option, DataCategories):
        groups = [selection.group.lower() for selection in option.selections]
        name = at.scope.root.name
        is_article = name.endswith("__kav") or name == "KnowledgeArticleVersion"
        fits = is_article and len(groups) <= MAX_CATEGORIES and len(set(groups)) == len(groups)
        if not fits or not filters_on(at.query.where, ("PublishStatus", "Id")):
            message = (
                "WITH DATA CATEGORY needs a filter on PublishStatus (or Id), only AND, each group once, at most 3."
            )
            return Finding(message, option.span)
    return None


@rule("APEX_ONLY", "WITH SECURITY_ENFORCED, USER_MODE and SYSTEM_MODE have an effect only in Apex.", severity="warning")
@broken_by("SELECT Id FROM Account WITH SECURITY_ENFORCED LIMIT 1")
@corrected_to("SELECT Id FROM Account LIMIT 1")
def with_apex(option: With, _at: Site) -> Finding | None:
    if not isinstance(option, DataCategories) and option.name.lower() in APEX_OPTIONS:
        message = f'"WITH {option.name}" only works in Apex (it checks the user\'s rights). Remove it.'
        return Finding(message, option.span)
    return None


@rule("WITH_UNKNOWN", "WITH names an option that the API knows.")
@broken_by("SELECT Id FROM Account WITH FASTER LIMIT 1")
@corrected_to("SELECT Id FROM Account LIMIT 1")
def with_unknown(option: With, _at: Site) -> Finding | None:
    if not isinstance(option, DataCategories) and option.name.lower() not in REST_OPTIONS:
        return Finding(f'"WITH {option.name}" is not known.', option.span)
    return None


@rule("TOOLING_LIMITS", "Objects of the Tooling API have no COUNT(), GROUP BY, LIMIT, OFFSET or OR.")
@broken_by("SELECT COUNT() FROM EntityDefinition")
@corrected_to("SELECT Id FROM EntityDefinition")
def tooling_limits(query: Query, at: Site) -> Finding | None:
    return Finding(f"{at.clause} is not supported on {at.scope.root.name}.", query.span)


WITH = (with_category, with_apex, with_unknown)


def tooling_clauses(query: Query) -> list[str]:
    """Return what a query uses although an object of the Tooling API does not support it."""
    parts = {
        "COUNT()": is_bare_count(query),
        "GROUP BY": query.group_by,
        "LIMIT": query.limit,
        "OFFSET": query.offset,
        "OR": query.where is not None and any(junction == "OR" for _, junction in iter_terms(query.where)),
    }
    return [word for word, part in parts.items() if part]
