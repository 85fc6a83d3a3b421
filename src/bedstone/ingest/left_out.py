"""Record what a reader leaves out of a text: exact counts of every kind, and the texts within limits."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal[
    "repeated line",  # a header or footer that the text has once
    "page number",
    "hidden text",  # not displayed by the program the file is for
    "deleted text",  # by a tracked change
    "other version",  # of a text that was kept: another part of a message, a text layer, the result of OCR
    "uncertain OCR",  # recognized with too little confidence
    "picture",  # not searched for text
    "scanned page",  # not recognized, because OCR is switched off
    "attachment",  # named in the text, but not read
    "embedded file",  # neither named nor read
    "front matter",
]
# One text for all of them: each occurs once, and lists of them are long.
JOINED: tuple[Kind, ...] = ("page number",)
MAX_ITEMS = 100
MAX_TEXT_CHARS = 160
MAX_JOINED_CHARS = 2_000
MAX_RANGES = 20
ELLIPSIS = "…"
# A header or footer that names nothing but the page; only fields make it one, since "2026" may be a title.
PAGE_NUMBER = re.compile(
    r"[-\u2013\u2014]?\s*(?:(?:page|seite|p\.|s\.)\s*)?\d*(?:\s*(?:/|of|von)\s*\d*)?\s*[-\u2013\u2014]?", re.IGNORECASE
)
NOT_WORD = re.compile(r"[\W_]+")
MAX_COMPARED_LINES = 5_000  # further ones count as missing: comparing takes time


def shorten(text: str, limit: int) -> str:
    """Return a text, or its beginning if it has more than `limit` characters."""
    return text if len(text) <= limit else f"{text[: limit - 1].rstrip()}{ELLIPSIS}"


def missing_lines(lines: Iterable[str], text: str) -> list[str]:
    """Return the lines whose words a text does not have in the same order."""
    known = NOT_WORD.sub("", text).lower()
    found = []
    for number, line in enumerate(lines):
        key = NOT_WORD.sub("", line).lower()
        if key and (number >= MAX_COMPARED_LINES or key not in known):
            found.append(line)
    return found


@dataclass
class LeftOutItem:
    """A text that was left out: how often, and on which pages."""

    kind: str
    text: str
    count: int = 0
    ranges: list[tuple[int, int]] = field(default_factory=list)

    @property
    def pages(self) -> str:
        """Return the pages as people write them: 1-3, 7."""
        written = [str(first) if first == last else f"{first}-{last}" for first, last in self.ranges]
        return ", ".join(written[:MAX_RANGES]) + (f", {ELLIPSIS}" if len(written) > MAX_RANGES else "")

    def add(self, count: int, page: int | None) -> None:
        """Count one more occurrence."""
        self.count += count
        if page is None or len(self.ranges) > MAX_RANGES:
            return
        first, last = self.ranges[-1] if self.ranges else (page, page - 1)
        if page == last + 1:
            self.ranges[-1:] = [(first, page)]
        elif page != last:
            self.ranges.append((page, page))

    def join(self, text: str) -> None:
        """Append another text of the same kind."""
        if not self.text.endswith(ELLIPSIS):
            longer = f"{self.text}, {text}" if self.text else text
            self.text = longer if len(longer) <= MAX_JOINED_CHARS else f"{self.text}, {ELLIPSIS}"


@dataclass
class LeftOut:
    """Everything that was left out of a document; it grows while a reader runs."""

    counts: dict[str, int] = field(default_factory=dict)
    items: list[LeftOutItem] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._known = {(item.kind, item.text): item for item in self.items}

    @property
    def total(self) -> int:
        """Return how many texts were left out, every occurrence counted."""
        return sum(self.counts.values())

    def add(self, kind: Kind, text: str, page: int | None = None, count: int = 1) -> None:
        """Record a text, unless it is white space alone."""
        line = " ".join(text.split())
        if not line or count < 1:
            return
        self.counts[kind] = self.counts.get(kind, 0) + count
        shown = shorten(line, MAX_TEXT_CHARS)
        item = self._item(kind, "" if kind in JOINED else shown)
        if item is None:
            return
        item.add(count, page)
        if kind in JOINED:
            item.join(shown)

    def _item(self, kind: str, text: str) -> LeftOutItem | None:
        item = self._known.get((kind, text))
        if item is None and len(self.items) < MAX_ITEMS:
            item = self._known[kind, text] = LeftOutItem(kind, text)
            self.items.append(item)
        return item

    def summary(self) -> str:
        """Return the counts in one line: repeated line (23), page number (24)."""
        return ", ".join(f"{kind} ({count:,})" for kind, count in self.counts.items())

    def to_dict(self) -> dict[str, Any]:
        """Return counts and texts as JSON has them."""
        items = [
            {
                "kind": item.kind,
                "text": item.text,
                "count": item.count,
                **({"pages": item.pages} if item.ranges else {}),
            }
            for item in self.items
        ]
        return {"total": self.total, "counts": dict(self.counts), "items": items}

    def state(self) -> dict[str, Any]:
        """Return every count and item under a key of its own, so that changes can be told."""
        counts = {f"count {kind}": count for kind, count in self.counts.items()}
        items = enumerate(self.items)
        return counts | {f"item {at:03}": [item.kind, item.text, item.count, item.ranges[:]] for at, item in items}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a state, in which the keys may be in any order."""
        for key, value in sorted(state.items()):
            if key.startswith("count "):
                self.counts[key.removeprefix("count ")] = value
            else:
                kind, text, count, ranges = value
                item = LeftOutItem(kind, text, count, [(first, last) for first, last in ranges])
                self.items.append(item)
                self._known[kind, "" if kind in JOINED else text] = item

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "LeftOut":
        """Return what `to_dict` wrote."""
        items = [
            LeftOutItem(item["kind"], item["text"], int(item["count"]), _ranges(item.get("pages", "")))
            for item in data.get("items", ())
        ]
        return cls({str(kind): int(count) for kind, count in data.get("counts", {}).items()}, items)


def _ranges(pages: str) -> list[tuple[int, int]]:
    found = []
    for part in pages.split(", "):
        first, _, last = part.partition("-")
        if first.isdigit():
            found.append((int(first), int(last or first)))
        elif part == ELLIPSIS:
            found.append((0, 0))  # one more than are written
    return found
