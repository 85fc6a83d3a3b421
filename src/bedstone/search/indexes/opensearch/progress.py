"""How far an index in a cluster has followed its store: kept in the cluster, and written by one process only."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Self

from bedstone.search.indexes.fields import ANALYSIS
from bedstone.search.indexes.opensearch import bodies
from bedstone.search.indexes.opensearch.connection import ClusterConflict, Connection
from bedstone.store.engine import Store

if TYPE_CHECKING:
    from bedstone.settings.sections import OpenSearchSettings

LAYOUT = 1  # of the bodies; with that of the analysis part of every name, so that two versions can run side by side
STORE_ID = "search_cluster_id"  # value in the store: its indexes in a cluster
MAX_ROUTINGS = 1_000  # to try for every shard


@dataclass(frozen=True, slots=True)
class Progress:
    """The index that holds a table, the last change in it, and the version of this record.

    `routings` lead to each of its shards. A new index gets what the store has now: changes up to `whole_until` brought
    nothing that is not there. `version` makes a second writer fail: each write names the one before.
    """

    index: str
    routings: tuple[str, ...]
    dimensions: int = 0
    seq: int = 0
    stamp: int = 0
    whole_until: int = 0
    is_damaged: bool = False
    version: tuple[int, int] | None = None

    @classmethod
    def from_answer(cls, answer: Mapping[str, Any]) -> Self:
        """Return what a cluster has recorded."""
        source = answer["_source"]
        return cls(
            source["index"],
            tuple(source["routings"]),
            source["dimensions"],
            source["seq"],
            source["stamp"],
            source["whole_until"],
            source["is_damaged"],
            (answer["_seq_no"], answer["_primary_term"]),
        )

    def to_source(self) -> dict[str, Any]:
        """Return what to record."""
        return {
            "index": self.index,
            "routings": [*self.routings],
            "dimensions": self.dimensions,
            "seq": self.seq,
            "stamp": self.stamp,
            "whole_until": self.whole_until,
            "is_damaged": self.is_damaged,
        }


class Records:
    """The records of one store's tables."""

    def __init__(self, connection: Connection, settings: "OpenSearchSettings", store: Store) -> None:
        self._connection = connection
        self._settings = settings
        self._store = store

    @property
    def base(self) -> str | None:
        """The beginning of all names of this store; None before a writer has chosen it."""
        store_id = self._store.get_value(STORE_ID)
        return f"{self._settings.prefix}-{store_id}-v{ANALYSIS}.{LAYOUT}" if store_id else None

    def read(self, table: str) -> Progress | None:
        """Return the progress of a table; None before a writer has begun."""
        if self.base is None:
            return None
        answer = self._connection.get(self._state, table)
        return Progress.from_answer(answer) if answer else None

    def begin(self, table: str, body: bodies.Body, dimensions: int, whole_until: int, old: Progress | None) -> Progress:
        """Create an empty index in place of another one, and delete that one."""
        if self.base is None:
            self._store.set_value(STORE_ID, token_hex(8))
        self._connection.create(self._state, bodies.state_body(self._settings))
        index = f"{self.base}-{table}-{token_hex(4)}"
        self._connection.create(index, body)
        version = old.version if old else None
        progress = Progress(index, self._find_routings(index), dimensions, whole_until=whole_until, version=version)
        try:
            progress = self.write(table, progress)
        except ClusterConflict:  # another process has begun too
            self._connection.delete_index(index)
            raise
        if old is not None:
            self._connection.delete_index(old.index)
        return progress

    def write(self, table: str, progress: Progress) -> Progress:
        """Record how far a table is, unless another process has."""
        condition: dict[str, Any] = {"op_type": "create"}
        if progress.version is not None:
            condition = dict(zip(("if_seq_no", "if_primary_term"), progress.version, strict=True))
        answer = self._connection.put(self._state, table, progress.to_source(), condition)
        return replace(progress, version=(answer["_seq_no"], answer["_primary_term"]))

    @property
    def _state(self) -> str:
        return f"{self.base}-state"

    def _find_routings(self, index: str) -> tuple[str, ...]:
        found: dict[int, str] = {}
        for number in range(MAX_ROUTINGS):
            found.setdefault(self._connection.find_shard(index, str(number)), str(number))
            if len(found) == self._settings.shards:
                break
        return tuple(found.values())
