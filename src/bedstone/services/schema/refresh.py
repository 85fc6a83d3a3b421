"""Describe some objects of an org again, between two syncs, so that a query is checked against what the org has now."""

import logging
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import TYPE_CHECKING

from anyio import to_thread

from bedstone.salesforce.client import SalesforceClient, SalesforceError
from bedstone.salesforce.client.errors import NOT_FOUND_STATUS
from bedstone.salesforce.graph.describes import BadDescribe, from_describe, to_row
from bedstone.salesforce.graph.model import ObjectSchema, SchemaGraph
from bedstone.salesforce.soql.tree import Query
from bedstone.salesforce.validation.used_objects import used_objects
from bedstone.services.schema.store import SchemaStore, Staged
from bedstone.services.schema.sync import FIRST_ERROR_STATUS, REFRESHED_AT

if TYPE_CHECKING:
    from bedstone.services.schema.service import KnownOrg

logger = logging.getLogger(__name__)

MAX_OBJECTS = 10  # described for one query
MAX_ROUNDS = 3  # calls for one query: a path leads to objects that are known only after a describe
MAX_REMEMBERED = 1_000
REPEAT_SECONDS = 60.0  # an object is described again after this time at the earliest


@dataclass
class Described:
    """What the org answered: objects that differ from the schema, and objects of the schema that it does not have."""

    objects: list[ObjectSchema] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


class SchemaRefresh:
    """Refreshes the objects of queries. `writes` is off for a server that must not change its data folder."""

    def __init__(self, *, writes: bool = True) -> None:
        self._writes = writes
        self._described_at: dict[tuple[str, str], float] = {}

    async def of_query(
        self, query: Query, graph: SchemaGraph, known: "KnownOrg", client: SalesforceClient
    ) -> SchemaGraph:
        """Describe the objects of a query, store what changed, and return the graph with it."""
        left = MAX_OBJECTS
        for _ in range(MAX_ROUNDS):
            names = [name for name in used_objects(query, graph) if self._is_due(known.name, name)][:left]
            if not names:
                break
            left -= len(names)
            try:
                described = await self._describe(names, graph, known, client)
            except SalesforceError as error:  # the query itself will tell what is wrong
                logger.info(
                    "Cannot describe %s: %s", ", ".join(names), error.message, extra={"action": "not_refreshed"}
                )
                break
            graph = _with_changes(graph, described)
        return graph

    def _is_due(self, org: str, name: str) -> bool:
        last = self._described_at.get((org, name.lower()))
        return last is None or time.monotonic() - last > REPEAT_SECONDS

    def _note(self, org: str, name: str) -> None:
        """Remember when an object was described; names that agents made up are forgotten."""
        now = time.monotonic()
        if len(self._described_at) >= MAX_REMEMBERED:
            self._described_at = {key: at for key, at in self._described_at.items() if now - at <= REPEAT_SECONDS}
        self._described_at[org, name.lower()] = now

    async def _describe(
        self, names: Sequence[str], graph: SchemaGraph, known: "KnownOrg", client: SalesforceClient
    ) -> Described:
        asked_at = format_datetime(datetime.now(UTC).replace(microsecond=0), usegmt=True)
        described = Described()
        # Unconditional: after a change of permissions alone, the org would answer 304.
        async for name, status, body in client.describe_many(names):
            self._note(known.name, name)
            if status == NOT_FOUND_STATUS:
                described.missing += [name] if graph.get(name) is not None else []
            elif status < FIRST_ERROR_STATUS:
                item = _parse(name, body)
                described.objects += [item] if item is not None and item != graph.get(name) else []
        if self._writes and (described.objects or described.missing):
            await to_thread.run_sync(_save, known.store, described, asked_at)
        return described


def _parse(name: str, body: object) -> ObjectSchema | None:
    try:
        return from_describe(body)
    except BadDescribe as error:
        logger.warning("Cannot read the describe of %s: %s", name, error.message, extra={"action": "bad_describe"})
        return None


def _save(store: SchemaStore, described: Described, asked_at: str) -> None:
    """Store what was described; the graph in memory is right even if that fails."""
    rows = [Staged(item.name, to_row(item), asked_at) for item in described.objects]
    try:
        store.update(rows, described.missing, {REFRESHED_AT: datetime.now(UTC).isoformat()})
    except sqlite3.Error as error:
        logger.warning("Cannot store described objects: %s", error, extra={"action": "not_stored"})


def _with_changes(graph: SchemaGraph, described: Described) -> SchemaGraph:
    if not described.objects and not described.missing:
        return graph
    objects = {**graph.objects, **{item.name.lower(): item for item in described.objects}}
    for name in described.missing:
        objects.pop(name.lower(), None)
    problems = {name: text for name, text in graph.problems.items() if name.lower() not in objects}
    return SchemaGraph.of(objects.values(), problems, graph.unsynced)
