"""Queries that are the same in every engine with SQL."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from bedstone.records import Change
from bedstone.store.codec import CHANGE_COLUMNS


class SqlReading(ABC):
    """What an engine reads with queries that need no parameters."""

    @abstractmethod
    def _read(self, query: str, *values: Any) -> list[Any]:
        """Return all rows of a query."""

    def digests(self) -> dict[str, str]:
        return dict(self._read("SELECT id, digest FROM document"))

    def titles(self) -> dict[str, str]:
        return dict(self._read("SELECT id, title FROM document ORDER BY id"))

    def facets(self) -> Mapping[str, Sequence[str]]:
        values: dict[str, set[str]] = {}
        for (pairs,) in self._read("SELECT pairs FROM facets WHERE id IN (SELECT DISTINCT facets FROM chunk)"):
            for key, value in json.loads(pairs).items():
                values.setdefault(key, set()).add(value)
        return {key: sorted(found) for key, found in sorted(values.items())}

    def last_change(self) -> Change | None:
        rows = self._read(f"SELECT {CHANGE_COLUMNS} FROM change ORDER BY seq DESC LIMIT 1")
        return Change(*rows[0]) if rows else None

    def cancel_requests(self) -> set[str]:
        return {task_id for (task_id,) in self._read("SELECT task FROM cancel_request")}
