"""What the tree of a query says without a schema."""

from collections.abc import Iterator

from bedstone.salesforce.soql.tree import (
    And,
    Call,
    Choice,
    Comparison,
    Condition,
    Membership,
    Not,
    Or,
    Path,
    Query,
)

MAX_FIELDS_ROWS = 200  # rows that FIELDS(ALL) may return
AGGREGATES = frozenset({"count", "count_distinct", "sum", "avg", "min", "max"})
DATE_FUNCTIONS = frozenset(
    "calendar_month calendar_quarter calendar_year day_in_month day_in_week day_in_year day_only fiscal_month "  # noqa: SIM905
    "fiscal_quarter fiscal_year hour_in_day week_in_month week_in_year".split()
)
TOOLING_OBJECTS = frozenset(
    "entitydefinition fielddefinition entityparticle publisher relationshipinfo searchlayout standardaction "  # noqa: SIM905
    "userentityaccess userfieldaccess".split()
)


def iter_terms(condition: Condition, junction: str = "") -> Iterator[tuple[Comparison | Membership | Choice, str]]:
    """Yield every comparison, and whether it stands under OR or NOT."""
    if isinstance(condition, Not):
        yield from iter_terms(condition.term, junction or "NOT")
    elif isinstance(condition, (And, Or)):
        junction = junction if isinstance(condition, And) else "OR"
        for term in condition.terms:
            if isinstance(term, (And, Or, Not)):
                yield from iter_terms(term, junction)
            else:
                yield term, junction
    else:
        yield condition, junction


def has_aggregate(*expressions: object) -> bool:
    """Whether one of some expressions is an aggregate, or contains one."""
    for item in expressions:
        if isinstance(item, Call) and (item.name.lower() in AGGREGATES or has_aggregate(*item.arguments)):
            return True
    return False


def is_call(expression: object, *names: str) -> bool:
    """Whether an expression calls one of some functions."""
    return isinstance(expression, Call) and expression.name.lower() in names


def is_date_function(expression: object) -> bool:
    """Whether an expression takes a part of a date."""
    return isinstance(expression, Call) and expression.name.lower() in DATE_FUNCTIONS


def is_bare_count(query: Query) -> bool:
    """Whether a query selects COUNT() and nothing else."""
    only = query.columns[0].expression
    return len(query.columns) == 1 and isinstance(only, Call) and only.name.lower() == "count" and not only.arguments


def is_plain(expression: object) -> bool:
    """Whether an expression is a field without a dot."""
    return isinstance(expression, Path) and len(expression.parts) == 1


def fields_kind(call: Call) -> str:
    """Return what FIELDS() selects, or "" if that is not a kind of fields."""
    argument = call.arguments[0] if call.arguments else None
    kind = argument.name.upper() if isinstance(argument, Path) else ""
    return kind if kind in ("ALL", "CUSTOM", "STANDARD") else ""


def filters_on(condition: Condition | None, names: tuple[str, ...], *, exactly: bool = False) -> bool:
    """Whether a condition restricts one of some fields; exactly: by equality or a list."""
    if condition is None:
        return False
    wanted = {name.lower() for name in names}
    return any(
        isinstance(term.left, Path)
        and (term.left.name.lower() in wanted or term.left.parts[-1].lower() in wanted)
        and (not exactly or _is_exact(term))
        for term, junction in iter_terms(condition)
        if not junction
    )


def _is_exact(term: Comparison | Membership | Choice) -> bool:
    if isinstance(term, Comparison):
        return term.operator == "="
    return isinstance(term, Membership) and not term.negated and isinstance(term.values, tuple)


def names_few_ids(condition: Condition | None) -> bool:
    """Whether a condition leaves at most 200 records, by their ids."""
    if condition is None:
        return False
    for term, junction in iter_terms(condition):
        if junction or not (isinstance(term.left, Path) and term.left.name.lower() == "id"):
            continue
        if isinstance(term, Comparison) and term.operator == "=":
            return True
        if isinstance(term, Membership) and not term.negated and isinstance(term.values, tuple):
            return len(term.values) <= MAX_FIELDS_ROWS
    return False
