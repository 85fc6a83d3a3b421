"""Ways from one object to another: the cheapest first, found without looking at all of them."""

import heapq
from dataclasses import dataclass
from itertools import count
from typing import Literal

from bedstone.salesforce.graph.categories import CORE, SETUP, is_derived, namespace_of
from bedstone.salesforce.graph.model import AUDIT_FIELDS, Edge, SchemaGraph

MOST_PATHS, DEEPEST, MOST_STEPS = 10, 5, 30_000
AUDIT, HUB, SYSTEM, POLYMORPHIC, NAMELESS, OPTIONAL, RARE = 4.0, 2.0, 3.0, 1.0, 2.0, 0.1, 0.3
USUAL = 1.2  # a lookup that may be empty
DEEPEST_UP, DEEPEST_DOWN = 5, 4
HUBS = frozenset({"User", "Group", "RecordType", "Profile", "UserRole"})
Direction = Literal["up", "down"]


@dataclass(frozen=True, slots=True)
class Step:
    """From one object to the next: up by a field of ours, down by a field of theirs."""

    source: str
    target: str
    direction: Direction
    edge: Edge

    @property
    def relationship(self) -> str | None:
        return self.edge.field.relationship


@dataclass(frozen=True)
class Path:
    """Steps, and what they cost."""

    steps: tuple[Step, ...]
    cost: float

    @property
    def dotted(self) -> str | None:
        """As SOQL writes it, where every step goes up."""
        if any(step.direction != "up" or not step.relationship for step in self.steps):
            return None
        if any(len(step.edge.field.reference_to) > 1 for step in self.steps[:-1]):  # beyond it only names can be seen
            return None
        return ".".join(str(step.relationship) for step in self.steps)

    @property
    def exceeds_soql(self) -> bool:
        """Whether one query cannot go this way."""
        runs = self._runs()
        return len(runs) > 2 or any(  # noqa: PLR2004 - up or down, and down after up at most
            length > (DEEPEST_UP if direction == "up" else DEEPEST_DOWN) for direction, length in runs
        )

    def _runs(self) -> list[tuple[Direction, int]]:
        runs: list[tuple[Direction, int]] = []
        for step in self.steps:
            if runs and runs[-1][0] == step.direction:
                runs[-1] = (step.direction, runs[-1][1] + 1)
            else:
                runs.append((step.direction, 1))
        return runs

    def soql(self) -> str | None:
        """An example that goes this way in one query, where there is one."""
        if self.dotted:
            return f"SELECT Id, {self.dotted}.Id FROM {self.steps[0].source}"
        if all(step.direction == "down" and step.edge.child_relationship for step in self.steps):
            inner = "Id"
            for step in reversed(self.steps):
                inner = f"Id, (SELECT {inner} FROM {step.edge.child_relationship})"
            return f"SELECT {inner} FROM {self.steps[0].source}"
        if all(step.direction == "down" for step in self.steps[1:]) and len(self.steps) == 2:  # noqa: PLR2004
            first, second = self.steps
            if first.direction == "up":  # two that point to the same third
                mine, theirs = first.edge.field.name, second.edge.field.name
                return (
                    f"SELECT Id FROM {second.target} WHERE {theirs} IN (SELECT {mine} FROM {first.source})"
                    if first.source != second.target
                    else None
                )
        return self._down_then_up()

    def _down_then_up(self) -> str | None:
        """Through a third object that points to both."""
        if len(self.steps) != 2 or [step.direction for step in self.steps] != ["down", "up"]:  # noqa: PLR2004
            return None
        first, second = self.steps
        if not first.edge.child_relationship or not second.relationship:
            return None
        return f"SELECT Id, (SELECT {second.relationship}.Id FROM {first.edge.child_relationship}) FROM {first.source}"


@dataclass(frozen=True)
class FoundPaths:
    """The best ways; `truncated` where the search was ended by its budget."""

    paths: list[Path]
    truncated: bool


