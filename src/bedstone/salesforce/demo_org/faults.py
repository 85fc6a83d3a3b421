"""Switches that make the demo org misbehave as real ones do, for tests and for curious users."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from bedstone.errors import InvalidInput

NAMES = {
    "expired-token": "every token so far is refused once",
    "limit-near": "nine tenths of the daily calls are used up",
    "limit-over": "the daily calls are used up",
    "unavailable": "every answer is 503",
    "flaky": "every second answer is 503",
    "slow": "every answer takes 300 ms",
    "knowledge-off": "Knowledge is not enabled",
    "no-permission": "Knowledge is there, but not for this user",
    "search-off": "SOSL is refused",
    "small-batches": "queries answer 5 rows at a time",
    "fixed-clock": "it is 15 June 2026, nine in the morning UTC",
}
FIXED = datetime(2026, 6, 15, 9, 0, tzinfo=UTC)
SLOW_SECONDS, SMALL_BATCH = 0.3, 5
DAILY_CALLS = 15_000


@dataclass(frozen=True)
class Faults:
    """Those that are on."""

    names: frozenset[str] = field(default_factory=frozenset)

    @classmethod
    def of(cls, names: object) -> "Faults":
        """By their names."""
        chosen = frozenset(str(name) for name in names) if isinstance(names, list | tuple | set | frozenset) else None
        if chosen is None or chosen - set(NAMES):
            unknown = ", ".join(sorted(chosen - set(NAMES))) if chosen else "a list is needed"
            raise InvalidInput(f"Unknown faults: {unknown}. There are: {', '.join(NAMES)}")
        return cls(chosen)

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def without(self, name: str) -> "Faults":
        """The others."""
        return replace(self, names=self.names - {name})

    def used(self, calls: int) -> int:
        """How many of the daily calls count as used."""
        if "limit-over" in self.names:
            return DAILY_CALLS
        return max(calls, DAILY_CALLS * 9 // 10) if "limit-near" in self.names else calls
