"""Evaluation cases: a query and what it should find."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bedstone.errors import InvalidInput

DEFAULT_LIMIT = 5
DEFAULT_MAX_ROUNDS = 3


@dataclass(frozen=True)
class Case:
    """A query and what it should find: a chunk, or files with grades."""

    query: str
    chunk: str | None = None
    grades: Mapping[str, float] = field(default_factory=dict)
    filters: Mapping[str, str] = field(default_factory=dict)
    limit: int = DEFAULT_LIMIT
    max_rounds: int = DEFAULT_MAX_ROUNDS
    name: str = ""
    category: str = "all"

    @property
    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the search."""
        return {"query": self.query, "limit": self.limit, **self.filters}

    def rank_hits(self, hits: Sequence[Mapping[str, Any]], file_level: bool) -> tuple[list[str], Mapping[str, float]]:
        """Return the ids of the hits, of chunks or of files, and the grades of those that are relevant."""
        if self.chunk is not None and not file_level:
            return [hit["chunk_id"] for hit in hits], {self.chunk: 1.0}
        return [hit["filepath"] for hit in hits], self.grades


def read_cases(path: Path, *, filters: bool = True) -> list[Case]:
    """Read cases from a JSON file; an error names the invalid case."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInput(f"Cannot read cases from {path}: {error}") from None
    rows = rows.get("cases") if isinstance(rows, dict) else rows
    if not isinstance(rows, list) or not rows:
        raise InvalidInput(f"{path} must hold a list of cases.")
    return [_parse_case(row, f"{path.name}[{number}]", filters) for number, row in enumerate(rows)]


def _parse_case(row: Any, where: str, filters: bool) -> Case:
    if not isinstance(row, dict) or not isinstance(row.get("query"), str) or not row["query"].strip():
        raise InvalidInput(f"{where}: query must be a non-empty string.")
    chunk, files = row.get("expectedChunkId"), row.get("expectedFiles") or {}
    grades = row.get("qrels") or (dict.fromkeys(files, 1) if isinstance(files, list) else files)
    if not isinstance(grades, dict) or not all(isinstance(grade, int | float) for grade in grades.values()):
        raise InvalidInput(f"{where}: expectedFiles must be a list of paths, or grades by path.")
    if not isinstance(row.get("filters") or {}, dict):
        raise InvalidInput(f"{where}: filters must be an object.")
    for name in ("limit", "maxRounds"):
        if name in row and (type(row[name]) is not int or row[name] < 1):
            raise InvalidInput(f"{where}: {name} must be a positive integer.")
    if chunk is None and not grades:
        raise InvalidInput(f"{where}: expectedChunkId or expectedFiles is missing.")
    return Case(
        query=row["query"],
        chunk=chunk,
        grades=grades or {str(chunk).partition("#")[0]: 1},
        filters=(row.get("filters") or {}) if filters else {},
        limit=row.get("limit", DEFAULT_LIMIT),
        max_rounds=row.get("maxRounds", DEFAULT_MAX_ROUNDS),
        name=str(row.get("name") or row["query"]),
        category=str(row.get("category") or "all"),
    )