class PathFinder:
    """Finds ways in one graph. What it learns of the neighbourhood of objects it keeps."""

    def __init__(self, graph: SchemaGraph) -> None:
        self._graph = graph
        self._links: dict[str, dict[str, list[Link]]] = {}

    def find(
        self,
        source: str,
        target: str,
        *,
        max_depth: int = DEEPEST,
        limit: int = MOST_PATHS,
        audit: bool = False,
    ) -> FoundPaths:
        """The cheapest simple paths, best first. Audit fields count where nothing else leads there, or if asked for."""
        found = self._search(source, target, max_depth, limit, audit=audit)
        return found if found.paths or audit else self._search(source, target, max_depth, limit, audit=True)

    def related(self, name: str, max_depth: int, most: int) -> tuple[dict[int, list[str]], dict[int, int]]:
        """Objects by their distance, and how many of each were left out; audit fields lead nowhere."""
        seen = {name}
        rings: dict[int, list[str]] = {}
        left_out: dict[int, int] = {}
        ring = [name]
        for distance in range(1, max_depth + 1):
            following: dict[str, float] = {}
            for here in ring:
                if here in HUBS and distance > 1:  # everything is near a user
                    continue
                for target in self._graph.neighbours(here, audit=False) - seen:
                    cost = min(link.cost for link in self._from(here)[target] if not link.is_audit)
                    following[target] = min(cost, following.get(target, cost))
            ordered = sorted(following, key=lambda item: (following[item], item))
            seen |= following.keys()
            if not ordered:
                break
            rings[distance] = ordered[:most]
            if len(ordered) > most:
                left_out[distance] = len(ordered) - most
            ring = ordered
        return rings, left_out

    def _search(self, source: str, target: str, max_depth: int, limit: int, *, audit: bool) -> FoundPaths:
        """Best first by the cost so far and what usual steps would still cost; of equals, the one nearest its end."""
        within = self._within(target, max_depth, audit=audit)
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
            links = self._from(here)
            for name in sorted((self._graph.neighbours(here, audit=audit) & within[left - 1]) - visited):
                closes = name == target
                for link in links[name]:
                    if link.is_audit and not audit:
                        continue
                    steps_done += 1
                    whole = cost + (link.end_cost if closes else link.cost)
                    likely = round(whole + USUAL * hops[name], 3)
                    heapq.heappush(waiting, (likely, -left, next(number), whole, name, (*steps, link.step)))
            if steps_done > MOST_STEPS:
                break
        return FoundPaths(sorted(paths, key=lambda path: path.cost), truncated=bool(waiting))

    def _within(self, target: str, max_depth: int, *, audit: bool) -> list[frozenset[str]]:
        """The objects from which the target can be reached in 0, 1, 2 ... steps at most."""
        reached = frozenset({target})
        rings, ring = [reached], reached
        for _ in range(max_depth):
            ring = frozenset().union(*(self._graph.neighbours(name, audit=audit) for name in ring)) - reached
            reached |= ring
            rings.append(reached)
        return rings

    def _from(self, name: str) -> "dict[str, list[Link]]":
        found = self._links.get(name)
        if found is None:
            found = {}
            steps = [Step(name, edge.parent, "up", edge) for edge in self._graph.parents(name)]
            steps += [Step(name, edge.child, "down", edge) for edge in self._graph.children(name)]
            for step in steps:
                ways = [_cost(step, self._graph, is_end=is_end) for is_end in (False, True)]
                is_audit = step.edge.field.name.lower() in AUDIT_FIELDS
                found.setdefault(step.target, []).append(Link(step, ways[0], ways[1], is_audit))
            self._links[name] = found
        return found


@dataclass(frozen=True, slots=True)
class Link:
    """A step, and what it costs on the way and as the last one."""

    step: Step
    cost: float
    end_cost: float
    is_audit: bool


def _cost(step: Step, graph: SchemaGraph, *, is_end: bool) -> float:
    field = step.edge.field
    cost = 1.0
    if field.name.lower() in AUDIT_FIELDS:
        cost += AUDIT
    if (step.edge.parent in HUBS or field.name == "OwnerId") and not is_end:
        cost += HUB
    if not is_end and (step.target in SETUP or is_derived(step.target, graph)):
        cost += SYSTEM
    if field.name == "MasterRecordId":
        cost += RARE
    if not is_end and step.target not in CORE and not step.target.endswith("__c"):
        cost += RARE
    if len(field.reference_to) > 1 or field.is_polymorphic:
        cost += POLYMORPHIC
    if step.direction == "down" and not step.edge.child_relationship:
        cost += NAMELESS
    if field.relationship_type != "MASTER_DETAIL":
        cost += OPTIONAL if not field.nillable else 2 * OPTIONAL
    if namespace_of(step.source) != namespace_of(step.target):
        cost += OPTIONAL
    return cost
