"""Counts of rows that were asked for a moment ago."""

from dataclasses import dataclass, field

MAX_AGE_SECONDS = 300.0
MAX_COUNTS = 2_000


@dataclass
class RecentCounts:
    """Remembers counts for a few minutes; the oldest are dropped first."""

    _counts: dict[tuple[str, str], tuple[int, float]] = field(default_factory=dict)

    def get(self, key: tuple[str, str], now: float) -> int | None:
        """Return a count that is not too old."""
        count, made = self._counts.get(key, (None, 0.0))
        return count if now - made <= MAX_AGE_SECONDS else None

    def put(self, key: tuple[str, str], count: int, now: float) -> None:
        """Remember a count."""
        self._counts.pop(key, None)
        self._counts[key] = (count, now)
        while len(self._counts) > MAX_COUNTS:
            del self._counts[next(iter(self._counts))]
