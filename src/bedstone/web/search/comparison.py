"""Compare the rankings of the three search modes: what moved, what only one mode finds, and lines between the lanes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedstone.search.hits import Mode
from bedstone.services.catalog import STEP

if TYPE_CHECKING:
    from bedstone.services.everything.folding import Hit
    from bedstone.services.everything.service import SearchOutcome

LANES: tuple[Mode, Mode, Mode] = ("keyword", "hybrid", "semantic")
ABOUT: Mapping[Mode, str] = {
    "keyword": "The words themselves: names, codes, part numbers",
    "hybrid": "Both, fused into one ranking: what agents get",
    "semantic": "What is meant: questions in other words",
}
HEAD_HEIGHT = 72  # as in components.css
ROW_HEIGHT = 88
GAP = 44


@dataclass(frozen=True)
class Row:
    """A hit in a lane; `change` says where Hybrid has it."""

    hit: "Hit"
    icon: str
    change: str
    is_first: bool  # the first one of Hybrid

    @property
    def place(self) -> str:
        """Return the last step of where the hit stands."""
        return self.hit.item.location.split(STEP)[-1]


@dataclass(frozen=True)
class Lane:
    mode: Mode
    about: str
    rows: Sequence[Row]
    milliseconds: float


@dataclass(frozen=True)
class Comparison:
    """Three lanes; `lines` are the paths left and right of the middle lane, with whether they join the first hit."""

    lanes: Sequence[Lane]
    summary: str
    lines: Sequence[Sequence[tuple[str, bool]]]
    height: int


def compare(outcomes: "Mapping[Mode, SearchOutcome]", icons: Mapping[str, str]) -> Comparison:
    """Return the lanes of the three modes, with Hybrid in the middle."""
    ids = {mode: [_key(hit) for hit in outcomes[mode].hits] for mode in LANES}
    middle = ids["hybrid"]
    lanes = [
        Lane(
            mode,
            ABOUT[mode],
            [
                Row(
                    hit,
                    icons.get(hit.source, "file"),
                    _change(mode, number, _key(hit), ids),
                    middle[:1] == [_key(hit)],
                )
                for number, hit in enumerate(outcomes[mode].hits)
            ],
            outcomes[mode].milliseconds,
        )
        for mode in LANES
    ]
    lines = [_lines(ids["keyword"], middle), _lines(middle, ids["semantic"])]
    height = HEAD_HEIGHT + ROW_HEIGHT * max(len(lane.rows) for lane in lanes)
    return Comparison(lanes, _summarize(ids), lines, height)


def _key(hit: "Hit") -> str:
    """Return what a hit is compared by: a section is one result, even if modes prefer other passages of it."""
    return f"{hit.source} {hit.item.section}" if hit.item.section else hit.item.id


def _change(mode: Mode, number: int, item_id: str, ids: Mapping[Mode, Sequence[str]]) -> str:
    middle = ids["hybrid"]
    if mode == "hybrid":
        found_by = [other for other in ("keyword", "semantic") if item_id in ids[other]]
        return "" if len(found_by) == 2 else f"from {found_by[0]} search" if found_by else "by both together"  # noqa: PLR2004
    if item_id not in middle:
        return "only here"
    moved = middle.index(item_id) - number
    return "same" if not moved else f"{abs(moved)} {'lower' if moved > 0 else 'higher'} in Hybrid"


def _lines(left: Sequence[str], right: Sequence[str]) -> list[tuple[str, bool]]:
    """Return a curve for each hit that both lanes have."""
    curves = []
    for number, item_id in enumerate(left):
        if item_id in right:
            start, end = _middle(number), _middle(right.index(item_id))
            half = GAP // 2
            curves.append((f"M0 {start}C{half} {start} {half} {end} {GAP} {end}", number == 0 == right.index(item_id)))
    return curves


def _middle(number: int) -> int:
    return HEAD_HEIGHT + ROW_HEIGHT * number + ROW_HEIGHT // 2


def _summarize(ids: Mapping[Mode, Sequence[str]]) -> str:
    """Say in a sentence whether the modes agree."""
    first = {mode: found[0] for mode, found in ids.items() if found}
    if not first:
        return "No mode finds anything."
    if "hybrid" not in first:
        return "Hybrid finds nothing."
    same = [mode.capitalize() for mode in ("keyword", "semantic") if first.get(mode) == first["hybrid"]]
    other = [mode for mode in ("Keyword", "Semantic") if mode not in same]
    opening = {
        2: "All three find the same answer first.",
        1: f"{same[0] if same else ''} and Hybrid agree on the first answer; {other[0] if other else ''} does not.",
    }
    sentence = opening.get(len(same), "Each mode puts another answer first.")
    lone = [item for item in ids["hybrid"] if item not in ids["keyword"] or item not in ids["semantic"]]
    return f"{sentence} {len(lone)} of {len(ids['hybrid'])} in Hybrid come from one mode alone." if lone else sentence
