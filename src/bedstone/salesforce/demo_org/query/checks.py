"""Checks of a query before it runs: FIELDS(), limits, WITH options, required filters."""

from dataclasses import replace

from bedstone.salesforce.demo_org.errors import ApiError, malformed_query
from bedstone.salesforce.demo_org.schema import ObjectType
from bedstone.salesforce.soql.tree import (
    And,
    Call,
    Column,
    Comparison,
    Condition,
    DataCategories,
    Membership,
    Number,
    Path,
    Query,
    With,
)

MAX_FIELDS_ROWS = 200
MAX_OFFSET = 2_000
MAX_LIMIT = 2**31 - 1
MAX_CATEGORY_GROUPS = 3
AGGREGATES = frozenset({"count", "count_distinct", "sum", "avg", "min", "max", "grouping"})
OPTIONS = frozenset({"SECURITY_ENFORCED", "USER_MODE", "SYSTEM_MODE"})
FIELDS_KINDS = {"all": (True, False), "custom": (True,), "standard": (False,)}  # whether a field is custom


def is_aggregate(query: Query) -> bool:
    """Return whether the answer has groups instead of records."""
    return query.group_by is not None or any(
        isinstance(column.expression, Call) and _calls_aggregate(column.expression) for column in query.columns
    )


def _calls_aggregate(call: Call) -> bool:
    if call.name.lower() in AGGREGATES:
        return True
    return any(isinstance(item, Call) and _calls_aggregate(item) for item in call.arguments)


def expand_fields(query: Query, root: ObjectType) -> Query:
    """Replace FIELDS(...) by the fields it stands for."""
    columns: list[Column] = []
    for column in query.columns:
        call = column.expression
        if isinstance(call, Call) and call.name.lower() == "fields":
            columns += _fields_columns(call, query, root)
        else:
            columns.append(column)
    return replace(query, columns=tuple(columns))


def _fields_columns(call: Call, query: Query, root: ObjectType) -> list[Column]:
    kind = call.arguments[0].name.lower() if call.arguments and isinstance(call.arguments[0], Path) else ""
    limit = query.limit.value if isinstance(query.limit, Number) else None
    is_bounded = (limit is not None and limit <= MAX_FIELDS_ROWS) or _names_few_ids(query.where)
    if kind in ("all", "custom") and not is_bounded:
        raise malformed_query("The SOQL FIELDS function must have a LIMIT of at most 200", call.span[0])
    wanted = FIELDS_KINDS.get(kind)
    if wanted is None:
        raise malformed_query(f"unexpected token: '{kind}'", call.span[0])
    names = [item.name for item in root.fields if item.is_custom in wanted]
    if not names:
        raise malformed_query(
            "'FIELDS(...)' expansion function must result in at least one field being selected.", call.span[0]
        )
    return [Column(Path((name,), call.span), None, call.span) for name in names]


def _names_few_ids(condition: Condition | None) -> bool:
    """Return whether a condition selects at most 200 records by their ids."""
    match condition:
        case And(terms):
            return any(_names_few_ids(term) for term in terms)
        case Comparison(Path((name,)), "="):
            return name.lower() == "id"
        case Membership(Path((name,)), tuple() as values, negated=False):
            return name.lower() == "id" and len(values) <= MAX_FIELDS_ROWS
    return False


def check_query(query: Query, root: ObjectType, depth: int) -> None:
    """Raise the error an org gives for limits, scopes, filters and options it does not allow."""
    _check_limits(query)
    if depth and query.sources[0].using:
        raise malformed_query("USING SCOPE is not allowed in a child subquery", query.sources[0].span[0])
    needs_filter = root.name == "ContentDocumentLink" and not depth
    if needs_filter and not _has_filter(query, ("id", "contentdocumentid", "linkedentityid"), is_exact=True):
        raise malformed_query(
            "Implementation restriction: ContentDocumentLink requires a filter by a single Id on ContentDocumentId "
            "or LinkedEntityId using the equals operator or multiple Id's using the IN operator."
        )
    for option in query.options:
        _check_option(option, query, root)


def _check_limits(query: Query) -> None:
    offset = query.offset.value if isinstance(query.offset, Number) else 0
    if offset > MAX_OFFSET:
        raise ApiError("NUMBER_OUTSIDE_VALID_RANGE", "Maximum SOQL offset allowed is 2000")
    if any(isinstance(part, Number) and part.value < 0 for part in (query.limit, query.offset)):
        raise malformed_query("unexpected token: '-'")
    if isinstance(query.limit, Number) and query.limit.value > MAX_LIMIT:
        raise malformed_query(f"unexpected token: '{query.limit.written[:20]}'", query.limit.span[0])


def _check_option(option: With, query: Query, root: ObjectType) -> None:
    if not isinstance(option, DataCategories):
        if option.name.upper() not in OPTIONS:
            raise malformed_query(f"unexpected token: '{option.name}'", option.span[0])
        return
    if root.feature is None:
        raise malformed_query("unexpected token: 'DATA'", option.span[0])
    groups = [selection.group.lower() for selection in option.selections]
    if len(groups) > MAX_CATEGORY_GROUPS or len(set(groups)) < len(groups):
        raise malformed_query("A category group can be named once, and three groups at most", option.span[0])
    if not _has_filter(query, ("publishstatus", "id")):
        raise malformed_query("A filter on PublishStatus is needed with data categories", option.span[0])


def _has_filter(query: Query, names: tuple[str, ...], *, is_exact: bool = False) -> bool:
    terms = query.where.terms if isinstance(query.where, And) else (query.where,)
    return any(
        isinstance(term, Comparison | Membership)
        and isinstance(term.left, Path)
        and term.left.parts[-1].lower() in names
        and (not is_exact or _is_equality(term))
        for term in terms
    )


def _is_equality(term: Comparison | Membership) -> bool:
    if isinstance(term, Comparison):
        return term.operator == "="
    return not term.negated and isinstance(term.values, tuple)
