"""Sync a schema from an org or a folder of describes; it is served when all objects are staged."""

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

from anyio import to_thread

from bedstone.errors import InvalidInput, Unavailable, explain
from bedstone.permissions import make_private_folder
from bedstone.salesforce.client import SalesforceClient, SalesforceError
from bedstone.salesforce.client.client import NOT_MODIFIED
from bedstone.salesforce.graph.categories import DERIVED
from bedstone.salesforce.graph.describes import BadDescribe, from_describe, to_row
from bedstone.services.schema.store import SchemaStore, Staged
from bedstone.store.locks import FileLock

logger = logging.getLogger(__name__)

OnProgress = Callable[[int, int], None]  # done, total
MAX_RESUME_AGE = timedelta(hours=24)
FIRST_ERROR_STATUS = 400
MAX_NAMES = 2_000
BATCH_SIZE = 25  # objects of one describe call

# Names of facts in the store
STARTED = "started"
WANTED = "wanted"
SYNCED_AT = "synced_at"
REFRESHED_AT = "refreshed_at"  # some objects were described after the sync
ORG_ID = "org_id"
SOURCE = "source"
NAMES = "names"


class SyncBusy(Unavailable):
    """Another process is syncing the same schema."""

    code = "sync_busy"


@dataclass(frozen=True)
class SyncReport:
    """The result of a sync."""

    objects: int
    changed: int
    removed: int
    failed: int


class SchemaSync:
    """Syncs the schema of one org. The next sync resumes an interrupted one."""

    def __init__(self, store: SchemaStore) -> None:
        self._store = store

    async def from_org(
        self,
        client: SalesforceClient,
        on_progress: OnProgress = lambda done, total: None,
        *,
        derived: bool = False,
        record_names: bool = True,
    ) -> SyncReport:
        """Load the objects that changed; with `derived` also shares, feeds and histories.

        `record_names` loads the names of accounts too, to tell a company from a field in a question.
        """
        with self._lock():
            objects = [item for item in await client.describe_global() if item.get("queryable", True)]
            names = _select_names({item["name"] for item in objects}, derived=derived)
            organization = [row async for row in client.rows("SELECT Id FROM Organization LIMIT 1")]
            org_id = organization[0]["Id"] if organization else ""
            staged, started = await to_thread.run_sync(self._resume, org_id, len(names))
            await self._describe(
                client, [name for name in names if name not in staged], started, len(names), on_progress
            )
            accounts = await _account_names(client) if record_names else []
            unsynced = sorted({item["name"] for item in objects} - set(names))
            facts = {NAMES: json.dumps(accounts, ensure_ascii=False), "unsynced": " ".join(unsynced)}
            return await to_thread.run_sync(self._finish, names, org_id, "org", facts)

    def from_folder(self, folder: Path, on_progress: OnProgress = lambda done, total: None) -> SyncReport:
        """Import describes that are saved as JSON files, with one or more objects each."""
        with self._lock():
            return self._import(sorted(folder.rglob("*.json")), folder, on_progress)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        make_private_folder(self._store.folder)
        lock = FileLock(self._store.folder / ".owner")
        if not lock.acquire():
            raise SyncBusy("Another process is syncing this schema. Try again when it has finished.")
        try:
            yield
        finally:
            lock.release()

    def _import(self, files: Sequence[Path], folder: Path, on_progress: OnProgress) -> SyncReport:
        started = datetime.now(UTC)
        self._store.restart({STARTED: started.isoformat(), WANTED: str(len(files))})
        names: list[str] = []
        for number, file in enumerate(files, start=1):
            try:
                objects = [from_describe(item) for item in _read_describes(file)]
            except BadDescribe as error:
                raise BadDescribe(f"{file}: {error.message}") from None
            staged = [Staged(item.name, to_row(item), format_datetime(started, usegmt=True)) for item in objects]
            self._store.stage(staged, {})
            names += [item.name for item in staged]
            on_progress(number, len(files))
        if not names:
            raise InvalidInput(f"No describe of an object found in {folder}.")
        return self._finish(names, "", str(folder))

    def _resume(self, org_id: str, total: int) -> tuple[set[str], datetime]:
        """Return the staged names and start of an interrupted sync of the same org, or start a new one."""
        facts = self._store.facts()
        now = datetime.now(UTC)
        started = datetime.fromisoformat(facts[STARTED]) if facts.get(STARTED) else None
        if started is not None and now - started < MAX_RESUME_AGE and facts.get("staged_org") == org_id:
            return self._store.staged_names(), started
        if facts.get(ORG_ID) not in (None, "", org_id):  # another org has this name now: delete its objects
            self._store.complete([], {SYNCED_AT: ""})
        self._store.restart({STARTED: now.isoformat(), WANTED: str(total), "staged_org": org_id})
        return set(), now

    async def _describe(
        self, client: SalesforceClient, names: Sequence[str], started: datetime, total: int, on_progress: OnProgress
    ) -> None:
        times = await to_thread.run_sync(self._store.object_times)
        since = format_datetime(started.replace(microsecond=0), usegmt=True)
        done = total - len(names)
        batch: list[Staged] = []
        async for name, status, body in client.describe_many(names, since=times):
            batch.append(_stage(name, status, body, since))
            done += 1
            if len(batch) == BATCH_SIZE:
                await to_thread.run_sync(self._store.stage, batch, {})
                batch = []
                on_progress(done, total)
        await to_thread.run_sync(self._store.stage, batch, {})
        on_progress(total, total)

    def _finish(
        self, names: Sequence[str], org_id: str, source: str, more: Mapping[str, str] | None = None
    ) -> SyncReport:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        changed, removed = self._store.complete(
            names, {SYNCED_AT: now, ORG_ID: org_id, SOURCE: source, STARTED: "", WANTED: "", **(more or {})}
        )
        graph = self._store.load()
        return SyncReport(len(graph.objects), changed, removed, len(graph.problems))


