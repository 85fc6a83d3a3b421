"""The syncs of the schemas of orgs: the default one every few minutes, each when it is asked for."""

import sqlite3
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from anyio import to_thread

from bedstone.errors import NotFound
from bedstone.services.schedule import PeriodicTask, describe_changes
from bedstone.services.schema.errors import OrgNotFound
from bedstone.services.schema.sync import SYNCED_AT
from bedstone.services.service import SyncFacts, format_count, parse_time

if TYPE_CHECKING:
    from bedstone.services.schema.service import KnownOrg, SchemaService


class OrgSyncs:
    """One sync per org; imported schemas have none."""

    def __init__(self, schemas: "SchemaService", minutes: int) -> None:
        self._schemas = schemas
        self._default = PeriodicTask(partial(self._sync, None), minutes, "Syncing the schema")
        self._others: dict[str, PeriodicTask] = {}

    def start(self) -> None:
        """Begin the periodic sync of the default org, if it is configured."""
        self._default.start()

    async def stop(self) -> None:
        """Stop every sync."""
        for task in (self._default, *self._others.values()):
            await task.stop()

    def run_now(self, name: str) -> None:
        """Begin to sync an org, unless that is going on."""
        if self._schemas.find_org(name).org is None:
            raise NotFound(f"The schema {name} was imported from files, so it has no org to sync it from.")
        self._task(name).run_now()

    def facts(self) -> Sequence[SyncFacts]:
        """Return the facts of each schema; the default org's failure also if no org is the default one."""
        found = [self._facts(org) for org in self._schemas.known_orgs()]
        is_nameless = self._default.record.problem and self._default_name() is None
        return [*found, self._default.facts("Schema", "the default org", "", None, "")] if is_nameless else found

    def _facts(self, org: "KnownOrg") -> SyncFacts:
        try:
            synced_at = parse_time(org.store.facts().get(SYNCED_AT))
        except sqlite3.Error:  # damaged: the summary says so
            synced_at = None
        known = "" if synced_at else "not synced yet"
        if org.org is None:
            return SyncFacts("Schema", f"{org.name}, imported", synced_at, rhythm="when it is imported again")
        return self._task(org.name).facts("Schema", f"org {org.name}", org.name, synced_at, known)

    def _task(self, name: str) -> PeriodicTask:
        if name == self._default_name():
            return self._default
        if name not in self._others:
            self._others[name] = PeriodicTask(partial(self._sync, name), 0, f"Syncing the schema of {name}")
        return self._others[name]

    def _default_name(self) -> str | None:
        try:
            return self._schemas.find_org(None).name
        except OrgNotFound:
            return None

    async def _sync(self, name: str | None) -> str:
        record = (self._default if name is None else self._others[name]).record
        report = await self._schemas.sync(name, record.tell)
        await to_thread.run_sync(self._schemas.embed_names, name)
        changes = describe_changes(changed=report.changed, removed=report.removed, failed=report.failed)
        return f"{format_count(report.objects, 'object')}, {changes}"
