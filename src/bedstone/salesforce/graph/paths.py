"""Find paths between objects: best-first search with a budget, cheapest first."""

import heapq
from dataclasses import dataclass
from itertools import count, groupby
from typing import Literal

from bedstone.salesforce.graph.categories import CORE, SETUP, is_derived, namespace_of
from bedstone.salesforce.graph.model import AUDIT_FIELDS, Edge, SchemaGraph

MAX_PATHS = 10
MAX_DEPTH = 5
MAX_STEPS = 30_000  # of one search
MAX_PARENT_LEVELS = 5  # in SOQL
MAX_CHILD_LEVELS = 4  # in SOQL

# What a step costs in addition to 1
AUDIT_COST = 4.0
HUB_COST = 2.0
SYSTEM_COST = 3.0
POLYMORPHIC_COST = 1.0
NAMELESS_COST = 2.0
OPTIONAL_COST = 0.1
RARE_COST = 0.3
TYPICAL_COST = 1.2  # of a lookup that may be empty, in total
HUBS = frozenset({"User", "Group", "RecordType", "Profile", "UserRole"})
Direction = Literal["up", "down"]


@dataclass(frozen=True, slots=True)
class Step:
    """A step to the next object: up by a field of the source, down by a field of the target."""

    source: str
    target: str
    direction: Direction
    edge: Edge

    @property
    def relationship(self) -> str | None:
        return self.edge.field.relationship


@dataclass(frozen=True)
class Path:
    """A path between two objects, with its cost."""

    steps: tuple[Step, ...]
    cost: float

    @property
    def dot_notation(self) -> str | None:
        """Return the path in dot notation if every step goes up."""
        if any(step.direction != "up" or not step.relationship for step in self.steps):
            return None
        # Beyond a polymorphic field, only the fields of Name are available.
        if any(len(step.edge.field.reference_to) > 1 for step in self.steps[:-1]):
            return None
        return ".".join(str(step.relationship) for step in self.steps)

    @property
    def exceeds_soql(self) -> bool:
        """Return whether one query cannot follow this path."""
        runs = self._runs()
        return len(runs) > 2 or any(  # noqa: PLR2004 - one change of direction
            length > (MAX_PARENT_LEVELS if direction == "up" else MAX_CHILD_LEVELS) for direction, length in runs
        )

    def _runs(self) -> list[tuple[Direction, int]]:
        """Return the numbers of consecutive steps in one direction."""
        groups = groupby(step.direction for step in self.steps)
        return [(direction, len(list(steps))) for direction, steps in groups]

    def soql(self) -> str | None:
        """Return an example query that follows this path, if one query can."""
        if self.dot_notation:
            return f"SELECT Id, {self.dot_notation}.Id FROM {self.steps[0].source}"
        if all(step.direction == "down" and step.edge.child_relationship for step in self.steps):
            inner = "Id"
            for step in reversed(self.steps):
                inner = f"Id, (SELECT {inner} FROM {step.edge.child_relationship})"
            return f"SELECT {inner} FROM {self.steps[0].source}"
        match [step.direction for step in self.steps]:
            case ["up", "down"] if self.steps[0].source != self.steps[1].target:  # both point to the same third object
                mine, theirs = (step.edge.field.name for step in self.steps)
                inner = f"SELECT {mine} FROM {self.steps[0].source}"
                return f"SELECT Id FROM {self.steps[1].target} WHERE {theirs} IN ({inner})"
            case ["down", "up"] if self.steps[0].edge.child_relationship and self.steps[1].relationship:
                inner = f"SELECT {self.steps[1].relationship}.Id FROM {self.steps[0].edge.child_relationship}"
                return f"SELECT Id, ({inner}) FROM {self.steps[0].source}"
        return None


@dataclass(frozen=True)
class FoundPaths:
    """The best paths; `truncated` if there may be more."""

    paths: list[Path]
    truncated: bool