async def _account_names(client: SalesforceClient) -> list[str]:
    """Return the names of accounts, the last modified first."""
    statement = f"SELECT Name FROM Account ORDER BY LastModifiedDate DESC LIMIT {MAX_NAMES}"
    try:
        return [row["Name"] async for row in client.rows(statement) if row.get("Name")]
    except SalesforceError as error:  # no accounts, or no permission to read them
        logger.info("Cannot read the names of accounts: %s", error.message, extra={"action": "no_names"})
        return []


def _stage(name: str, status: int, body: Any, since: str) -> Staged:
    if status == NOT_MODIFIED:
        return Staged(name, None, since)
    if status >= FIRST_ERROR_STATUS:
        first = body[0] if isinstance(body, list) and body else {}
        reason = str(first.get("message") or f"status {status}")
        logger.warning("Cannot describe %s: %s", name, reason, extra={"action": "not_described"})
        return Staged(name, None, since, reason)
    try:
        return Staged(name, to_row(from_describe(body)), since)
    except BadDescribe as error:
        return Staged(name, None, since, error.message)


def _select_names(names: set[str], *, derived: bool) -> list[str]:
    """Return the names to sync; without `derived`, leave out shares, feeds and histories."""

    def is_derived(name: str) -> bool:
        if name.endswith(tuple(f"__{suffix}" for suffix in DERIVED)):
            return True
        return any(name.endswith(suffix) and name.removesuffix(suffix) in names for suffix in DERIVED)

    return sorted(name for name in names if derived or not is_derived(name))


def _read_describes(file: Path) -> Iterator[Any]:
    """Yield all describes in a file, at any depth."""
    try:
        content = json.loads(file.read_text("utf-8-sig"))
    except (ValueError, OSError, RecursionError) as error:
        raise InvalidInput(f"Cannot read {file}: {explain(error)}.") from None
    waiting = [content]
    while waiting:
        item = waiting.pop(0)
        if isinstance(item, dict) and isinstance(item.get("fields"), list) and "name" in item:
            yield item
        elif isinstance(item, dict):
            waiting += [value for key, value in item.items() if isinstance(value, dict | list) and key != "fields"]
        elif isinstance(item, list):
            waiting += [value for value in item if isinstance(value, dict)]
