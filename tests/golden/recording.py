"""Record what the product answers, and compare a later answer with it, without what differs from run to run."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SCORES = ("score", "relevance_score", "confidence", "similarity")
SCORE_TOLERANCE = 0.03  # processors round quantised vectors differently
MAX_TIE_GAP = 0.02
MIN_CUT_LIST = 3
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# What differs from run to run, and what stands for it.
VARYING = (
    (re.compile(r"Bedstone \d+\.\d+\.\d+"), "Bedstone <version>"),
    (re.compile(r"~[0-9a-f]{8}\b"), "~<id>"),
)
TIMING = re.compile(r"(_ms|_seconds|age_hours|ageHours)$")
CURSORS = ("next_cursor", "nextCursor")


def load(name: str) -> list[dict[str, Any]]:
    """Read a recording: one row on each line."""
    rows: list[dict[str, Any]] = json.loads((HERE / name).read_text(encoding="utf-8"))
    return rows


def save(name: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write a recording, one row on each line, so that a change is easy to review."""
    lines = ",\n".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows)
    (HERE / name).write_text(f"[\n{lines}\n]\n", encoding="utf-8")


class Names:
    """Names for values that differ from run to run: `{document:dealers.csv}` in a request, and in its answer."""

    def __init__(self, **values: str) -> None:
        self._values = values
        day = datetime.now(UTC)
        days = "|".join(f"{day + timedelta(days=days):%Y-%m-%d}" for days in (-1, 0, 1))
        self._now = re.compile(rf"({days})([T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|\+00:?00| UTC)?)?")

    def fill(self, value: Any) -> Any:
        """Put the values of this run into a request."""
        text = json.dumps(value)
        for name, known in self._values.items():
            text = text.replace(f"{{{name}}}", known)
        return json.loads(text)

    def learn(self, answer: Any) -> None:
        """Remember the ids and cursors of an answer under names of their own."""
        for row in _rows(answer):
            name, key = row.get("filename"), row.get("document_id", row.get("id"))
            if name and key:
                self._values[f"document:{name}"] = key
            if "chunk_id" in row and UUID.fullmatch(row["chunk_id"]):
                self._values["chunk"] = row["chunk_id"]
            if row.get("task_id"):
                self._values["task"] = row["task_id"]
            for cursor in CURSORS:
                self._values["cursor"] = row.get(cursor) or self._values.get("cursor", "")

    def clean(self, value: Any, key: str = "") -> Any:
        """Take the values of this run out of an answer."""
        if isinstance(value, dict):
            return {name: self.clean(part, name) for name, part in value.items()}
        if isinstance(value, list):
            return [self.clean(part) for part in value]
        if isinstance(value, int | float) and TIMING.search(key):
            return "<duration>"
        if isinstance(value, str):
            return "<cursor>" if key in CURSORS else self.clean_text(value)
        return round(value, 2) if key in SCORES and isinstance(value, float) else value

    def clean_text(self, text: str) -> str:
        """Take the values of this run out of a text."""
        for name, known in self._values.items():
            if name != "cursor" and known:
                text = text.replace(known, f"{{{name}}}")
        for pattern, name in VARYING:
            text = pattern.sub(name, text)
        return self._now.sub("<now>", UUID.sub("<id>", text))


def _rows(value: Any) -> Iterator[dict[str, Any]]:
    """Every object in an answer, the first ones last: the names they give are the ones that stay."""
    parts = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    for part in reversed(parts):
        yield from _rows(part)
    if isinstance(value, dict):
        yield value


def differences(expected: Any, actual: Any, place: str = "") -> list[str]:
    """Say where two answers differ: scores within a tolerance, results with nearly the same score in any order."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        found = [f"{place}.{name}: only in one" for name in expected.keys() ^ actual.keys()]
        for name in expected.keys() & actual.keys():
            found += differences(expected[name], actual[name], f"{place}.{name}")
        return found
    if isinstance(expected, list) and isinstance(actual, list):
        if len(expected) != len(actual):
            return [f"{place}: {len(expected)} entries, now {len(actual)}"]
        if expected and all(_score(row) is not None for row in (*expected, *actual)):
            return _ranked_differences(expected, actual, place)
        pairs = enumerate(zip(expected, actual, strict=True))
        return [text for number, (one, other) in pairs for text in differences(one, other, f"{place}[{number}]")]
    if place.endswith(SCORES) and isinstance(expected, int | float) and isinstance(actual, int | float):
        is_same = abs(expected - actual) <= SCORE_TOLERANCE
    else:
        is_same = expected == actual and type(expected) is type(actual)
    return [] if is_same else [f"{place}: {expected!r}, now {actual!r}"]


def _score(row: Any) -> float | None:
    return next((row[name] for name in SCORES if name in row), None) if isinstance(row, dict) else None


def _ranked_differences(expected: list[Any], actual: list[Any], place: str) -> list[str]:
    """Compare tie by tie. The limit may cut the last tie: there another result with the same score may stand."""
    found: list[str] = []
    for start, end in _ties(expected):
        left = actual[start:end]
        for number in range(start, end):
            options = [differences(expected[number], row, f"{place}[{number}]") for row in left]
            best = min(range(len(left)), key=lambda option, options=options: len(options[option]))  # type: ignore[misc]
            is_cut = end == len(expected) >= MIN_CUT_LIST
            is_equal = abs((_score(expected[number]) or 0) - (_score(left[best]) or 0)) <= SCORE_TOLERANCE
            found += [] if is_cut and is_equal else options[best]
            left.pop(best)
    return found


def _ties(rows: list[Any]) -> Iterator[tuple[int, int]]:
    """Ranges of neighbours whose scores are too close to order them."""
    start = 0
    for number in range(1, len(rows) + 1):
        if number == len(rows) or abs(_score(rows[number - 1]) - _score(rows[number])) > MAX_TIE_GAP:  # type: ignore[operator]
            yield start, number
            start = number
