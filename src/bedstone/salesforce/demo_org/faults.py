"""Faults: ways to fail that real orgs have, switched on for tests and demonstrations."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from bedstone.errors import InvalidInput

NAMES = {
    "expired-token": "every token issued so far is rejected",
    "limit-near": "90 % of the daily API calls are used",
    "limit-over": "the daily API limit is exceeded",
    "unavailable": "every response is 503",
    "flaky": "every second response is 503",
    "slow": "every response takes 300 ms",
    "knowledge-off": "Knowledge is not enabled",
    "no-permission": "the user has no permission for Knowledge",
    "api-off": "the REST API is not enabled for the org",
    "search-off": "SOSL is unavailable",
    "small-batches": "queries return 5 rows per page",
    "fixed-clock": "the time is 2026-06-15 09:00 UTC",
}
FIXED_TIME = datetime(2026, 6, 15, 9, 0, tzinfo=UTC)
SLOW_SECONDS = 0.3
SMALL_BATCH = 5
DAILY_CALLS = 15_000


@dataclass(frozen=True)
class Faults:
    """The faults that are on."""

    names: frozenset[str] = field(default_factory=frozenset)

    @classmethod
    def of(cls, names: object) -> "Faults":
        """Return faults by their names."""
        chosen = frozenset(str(name) for name in names) if isinstance(names, list | tuple | set | frozenset) else None
        if chosen is None or chosen - set(NAMES):
            unknown = ", ".join(sorted(chosen - set(NAMES))) if chosen else "a list is expected"
            raise InvalidInput(f"Unknown faults: {unknown}. Known faults: {', '.join(NAMES)}")
        return cls(chosen)

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def without(self, name: str) -> "Faults":
        """Return the other faults."""
        return replace(self, names=self.names - {name})

    def count_used(self, calls: int) -> int:
        """Return how many of the daily API calls count as used."""
        if "limit-over" in self.names:
            return DAILY_CALLS
        return max(calls, DAILY_CALLS * 9 // 10) if "limit-near" in self.names else calls
