"""What a query's tree says by itself, whatever the schema."""

from collections.abc import Iterator

from bedstone.salesforce.soql.tree import And, Call, Choice, Comparison, Condition, Membership, Not, Or, Path, Query

MOST_FIELDS_ROWS = 200  # what FIELDS(ALL) may bring
AGGREGATES = frozenset({"count", "count_distinct", "sum", "avg", "min", "max"})


def terms_of(condition: Condition, joint: str = "") -> Iterator[tuple[Comparison | Membership | Choice, str]]:
    """Every comparison, and whether it stands under OR or NOT."""
    match condition:
        case And(terms):
            for term in terms:
                yield from terms_of(term, joint)
        case Or(terms):
            for term in terms:
                yield from terms_of(term, "OR")
        case Not(term):
            yield from terms_of(term, joint or "NOT")
        case _:
            yield condition, joint


def has_aggregate(expression: object) -> bool:
    """Whether an expression is an aggregate, or holds one."""
    if not isinstance(expression, Call):
        return False
    return expression.name.lower() in AGGREGATES or any(has_aggregate(item) for item in expression.arguments)


def is_bare_count(query: Query) -> bool:
    """Whether a query selects COUNT() and nothing else."""
    only = query.columns[0].expression
    return len(query.columns) == 1 and isinstance(only, Call) and only.name.lower() == "count" and not only.arguments


def is_plain(expression: object) -> bool:
    """Whether an expression is a field without a dot."""
    return isinstance(expression, Path) and len(expression.parts) == 1


def filters_on(condition: Condition | None, names: tuple[str, ...], *, exactly: bool = False) -> bool:
    """Whether a condition asks for one of some fields; exactly: by equality or a list."""
    if condition is None:
        return False
    wanted = {name.lower() for name in names}

    def is_exact(term: Comparison | Membership | Choice) -> bool:
        if isinstance(term, Comparison):
            return term.operator == "="
        return isinstance(term, Membership) and not term.negated and isinstance(term.values, tuple)

    return any(
        isinstance(term.left, Path)
        and (term.left.name.lower() in wanted or term.left.parts[-1].lower() in wanted)
        and (not exactly or is_exact(term))
        for term, joint in terms_of(condition)
        if not joint
    )


def names_few_ids(condition: Condition | None) -> bool:
    """Whether a condition leaves at most 200 records, by their ids."""
    if condition is None:
        return False
    for term, joint in terms_of(condition):
        if joint or not (isinstance(term.left, Path) and term.left.name.lower() == "id"):
            continue
        if isinstance(term, Comparison) and term.operator == "=":
            return True
        if isinstance(term, Membership) and not term.negated and isinstance(term.values, tuple):
            return len(term.values) <= MOST_FIELDS_ROWS
    return False