class PathFinder:
    """Finds paths in one graph. Caches the links of each object."""

    def __init__(self, graph: SchemaGraph) -> None:
        self._graph = graph
        self._links: dict[str, dict[str, list[Link]]] = {}

    def find(
        self, source: str, target: str, *, max_depth: int = MAX_DEPTH, limit: int = MAX_PATHS, audit: bool = False
    ) -> FoundPaths:
        """Return the cheapest simple paths. Uses audit fields only on request, or if nothing else leads there."""
        result = self._search(source, target, max_depth, limit, audit=audit)
        return result if result.paths or audit else self._search(source, target, max_depth, limit, audit=True)

    def find_related(self, name: str, max_depth: int, limit: int) -> tuple[dict[int, list[str]], dict[int, int]]:
        """Return objects by distance, and the number left out at each; ignores audit fields."""
        seen = {name}
        rings: dict[int, list[str]] = {}
        left_out: dict[int, int] = {}
        ring = [name]
        for distance in range(1, max_depth + 1):
            following: dict[str, float] = {}
            for here in ring:
                if here in HUBS and distance > 1:  # everything is related to a user
                    continue
                for target in self._graph.neighbours(here, audit=False) - seen:
                    cost = min(link.cost for link in self._links_from(here)[target] if not link.is_audit)
                    following[target] = min(cost, following.get(target, cost))
            ordered = sorted(following, key=lambda item: (following[item], item))
            seen |= following.keys()
            if not ordered:
                break
            rings[distance] = ordered[:limit]
            if len(ordered) > limit:
                left_out[distance] = len(ordered) - limit
            ring = ordered
        return rings, left_out

    def _search(self, source: str, target: str, max_depth: int, limit: int, *, audit: bool) -> FoundPaths:
        """Search best first, by the cost so far plus a typical cost for the rest; ties prefer the longer path."""
        within = self._reachable(target, max_depth, audit=audit)
        hops = {name: distance for distance, names in reversed(list(enumerate(within))) for name in names}
        number = count()
        waiting: list[tuple[float, int, int, float, str, tuple[Step, ...]]] = [(0.0, 0, next(number), 0.0, source, ())]
        paths: list[Path] = []
        steps_done = 0
        while waiting and len(paths) < limit:
            _, _, _, cost, here, steps = heapq.heappop(waiting)
            if steps and here == target:
                paths.append(Path(steps, round(cost, 3)))
                continue
            left = max_depth - len(steps)
            if left <= 0:
                continue
            visited = {source, *(step.target for step in steps)} - {target}
            links = self._links_from(here)
            for name in sorted((self._graph.neighbours(here, audit=audit) & within[left - 1]) - visited):
                is_end = name == target
                for link in links[name]:
                    if link.is_audit and not audit:
                        continue
                    steps_done += 1
                    total = cost + (link.end_cost if is_end else link.cost)
                    estimate = round(total + TYPICAL_COST * hops[name], 3)
                    heapq.heappush(waiting, (estimate, -left, next(number), total, name, (*steps, link.step)))
            if steps_done > MAX_STEPS:
                break
        return FoundPaths(sorted(paths, key=lambda path: path.cost), truncated=bool(waiting))

    def _reachable(self, target: str, max_depth: int, *, audit: bool) -> list[frozenset[str]]:
        """Return the objects that reach the target in at most 0, 1, 2 ... steps."""
        reached = frozenset({target})
        rings, ring = [reached], reached
        for _ in range(max_depth):
            ring = frozenset().union(*(self._graph.neighbours(name, audit=audit) for name in ring)) - reached
            reached |= ring
            rings.append(reached)
        return rings

    def _links_from(self, name: str) -> "dict[str, list[Link]]":
        links = self._links.get(name)
        if links is None:
            links = {}
            steps = [Step(name, edge.parent, "up", edge) for edge in self._graph.parents(name)]
            steps += [Step(name, edge.child, "down", edge) for edge in self._graph.children(name)]
            for step in steps:
                costs = [_step_cost(step, self._graph, is_end=is_end) for is_end in (False, True)]
                is_audit = step.edge.field.name.lower() in AUDIT_FIELDS
                links.setdefault(step.target, []).append(Link(step, costs[0], costs[1], is_audit))
            self._links[name] = links
        return links


@dataclass(frozen=True, slots=True)
class Link:
    """A step with its cost, and its cost as the last step."""

    step: Step
    cost: float
    end_cost: float
    is_audit: bool


def _step_cost(step: Step, graph: SchemaGraph, *, is_end: bool) -> float:
    field = step.edge.field
    cost = 1.0
    if field.name.lower() in AUDIT_FIELDS:
        cost += AUDIT_COST
    if (step.edge.parent in HUBS or field.name == "OwnerId") and not is_end:
        cost += HUB_COST
    if not is_end and (step.target in SETUP or is_derived(step.target, graph)):
        cost += SYSTEM_COST
    if field.name == "MasterRecordId":
        cost += RARE_COST
    if not is_end and step.target not in CORE and not step.target.endswith("__c"):
        cost += RARE_COST
    if len(field.reference_to) > 1 or field.is_polymorphic:
        cost += POLYMORPHIC_COST
    if step.direction == "down" and not step.edge.child_relationship:
        cost += NAMELESS_COST
    if field.relationship_type != "MASTER_DETAIL":
        cost += OPTIONAL_COST if not field.nillable else 2 * OPTIONAL_COST
    if namespace_of(step.source) != namespace_of(step.target):
        cost += OPTIONAL_COST
    return cost
