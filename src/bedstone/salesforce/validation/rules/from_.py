"""Rules about FROM and USING SCOPE."""

from itertools import product

from bedstone.salesforce.graph.names import join_names
from bedstone.salesforce.soql.tree import Query, Source, Using
from bedstone.salesforce.validation.findings import Finding
from bedstone.salesforce.validation.rule import Site, broken_by, corrected_to, not_correctable, rule

MAX_PARENTS = 55
MANY_USERS = [".".join(path) for path in product(("CreatedBy", "LastModifiedBy", "Manager"), repeat=4)]


@rule("OBJECT_NOT_QUERYABLE", "The object can be queried.", stops=False)
@broken_by("SELECT Id FROM AccountChangeEvent LIMIT 1")
@not_correctable("Events are delivered to subscribers and not stored.")
def object_not_queryable(source: Source, at: Site) -> Finding | None:
    if not at.scope.root.queryable:
        return Finding(f'Object "{at.scope.root.name}" cannot be queried.', source.path.span)
    return None


@rule("SCOPE_UNKNOWN", "USING SCOPE names a scope of the object, and stands only in the outer query.")
@broken_by("SELECT Id FROM Account USING SCOPE yours LIMIT 1")
@corrected_to("SELECT Id FROM Account USING SCOPE mine LIMIT 1")
def scope_unknown(using: Using, at: Site) -> Finding | None:
    scopes = at.scope.root.scopes
    if at.depth:
        return Finding("USING SCOPE is not allowed in a child subquery.", using.span)
    if using.kind != "SCOPE" or (scopes and using.name.lower() not in map(str.lower, scopes)):
        known = join_names(scopes) or "none"
        message = f'Scope "{using.name}" is not supported by {at.scope.root.name}. Supported: {known}.'
        return Finding(message, using.span)
    return None


@rule("TOO_MANY_PARENTS", "A query uses at most 55 parent relationships.")
@broken_by(f"SELECT {', '.join(f'Owner.{path}.Name' for path in MANY_USERS)} FROM Account LIMIT 1")  # noqa: S608 - an example
@not_correctable("Split the columns over two queries.")
def too_many_parents(query: Query, at: Site) -> Finding | None:
    if len(at.scope.parents) > MAX_PARENTS:
        message = f"{len(at.scope.parents)} parent relationships; {MAX_PARENTS} is the maximum."
        return Finding(message, query.span, clause="SELECT")
    return None
