"""An object and what it hangs together with, as a picture: laid out here, drawn by the browser."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import cos, pi, sin
from typing import Any

from bedstone.services.schema.service import OrgSchema

FIRST_RING, SECOND_RING, MOST = 230.0, 430.0, 24
BOX, ASIDE = (140.0, 38.0), 12.0  # a box with the room it needs, and a step aside
MARGIN = 90.0
STEP, ROW = 210.0, 70.0
Point = tuple[float, float]


@dataclass(frozen=True)
class Node:
    name: str
    x: float
    y: float
    is_center: bool = False


@dataclass(frozen=True)
class Line:
    """From one node to another; `label` is the field that points."""

    x1: float
    y1: float
    x2: float
    y2: float
    label: str


@dataclass(frozen=True)
class Picture:
    """Nodes and lines, the stretch of the plane they take, and how many objects are not shown."""

    nodes: list[Node]
    lines: list[Line]
    box: tuple[float, float, float, float]
    left_out: int = 0


def neighbourhood(org: OrgSchema, name: str, depth: int) -> Picture:
    """An object in the middle, its neighbours around it, theirs around them."""
    rings, left_out = org.paths.related(name, min(depth, 2), MOST)
    first = rings.get(1, [])
    second = rings.get(2, [])
    places: dict[str, Point] = {name: (0.0, 0.0)}
    nodes = [Node(name, 0.0, 0.0, is_center=True)]
    for number, other in enumerate(first):
        places[other] = _around(number, len(first), FIRST_RING, places)
    homes: dict[str, list[str]] = {other: [] for other in first}
    for other in second:
        near = next((home for home in first if other in org.graph.neighbours(home, audit=False)), None)
        if near is not None:
            homes[near].append(other)
    ordered = [other for home in first for other in homes[home]]
    for number, other in enumerate(ordered):
        places[other] = _around(number, len(ordered), SECOND_RING, places)
    nodes += [Node(other, *places[other]) for other in (*first, *ordered)]
    lines = [_line(places, name, other, org) for other in first]
    lines += [_line(places, home, other, org) for home in first for other in homes[home]]
    return Picture(nodes, lines, _box(places.values()), sum(left_out.values()))


def paths_picture(paths: Sequence[Mapping[str, Any]]) -> Picture:
    """Ways between two objects as explore-relationships tells them, one below the other."""
    nodes: list[Node] = []
    lines: list[Line] = []
    for row, path in enumerate(paths):
        y = row * ROW
        names = [path["segments"][0]["from"], *(segment["to"] for segment in path["segments"])]
        nodes += [
            Node(name, place * STEP, y, is_center=place in (0, len(names) - 1)) for place, name in enumerate(names)
        ]
        lines += [
            Line(place * STEP, y, (place + 1) * STEP, y, segment["field"])
            for place, segment in enumerate(path["segments"])
        ]
    return Picture(nodes, lines, _box([(node.x, node.y) for node in nodes]))


def _around(number: int, count: int, radius: float, taken: Mapping[str, Point]) -> Point:
    """A place on a ring, or as far outside of it as no other box is in the way."""
    angle = 2 * pi * number / max(count, 1) - pi / 2
    while True:
        x, y = round(radius * 1.5 * cos(angle), 1), round(radius * sin(angle), 1)
        if not any(abs(x - other) < BOX[0] and abs(y - another) < BOX[1] for other, another in taken.values()):
            return x, y
        radius += ASIDE


def _line(places: dict[str, Point], source: str, target: str, org: OrgSchema) -> Line:
    edges = [edge for edge in org.graph.parents(source) if edge.parent == target]
    edges += [edge for edge in org.graph.children(source) if edge.child == target]
    label = edges[0].field.name if edges else ""
    return Line(*places[source], *places[target], label)


def _box(places: Iterable[Point]) -> tuple[float, float, float, float]:
    points = list(places) or [(0.0, 0.0)]
    left, top = min(x for x, _ in points) - MARGIN, min(y for _, y in points) - MARGIN / 2
    right, bottom = max(x for x, _ in points) + MARGIN, max(y for _, y in points) + MARGIN / 2
    return left, top, right - left, bottom - top
