"""Lay out one object and those around it: a block in the middle, rows on both sides, the field on every line."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from bedstone.web.schema.neighbours import Group, Kind, Neighbour

Side = Literal["left", "right"]
WIDTH = 976.0
MARGIN = 4.0
BOX_WIDTH = 190.0
BOX_HEIGHT = 24.0
PITCH = 30.0  # from row to row
HEADING_HEIGHT = 24.0
GROUP_GAP = 8.0
STRETCH = 164.0  # of a line that is straight and carries its field
CENTER_WIDTH = 144.0
CENTER_MARGIN = 24.0  # above its first line and below its last
MIN_CENTER_HEIGHT = 108.0
FUNNEL = 0.86  # lines end this much nearer to each other than they begin
TIP = 7.0
TEXT_INDENT = 10.0
LABEL_INDENT = 8.0
LABEL_LIFT = 5.0  # above the line
MAX_ONE_SIDE = 8  # rows; a longer group may take both sides
NAME_SIZE = 12.5  # font sizes, as in components.css
FIELD_SIZE = 11.5
CENTER_SIZE = 16.0  # 15, and bold letters are wider
LETTER = 0.602  # width of a monospaced letter
NARROW = frozenset("ijlI.,:;'|! ()[]ftr-")
WIDE = frozenset("mwMWOQGDNHU@%")
WORDS = re.compile(r"[A-Z]+(?![a-z])_*|[A-Z]?[^\s_A-Z]+(?:__[a-z]{1,3}$|_*)\s*|_+|\s+")
MAX_CENTER_LINES = 3


@dataclass(frozen=True)
class Box:
    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


@dataclass(frozen=True)
class Text:
    """A text at a place; `anchor` is the end of it that is there."""

    text: str
    x: float
    y: float
    anchor: Literal["start", "middle", "end"] = "start"


@dataclass(frozen=True)
class Node:
    """A neighbour with its box, and the line to the middle with its tip and its field."""

    neighbour: Neighbour
    box: Box
    text: Text
    line: str
    tip: str
    kind: Kind
    label: Text


@dataclass(frozen=True)
class Diagram:
    """Everything to draw, with its size."""

    width: float
    height: float
    headings: Sequence[Text]
    nodes: Sequence[Node]
    center: Box
    title: Sequence[Text]


def draw_neighbours(label: str, field_count: int, groups: Sequence[Group]) -> Diagram:
    """Return an object with the groups around it, on both sides and of about the same height."""
    sides = _share_sides(groups)
    heights = {side: _height(members) for side, members in sides.items()}
    height = max(*heights.values(), MIN_CENTER_HEIGHT) + 2 * MARGIN
    middle = height / 2
    headings: list[Text] = []
    rows: list[tuple[Side, Neighbour, float]] = []
    for side, members in sides.items():
        y = middle - heights[side] / 2
        for group in members:
            headings.append(_heading(group.title, side, y))
            y += HEADING_HEIGHT
            rows += [(side, item, y + place * PITCH) for place, item in enumerate(group.neighbours)]
            y += len(group.neighbours) * PITCH + GROUP_GAP
    center = _center([top + BOX_HEIGHT / 2 for _, _, top in rows], middle)
    nodes = [_node(side, item, top, center, middle) for side, item, top in rows]
    return Diagram(WIDTH, height, headings, nodes, center, _title(label, field_count, center))


def _share_sides(groups: Sequence[Group]) -> dict[Side, list[Group]]:
    """Give each group to the side with fewer rows, the largest first; a group that outweighs the rest takes both."""
    total = sum(len(group.neighbours) for group in groups)
    order = [group.key for group in groups]
    sides: dict[Side, list[Group]] = {"left": [], "right": []}
    for group in sorted(groups, key=lambda group: -len(group.neighbours)):
        size = len(group.neighbours)
        if size > MAX_ONE_SIDE and 3 * size > 2 * total:
            half = (total + 1) // 2
            sides["left"].append(replace(group, neighbours=group.neighbours[:half]))
            sides["right"].append(replace(group, neighbours=group.neighbours[half:]))
        else:
            side: Side = "left" if _height(sides["left"]) <= _height(sides["right"]) else "right"
            sides[side].append(group)
    return {side: sorted(members, key=lambda group: order.index(group.key)) for side, members in sides.items()}


def _height(groups: Sequence[Group]) -> float:
    rows = sum(len(group.neighbours) for group in groups)
    return rows * PITCH + len(groups) * (HEADING_HEIGHT + GROUP_GAP) - (GROUP_GAP if groups else 0)


def _heading(title: str, side: Side, y: float) -> Text:
    anchor: Literal["start", "end"] = "start" if side == "left" else "end"
    return Text(title, MARGIN if side == "left" else WIDTH - MARGIN, y + HEADING_HEIGHT - 10, anchor)


def _center(rows: Sequence[float], middle: float) -> Box:
    """Return the block in the middle: as high as the lines that end at it."""
    reach = max((abs(row - middle) for row in rows), default=0.0) * FUNNEL + CENTER_MARGIN
    height = max(2 * reach, MIN_CENTER_HEIGHT)
    return Box((WIDTH - CENTER_WIDTH) / 2, middle - height / 2, CENTER_WIDTH, height)


def _node(side: Side, item: Neighbour, top: float, center: Box, middle: float) -> Node:
    """Return the box of a neighbour, and its line: straight as long as the field stands on it, then to the middle."""
    sign = 1 if side == "left" else -1  # to the right, or to the left
    box = Box(MARGIN if side == "left" else WIDTH - MARGIN - BOX_WIDTH, top, BOX_WIDTH, BOX_HEIGHT)
    outer, inner = (box.right, center.x) if side == "left" else (box.x, center.right)
    row, port = box.middle, middle + (box.middle - middle) * FUNNEL
    kind = item.kind
    tip = _tip(inner, port, sign, kind) if item.points_here else _tip(outer, row, -sign, kind)
    start, end = (outer, inner - sign * TIP) if item.points_here else (outer + sign * TIP, inner)
    bend = outer + sign * STRETCH
    halfway = (bend + end) / 2
    numbers = (start, row, bend, halfway, row, halfway, port, end, port)
    line = "M{} {}H{}C{} {} {} {} {} {}".format(*(f"{number:.1f}" for number in numbers))
    room = STRETCH - LABEL_INDENT - TIP
    field = Text(
        fit_field(item, room),
        outer + sign * (LABEL_INDENT if item.points_here else LABEL_INDENT + TIP),
        row - LABEL_LIFT,
        "start" if side == "left" else "end",
    )
    name = f"{item.name} (itself)" if item.is_self else item.name
    text = Text(fit_name(name, BOX_WIDTH - 2 * TEXT_INDENT), box.x + TEXT_INDENT, box.middle + 4.5)
    return Node(item, box, text, line, tip, kind, field)


def _tip(x: float, y: float, sign: int, kind: Kind) -> str:
    """Return an arrow head, or the diamond of a master; it ends at `x` and comes from the side of `sign`."""
    if kind == "master":
        return f"M{x:.1f} {y:.1f}l{-6 * sign} -5 {-6 * sign} 5 {6 * sign} 5z"
    return f"M{x:.1f} {y:.1f}l{-8 * sign} -4v8z"


def _title(label: str, field_count: int, center: Box) -> list[Text]:
    """Return the lines in the block, the last one with the number of fields."""
    lines = wrap(label, center.width - 2 * TEXT_INDENT)
    fields = f"{field_count:,} field" if field_count == 1 else f"{field_count:,} fields"
    x, first = center.x + center.width / 2, center.middle - len(lines) * 9.5 + 10
    return [Text(line, x, first + place * 19, "middle") for place, line in enumerate([*lines, fields])]


def wrap(text: str, room: float) -> list[str]:
    """Break a label into lines that fit; a word that is too long is shortened, and so is what does not fit."""
    lines = [""]
    for word in WORDS.findall(text):
        if lines[-1] and text_width((lines[-1] + word).rstrip(), CENTER_SIZE) > room:
            lines.append("")
        lines[-1] += word
    if len(lines) > MAX_CENTER_LINES:
        lines = [*lines[: MAX_CENTER_LINES - 1], "".join(lines[MAX_CENTER_LINES - 1 :])]
    return [_shorten(line.strip(), lambda part: text_width(part, CENTER_SIZE) <= room) for line in lines]


def fit_name(name: str, room: float) -> str:
    """Return a name that fits into a box; a long one loses its middle."""
    return _shorten(name, lambda part: text_width(part, NAME_SIZE) <= room)


def fit_field(item: Neighbour, room: float) -> str:
    """Return the field of a line; of a long one, the number of further fields stays."""
    name, sign, more = item.field_label.partition(" +")
    letters = int(room / (FIELD_SIZE * LETTER)) - len(sign + more)
    return _shorten(name, lambda part: len(part) <= letters) + sign + more


def text_width(text: str, size: float) -> float:
    """Estimate how wide a text is, by the widest of the usual fonts."""
    return size * sum(
        0.36 if sign in NARROW else 0.86 if sign in WIDE else 0.68 if sign.isupper() or not sign.isascii() else 0.57
        for sign in text
    )


def _shorten(text: str, fits: Callable[[str], bool]) -> str:
    """Take letters out of the middle until a text fits: its end often tells more than its middle."""
    if fits(text):
        return text
    for kept in range(len(text) - 1, 1, -1):
        shown = f"{text[: kept - kept // 3]}…{text[len(text) - kept // 3 :]}"
        if fits(shown):
            return shown
    return "…"
