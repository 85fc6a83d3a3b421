"""What a rule is (a code, what it checks, an example, the check itself), and what it knows where it runs."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, NamedTuple, Protocol

from bedstone.salesforce.graph.model import Field
from bedstone.salesforce.soql.tree import Expression, Query
from bedstone.salesforce.validation.findings import Finding, Findings, Severity
from bedstone.salesforce.validation.query_facts import has_aggregate
from bedstone.salesforce.validation.scope import Resolved, Scope

Check = Callable[[Any, Any], Finding | None]


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing an org rejects, or runs although it is slow. Without `corrected`, `reason` says why."""

    code: str
    checks: str
    broken: str
    corrected: str | None
    reason: str = ""
    severity: Severity = "error"
    stops: bool = True  # after a finding, the later rules of the node are skipped
    check: Check = field(default=lambda _node, _at: None, repr=False)

    def run(self, node: object, at: "Context") -> bool:
        """Report what the rule finds in a node; False if it stops the later ones."""
        found = self.check(node, at)
        return found is None or self.report(found, at)

    def report(self, found: Finding, at: "Context") -> bool:
        """Add a finding to the others; False if the rule stops the later ones."""
        clause = at.clause if found.clause is None else found.clause
        at.findings.add(found.severity or self.severity, self.code, found.message, clause, found.span, found.fix)
        return not self.stops


class Example(NamedTuple):
    """A check with the queries that show what it is about."""

    check: Check
    corrected: str | None
    reason: str = ""
    broken: str = ""


def corrected_to(query: str) -> Callable[[Check], Example]:
    """Give a rule the corrected form of its example."""
    return lambda check: Example(check, query)


def not_correctable(reason: str) -> Callable[[Check], Example]:
    """Say why the example of a rule has no corrected form."""
    return lambda check: Example(check, None, reason)


def broken_by(query: str) -> Callable[[Example], Example]:
    """Give a rule a query that breaks it."""
    return lambda example: example._replace(broken=query)


def rule(code: str, checks: str, severity: Severity = "error", *, stops: bool = True) -> Callable[[Example], Rule]:
    """Make a rule of a check with its example."""
    return lambda item: Rule(code, checks, item.broken, item.corrected, item.reason, severity, stops, item.check)


def rules_of(module: ModuleType) -> tuple[Rule, ...]:
    """Return the rules that a module defines, in their order there."""
    found = (value for value in vars(module).values() if isinstance(value, Rule))
    return tuple(item for item in found if item.check.__module__ == module.__name__)


class Context(Protocol):
    """What every rule can rely on."""

    @property
    def findings(self) -> Findings: ...

    @property
    def clause(self) -> str: ...


def run(rules: Iterable[Rule], node: object, at: Context) -> bool:
    """Run rules on a node until one of them stops the later ones, which is False."""
    for item in rules:
        found = item.check(node, at)
        if found is not None and not item.report(found, at):
            return False
    return True


class Grouping(NamedTuple):
    """What an aggregate query groups by."""

    keys: frozenset[str] = frozenset()
    kind: str = ""
    is_grouped: bool = False


NO_GROUPING = Grouping()


@dataclass
class Site:
    """Where the walker is, and what it knows there; it moves from clause to clause of one query."""

    query: Query
    scope: Scope
    findings: Findings
    depth: int
    api_version: int
    unquoted: frozenset[int]  # positions of words that lack their quotes
    outer: "Site | None" = None
    clause: str = field(default="", init=False)
    junction: str = field(default="", init=False)  # OR or NOT around the current term
    operator: str = field(default="=", init=False)
    is_aggregate: bool = field(default=False, init=False)
    grouping: Grouping = field(default=NO_GROUPING, init=False)
    names: set[str] = field(default_factory=set, init=False)  # of the columns so far
    unnamed: int = field(default=0, init=False)  # columns without a name so far
    children: frozenset[str] = field(default=frozenset(), init=False)  # relationships of the subqueries so far
    semi_joins: int = field(default=0, init=False)  # in the whole statement so far
    name: str = field(default="", init=False)  # of the current column, or of the function on the left side
    fields: Sequence[str] = field(default=(), init=False)  # of the current FIELDS()
    left: Resolved = field(init=False)  # the field, or the left side of the current term
    argument: Resolved = field(init=False)  # of the current function
    link: Field = field(init=False)  # the relationship of the current TYPEOF

    def is_grouped(self, expression: Expression) -> bool:
        """Whether an expression may stand in an aggregate query."""
        return has_aggregate(expression) or self.scope.key(expression) in self.grouping.keys
