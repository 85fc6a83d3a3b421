"""What the workbench shows of a validation: each message with its place and its fix, and whether the query can run."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bedstone.salesforce.soql import SoqlParser, SyntaxProblem
from bedstone.salesforce.soql.layout import lay_out
from bedstone.salesforce.validation import Report
from bedstone.salesforce.validation.findings import Message
from bedstone.services.schema.execution import doubtful_codes
from bedstone.services.schema.service import OrgSchema
from bedstone.services.schema.sync import SYNCED_AT

MAX_SHOWN = 20
MAX_LABEL = 32  # characters of a fix that its button names
ADDED_LIMIT = "LIMIT 200"
QUOTED = re.compile(r'"([^"\n]{1,80})"')
PLACE = re.compile(r" at line \d+, column \d+")
KINDS: dict[str, Literal["bad", "warn", "info"]] = {"error": "bad", "warning": "warn", "info": "info"}


@dataclass(frozen=True)
class Edit:
    """A stretch of the query in UTF-16 units, as browsers count, and the text for it; `label` says what it does."""

    start: int
    end: int
    text: str
    label: str


@dataclass(frozen=True)
class Note:
    """A message: its words, some of them code, its place, and its fix."""

    kind: Literal["bad", "warn", "info"]
    parts: Sequence[tuple[str, bool]]  # a text, and whether it is code
    place: str = ""  # line:column
    start: int = 0
    end: int = 0
    fix: Edit | None = None


@dataclass(frozen=True)
class Check:
    """The state of a query in a word, and every message about it."""

    kind: Literal["", "good", "bad", "warn"]
    state: str
    notes: Sequence[Note] = ()
    hidden: int = 0  # messages beyond the maximum
    is_blocked: bool = False  # it is certain that the org would not run the query
    corrected: str | None = None
    correct_label: str = ""
    asks_org: bool = False  # only the org can tell
    synced_at: str | None = None


EMPTY = Check("", "Empty", is_blocked=True)


def describe_check(query: str, report: Report, org: OrgSchema, *, is_imported: bool) -> Check:
    """Return what to show of a report; names that an org may have by now do not block the query."""
    if not query.strip():
        return EMPTY
    messages = [item for item in report.messages if item.type in KINDS]
    errors = [item for item in messages if item.type == "error"]
    notes = sorted((_describe(query, item) for item in messages), key=lambda note: (_rank(note), note.start))
    doubts = frozenset[str]() if is_imported else doubtful_codes(org)
    is_blocked = any(item.code not in doubts for item in errors)
    return Check(
        "bad" if errors else "good",
        f"{len(errors)} error{'' if len(errors) == 1 else 's'}" if errors else "Valid",
        notes[:MAX_SHOWN],
        len(notes) - len(notes[:MAX_SHOWN]),
        is_blocked,
        _lay_out_like(query, report.corrected) if errors else None,
        {1: "Fix it", 2: "Fix both"}.get(len(errors), f"Fix all {len(errors)}"),
        asks_org=bool(errors) and not is_blocked,
        synced_at=org.facts.get(SYNCED_AT),
    )


def _describe(query: str, item: Message) -> Note:
    if item.code == "NO_LIMIT":
        return Note("warn", _split(item.message), start=len(query), fix=_limit_edit(query))
    start = _position(query, item.line, item.column)
    end = start + len(item.original or "")
    if item.type == "info":
        return Note("info", _split(item.message))
    units = (_count_units(query[:start]), _count_units(query[:end]))
    place = f"{item.line}:{item.column}"
    return Note(KINDS[item.type], _split(PLACE.sub("", item.message)), place, *units, _fix(item, *units))


def _fix(item: Message, start: int, end: int) -> Edit | None:
    if item.corrected is None or item.original is None:
        return None
    if not item.corrected:
        label = f"Remove {item.original}" if len(item.original) <= MAX_LABEL else "Remove it"
    else:
        label = f"Use {item.corrected}" if len(item.corrected) <= MAX_LABEL else "Fix this"
    return Edit(start, end, item.corrected, label)


def _limit_edit(query: str) -> Edit | None:
    """Return the edit that ends a query with LIMIT, unless something must stand after it."""
    try:
        tree = SoqlParser(query, "lenient").statement()
    except SyntaxProblem:
        return None
    if tree.offset or tree.binds or tree.purpose or tree.updates or tree.all_rows or query.rstrip().endswith(";"):
        return None
    end = _count_units(query.rstrip())
    return Edit(end, end, ("\n" if "\n" in query.strip() else " ") + ADDED_LIMIT, f"Add {ADDED_LIMIT}")


def _lay_out_like(query: str, corrected: str | None) -> str | None:
    """Return a corrected query; one that was written in several lines stays so."""
    if corrected is None or "\n" not in query.strip() or "\n" in corrected:
        return corrected
    return lay_out(SoqlParser(corrected, "rest").statement())


def _split(message: str) -> list[tuple[str, bool]]:
    """Return a message in parts: what stands in quotes is code."""
    parts = QUOTED.split(message)
    return [(part, place % 2 == 1) for place, part in enumerate(parts) if part]


def _rank(note: Note) -> int:
    return ("bad", "warn", "info").index(note.kind)


def _position(text: str, line: int, column: int) -> int:
    """Return the position of a line and a column."""
    lines = text.split("\n")
    return sum(len(item) + 1 for item in lines[: line - 1]) + column - 1


def _count_units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2
