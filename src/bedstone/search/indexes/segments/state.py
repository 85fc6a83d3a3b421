"""What a vector index holds at one moment, and which segments to write next."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import log

from bedstone.search.indexes.segments.manifest import NOWHERE, Position
from bedstone.search.indexes.segments.segment import Part, Snapshot, Tail

MAX_TAIL = 4_096  # passages in memory, before they become a segment
MERGED_AT_ONCE = 8  # segments of one size
MAX_SCANNED = 120_000  # passages; a graph of nearly the same recall costs more, and must be built
MAX_LOOSE = 16_384  # passages outside the graph, or a share of those inside
LOOSE_SHARE = 32
SHRUNK = 0.8  # of MAX_SCANNED: below, a graph is given up
UNPUBLISHED_CHANGES = 5_000  # that the next start would have to read again


@dataclass(frozen=True, eq=False)
class State:
    """Segments, the tail, and the change up to which they are complete.

    `flushed` is the change up to which everything is in files.
    """

    segments: Sequence[Part]
    tail: Tail
    position: Position = NOWHERE
    flushed: Position = NOWHERE
    snapshot: Snapshot = field(init=False)

    def __post_init__(self) -> None:
        parts = [part for part in self.segments if part.live]
        if len(self.tail):
            parts.append(Part(self.tail.segment))
        object.__setattr__(self, "snapshot", Snapshot(parts))

    @property
    def is_flushed(self) -> bool:
        """Whether everything is in files."""
        return not len(self.tail) and all(part.segment.file for part in self.segments)


@dataclass(frozen=True, eq=False)
class Step:
    """Segments that one is to replace, perhaps with the tail, perhaps with a graph."""

    state: State
    parts: Sequence[Part]
    takes_tail: bool = False
    wants_graph: bool = False

    @property
    def sources(self) -> list[Part]:
        """All that goes into the new segment."""
        parts = [part for part in self.parts if part.live]
        return [*parts, Part(self.state.tail.segment)] if self.takes_tail and len(self.state.tail) else parts


def flush_step(state: State) -> Step | None:
    """Return the step after which everything is in files."""
    loose = [part for part in state.segments if part.segment.file is None]
    return Step(state, loose, takes_tail=True) if loose or len(state.tail) else None


def next_step(state: State, *, has_files: bool) -> Step | None:
    """Return what to do next, if anything. Without files, those of another process are left alone."""
    own = [part for part in state.segments if has_files or part.segment.file is None]
    graphs = [part for part in own if part.segment.graph is not None]
    others = [part for part in own if part.segment.graph is None]
    inside = sum(part.live for part in graphs)
    outside = sum(part.live for part in others) + len(state.tail)
    if inside + outside > MAX_SCANNED:
        is_worn = any(part.deleted_count * 2 > len(part.segment) for part in graphs)
        if len(graphs) != 1 or is_worn or outside > max(MAX_LOOSE, inside // LOOSE_SHARE):
            return Step(state, own, takes_tail=True, wants_graph=True)
    elif graphs and inside + outside < MAX_SCANNED * SHRUNK:
        return Step(state, own, takes_tail=True)
    if len(state.tail) >= MAX_TAIL or _is_long_ago(state, has_files=has_files):
        return flush_step(state)
    if has_files and (loose := [part for part in own if part.segment.file is None]):
        return Step(state, loose)
    return _merge_alike(state, others)


def _is_long_ago(state: State, *, has_files: bool) -> bool:
    return has_files and len(state.tail) > 0 and state.position.seq - state.flushed.seq > UNPUBLISHED_CHANGES


def _merge_alike(state: State, parts: Sequence[Part]) -> Step | None:
    """Return a step for segments of one size, or for one that is mostly deleted."""
    tiers: dict[int, list[Part]] = defaultdict(list)
    for part in parts:
        if part.deleted_count * 2 > len(part.segment):
            return Step(state, [part])
        tiers[int(log(max(1.0, part.live / MAX_TAIL), MERGED_AT_ONCE))].append(part)
    return next((Step(state, alike) for _, alike in sorted(tiers.items()) if len(alike) >= MERGED_AT_ONCE), None)
