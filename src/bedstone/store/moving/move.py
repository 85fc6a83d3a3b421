"""Move a store: copy every row in batches, continue after an interruption, and compare everything at the end."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from bedstone.errors import InvalidInput
from bedstone.store.engine import StoreDamaged
from bedstone.store.moving.ends import (
    CHANGES,
    CHUNK,
    LARGE,
    PASSAGES,
    TABLES,
    Key,
    MoveState,
    Row,
    Source,
    Table,
    Target,
)

MAX_SHOWN = 5  # rows that differ
SAMPLES = (CHANGES.name, CHUNK.name, PASSAGES.name)  # what changes with them is a row of `change`

OnProgress = Callable[[str, int, int], None]  # a step, how much of it is done, and of how much


class MoveMismatch(StoreDamaged):
    """The target of a move does not contain what its source contains."""


@dataclass(frozen=True)
class MovedTable:
    """How much was moved, and the digest of all of it, which is the same at both ends."""

    label: str
    count: int
    digest: str


def move(
    source: Source,
    target: Target,
    base: str,
    on_progress: OnProgress = lambda step, done, total: None,
    *,
    before_finish: Callable[[], None] = lambda: None,
    max_rows: int = LARGE,
) -> Mapping[str, MovedTable]:
    """Copy what is missing, compare everything, and mark the target as complete; return what was moved.

    What `before_finish` does must succeed first. At most `max_rows` rows are in memory, and in a transaction.
    """
    if _may_be_moved_already(source, target):  # a command that was killed at its very end is repeated, too
        with suppress(MoveMismatch):
            return dict(_compare_all(source, target, on_progress))
    state = _begin(source, target, base, on_progress)
    _copy(source, target, state, on_progress, max_rows)
    target.set_counters(source.counters())
    try:
        moved = dict(_compare_all(source, target, on_progress))
    except MoveMismatch:
        target.save_state(MoveState(state.base, state.content, state.to, is_void=True))
        raise
    before_finish()
    target.finish()
    return moved


def _begin(source: Source, target: Target, base: str, on_progress: OnProgress) -> MoveState:
    """Return where to go on; a target that is not empty must have been begun by a move of the same base."""
    known, start = target.state(), MoveState(base, _digest_content(source, on_progress), target.place)
    if known is None:
        filled = [(count, table.label) for table in TABLES if (count := target.count(table))]
        if filled:
            found = ", ".join(f"{count:,} {label}" for count, label in filled)
            raise InvalidInput(
                f"The target {target.place} is not empty: it has {found}. Nothing was changed. Name a new one."
            )
        target.save_state(start)
    elif known.base != base:
        raise InvalidInput(
            f"The target {target.place} has a part of another base, whose move has not ended. Nothing was changed. "
            "Name a new one."
        )
    elif known.content != start.content or known.is_void:
        on_progress("What was moved before is outdated, starting again", 0, 1)
        target.clear(start)
    else:
        return known
    return start


def _may_be_moved_already(source: Source, target: Target) -> bool:
    counts = [(source.count(table), target.count(table)) for table in TABLES]
    return target.state() is None and any(there for _, there in counts) and all(here == there for here, there in counts)


def _copy(source: Source, target: Target, state: MoveState, on_progress: OnProgress, max_rows: int) -> None:
    names = [table.name for table in TABLES]
    for table in TABLES[names.index(state.table) :]:
        after = state.after if table.name == state.table else None
        done, total = target.count(table), source.count(table)
        while rows := source.rows_after(table, after, min(table.batch, max_rows)):
            after = rows[-1][0]
            target.write(table, rows, state.at(table, after))
            done += len(rows)
            on_progress(f"Copying {table.label}", done, total)


def _compare_all(source: Source, target: Target, on_progress: OnProgress) -> Iterator[tuple[str, MovedTable]]:
    """Compare counts, and the digest of every row; raise `MoveMismatch` for what differs."""
    if source.counters() != target.counters():
        raise _mismatch(source, target, "the last numbers that were given out")
    for table in TABLES:
        expected, found = source.count(table), target.count(table)
        if expected != found:
            raise _mismatch(source, target, f"{found:,} instead of {expected:,} {table.label}")
        yield table.name, _compare(source, target, table, on_progress)


def _compare(source: Source, target: Target, table: Table, on_progress: OnProgress) -> MovedTable:
    total, done, whole = source.count(table), 0, hashlib.sha256()
    different: list[Key] = []
    for rows in _pages(source, table):
        there = target.rows_with(table, [row[0] for row in rows])
        for row in rows:
            digest = digest_row(row)
            whole.update(digest)
            if row[0] not in there or digest_row(there[row[0]]) != digest:
                different.append(row[0])
        done += len(rows)
        on_progress(f"Comparing {table.label}", done, total)
    if different:
        shown = ", ".join(map(str, different[:MAX_SHOWN]))
        raise _mismatch(source, target, f"{len(different):,} of {total:,} {table.label}, such as {shown}")
    return MovedTable(table.label, total, whole.hexdigest())


def _mismatch(source: Source, target: Target, what: str) -> MoveMismatch:
    return MoveMismatch(
        f"The target {target.place} differs from {source.place} in {what}. The source is as it was. Run the command "
        "again: it moves everything anew."
    )


def _digest_content(source: Source, on_progress: OnProgress) -> str:
    """Return a digest that differs after any change of a store; chunks and vectors change with the list of changes."""
    whole = hashlib.sha256(repr(source.counters()).encode())
    for table in TABLES:
        if table.name not in SAMPLES:
            on_progress(f"Reading {table.label}", 0, 1)
            _update(whole, (row for rows in _pages(source, table) for row in rows))
    last = source.counters().change
    _update(whole, source.rows_with(CHANGES, [last]).values())
    return whole.hexdigest()


def _update(whole: Any, rows: Iterable[Row]) -> None:
    for row in rows:
        whole.update(digest_row(row))


def _pages(source: Source, table: Table) -> Iterator[list[Row]]:
    after: Key | None = None
    while rows := source.rows_after(table, after, table.batch):
        after = rows[-1][0]
        yield rows


def digest_row(row: Row) -> bytes:
    """Return a digest that is the same for equal rows of any engine."""
    whole = hashlib.sha256()
    for value in row:
        match value:
            case bytes():
                packed = value
            case str():
                packed = value.encode(errors="surrogatepass")
            case _:
                packed = repr(value).encode()
        whole.update(f"{type(value).__name__} {len(packed)} ".encode())
        whole.update(packed)
    return whole.digest()
