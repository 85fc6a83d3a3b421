"""Lay out diagrams of related objects; the browser draws them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import cos, pi, sin
from typing import Any

from bedstone.services.schema.service import OrgSchema

MAX_NEIGHBOURS = 24  # of each object
FIRST_RADIUS = 230.0
SECOND_RADIUS = 430.0
RADIUS_STEP = 12.0
BOX_WIDTH = 140.0  # with the space around it
BOX_HEIGHT = 38.0
MARGIN = 90.0
COLUMN_WIDTH = 210.0
ROW_HEIGHT = 70.0
Point = tuple[float, float]


@dataclass(frozen=True)
class Node:
    name: str
    x: float
    y: float
    is_center: bool = False


@dataclass(frozen=True)
class Line:
    """A line between two nodes; `label` is the field that references the other object."""

    x1: float
    y1: float
    x2: float
    y2: float
    label: str


@dataclass(frozen=True)
class Diagram:
    """Nodes and lines, the area they take (left, top, width, height), and how many objects are not drawn."""

    nodes: list[Node]
    lines: list[Line]
    box: tuple[float, float, float, float]
    left_out: int = 0


def draw_neighbours(org: OrgSchema, name: str, depth: int) -> Diagram:
    """Return an object in the middle, related objects in a ring around it, and theirs in a second ring."""
    rings, left_out = org.paths.find_related(name, min(depth, 2), MAX_NEIGHBOURS)
    first = rings.get(1, [])
    outer: dict[str, list[str]] = {other: [] for other in first}
    for other in rings.get(2, []):
        inner = next((item for item in first if other in org.graph.neighbours(item, audit=False)), None)
        if inner is not None:
            outer[inner].append(other)
    second = [other for others in outer.values() for other in others]
    places: dict[str, Point] = {name: (0.0, 0.0)}
    for ring, radius in ((first, FIRST_RADIUS), (second, SECOND_RADIUS)):
        for number, other in enumerate(ring):
            places[other] = _free_place(number, len(ring), radius, places)
    nodes = [Node(other, *place, is_center=other == name) for other, place in places.items()]
    lines = [_line(places, name, other, org) for other in first]
    lines += [_line(places, inner, other, org) for inner, others in outer.items() for other in others]
    return Diagram(nodes, lines, _box(list(places.values())), sum(left_out.values()))


def draw_paths(paths: Sequence[Mapping[str, Any]]) -> Diagram:
    """Return the paths that explore-relationships found, one below the other."""
    nodes: list[Node] = []
    lines: list[Line] = []
    for row, path in enumerate(paths):
        y, segments = row * ROW_HEIGHT, path["segments"]
        for column, name in enumerate([segments[0]["from"], *(segment["to"] for segment in segments)]):
            nodes.append(Node(name, column * COLUMN_WIDTH, y, is_center=column in (0, len(segments))))
        for column, segment in enumerate(segments):
            lines.append(Line(column * COLUMN_WIDTH, y, (column + 1) * COLUMN_WIDTH, y, segment["field"]))
    return Diagram(nodes, lines, _box([(node.x, node.y) for node in nodes]))


def _free_place(number: int, count: int, radius: float, taken: Mapping[str, Point]) -> Point:
    """Return a free place on a ring, or the nearest one outside it."""
    angle = 2 * pi * number / max(count, 1) - pi / 2
    while True:
        x, y = round(radius * 1.5 * cos(angle), 1), round(radius * sin(angle), 1)
        if not any(abs(x - other) < BOX_WIDTH and abs(y - another) < BOX_HEIGHT for other, another in taken.values()):
            return x, y
        radius += RADIUS_STEP


def _line(places: dict[str, Point], source: str, target: str, org: OrgSchema) -> Line:
    edges = [edge for edge in org.graph.parents(source) if edge.parent == target]
    edges += [edge for edge in org.graph.children(source) if edge.child == target]
    label = edges[0].field.name if edges else ""
    return Line(*places[source], *places[target], label)


def _box(points: Sequence[Point]) -> tuple[float, float, float, float]:
    left, top = min(x for x, _ in points) - MARGIN, min(y for _, y in points) - MARGIN / 2
    right, bottom = max(x for x, _ in points) + MARGIN, max(y for _, y in points) + MARGIN / 2
    return left, top, right - left, bottom - top
