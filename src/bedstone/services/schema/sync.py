"""A schema from its org, or from a folder of describes: in parts, kept as they come, served when all are there."""

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

from anyio import to_thread

from bedstone.errors import InvalidInput, Unavailable
from bedstone.salesforce.client import SalesforceClient, SalesforceError
from bedstone.salesforce.client.client import NOT_MODIFIED
from bedstone.salesforce.graph.categories import DERIVED
from bedstone.salesforce.graph.describes import BadDescribe, from_describe, to_row
from bedstone.services.schema.store import SchemaStore, Staged
from bedstone.store.locks import FileLock

logger = logging.getLogger(__name__)

Tell = Callable[[int, int], None]
RESUMED_FOR = timedelta(hours=24)
FIRST_ERROR = 400
STARTED, WANTED, SYNCED_AT, ORG_ID, SOURCE, NAMES = "started", "wanted", "synced_at", "org_id", "source", "names"
MOST_NAMES = 2_000


class SyncBusy(Unavailable):
    """Another process syncs the same schema."""

    code = "sync_busy"


@dataclass(frozen=True)
class SyncReport:
    """What a sync did."""

    objects: int
    changed: int
    removed: int
    failed: int


class SchemaSync:
    """Brings one org's schema up to date. A sync that was interrupted goes on where it was."""

    def __init__(self, store: SchemaStore) -> None:
        self._store = store

    async def from_org(
        self,
        client: SalesforceClient,
        tell: Tell = lambda done, total: None,
        *,
        derived: bool = False,
        record_names: bool = True,
    ) -> SyncReport:
        """Only objects that changed are sent again; `derived` takes shares, feeds and histories too.

        `record_names` also takes the names of companies, by which a name in a query is told from a field.
        """
        self._store.folder.mkdir(parents=True, exist_ok=True)
        ownership = FileLock(self._store.folder / ".owner")
        if not ownership.acquire():
            raise SyncBusy("Another process syncs this schema right now.")
        try:
            listed = [item for item in await client.describe_global() if item.get("queryable", True)]
            names = _wanted({item["name"] for item in listed}, derived=derived)
            organization = [row async for row in client.rows("SELECT Id FROM Organization LIMIT 1")]
            org_id = organization[0]["Id"] if organization else ""
            staged, started = await to_thread.run_sync(self._resumed, org_id, len(names))
            await self._describe(client, [name for name in names if name not in staged], started, len(names), tell)
            known = await _company_names(client) if record_names else []
            unsynced = sorted({item["name"] for item in listed} - set(names))
            facts = {NAMES: json.dumps(known, ensure_ascii=False), "unsynced": " ".join(unsynced)}
            return await to_thread.run_sync(self._finish, names, org_id, "org", facts)
        finally:
            ownership.release()

    def from_folder(self, folder: Path, tell: Tell = lambda done, total: None) -> SyncReport:
        """Describes that somebody saved as JSON: one object in a file, or several."""
        self._store.folder.mkdir(parents=True, exist_ok=True)
        ownership = FileLock(self._store.folder / ".owner")
        if not ownership.acquire():
            raise SyncBusy("Another process imports this schema right now.")
        try:
            return self._import(sorted(folder.rglob("*.json")), folder, tell)
        finally:
            ownership.release()

    def _import(self, files: Sequence[Path], folder: Path, tell: Tell) -> SyncReport:
        started = datetime.now(UTC)
        self._store.restart({STARTED: started.isoformat(), WANTED: str(len(files))})
        names: list[str] = []
        for number, file in enumerate(files, start=1):
            try:
                objects = [from_describe(item) for item in _describes(file)]
            except BadDescribe as error:
                raise BadDescribe(f"{file}: {error.message}") from None
            staged = [Staged(item.name, to_row(item), format_datetime(started, usegmt=True)) for item in objects]
            self._store.stage(staged, {})
            names += [item.name for item in staged]
            tell(number, len(files))
        if not names:
            raise InvalidInput(f"There is no describe of an object in {folder}.")
        return self._finish(names, "", str(folder))

    def _resumed(self, org_id: str, wanted: int) -> tuple[set[str], datetime]:
        """What an interrupted sync of the same org has; otherwise the beginning of a new one."""
        facts = self._store.facts()
        now = datetime.now(UTC)
        began = datetime.fromisoformat(facts[STARTED]) if facts.get(STARTED) else None
        if began is not None and now - began < RESUMED_FOR and facts.get("staged_org") == org_id:
            return self._store.staged(), began
        if facts.get(ORG_ID) not in (None, "", org_id):  # another org under this name: nothing of it may stay
            self._store.complete([], {SYNCED_AT: ""})
        self._store.restart({STARTED: now.isoformat(), WANTED: str(wanted), "staged_org": org_id})
        return set(), now

    async def _describe(
        self, client: SalesforceClient, names: Sequence[str], started: datetime, total: int, tell: Tell
    ) -> None:
        known = await to_thread.run_sync(self._store.known)
        since = format_datetime(started.replace(microsecond=0), usegmt=True)
        done = total - len(names)
        batch: list[Staged] = []
        async for name, status, body in client.describe_many(names, since=known):
            batch.append(_staged(name, status, body, since))
            done += 1
            if len(batch) == 25:  # noqa: PLR2004 - what one call brings
                await to_thread.run_sync(self._store.stage, batch, {})
                batch = []
                tell(done, total)
        await to_thread.run_sync(self._store.stage, batch, {})
        tell(total, total)

    def _finish(
        self, names: Sequence[str], org_id: str, source: str, more: Mapping[str, str] | None = None
    ) -> SyncReport:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        changed, removed = self._store.complete(
            names, {SYNCED_AT: now, ORG_ID: org_id, SOURCE: source, STARTED: "", WANTED: "", **(more or {})}
        )
        graph = self._store.load()
        return SyncReport(len(graph.objects), changed, removed, len(graph.problems))


async def _company_names(client: SalesforceClient) -> list[str]:
    """Names of accounts, the latest first."""
    statement = f"SELECT Name FROM Account ORDER BY LastModifiedDate DESC LIMIT {MOST_NAMES}"
    try:
        return [row["Name"] async for row in client.rows(statement) if row.get("Name")]
    except SalesforceError as error:  # an org without accounts, or a user who may not see them
        logger.info("Names of companies are not known: %s", error.message, extra={"action": "no_names"})
        return []


def _staged(name: str, status: int, body: Any, since: str) -> Staged:
    if status == NOT_MODIFIED:
        return Staged(name, None, since)
    if status >= FIRST_ERROR:
        first = body[0] if isinstance(body, list) and body else {}
        reason = str(first.get("message") or f"status {status}")
        logger.warning("%s could not be described: %s", name, reason, extra={"action": "not_described"})
        return Staged(name, None, since, reason)
    try:
        return Staged(name, to_row(from_describe(body)), since)
    except BadDescribe as error:
        return Staged(name, None, since, error.message)


def _wanted(names: set[str], *, derived: bool) -> list[str]:
    """Objects that belong to another are left out: they repeat it."""

    def is_derived(name: str) -> bool:
        if name.endswith(tuple(f"__{suffix}" for suffix in DERIVED)):
            return True
        return any(name.endswith(suffix) and name.removesuffix(suffix) in names for suffix in DERIVED)

    return sorted(name for name in names if derived or not is_derived(name))


def _describes(file: Path) -> Iterator[Any]:
    """Every describe in a file, whatever it is wrapped in."""
    try:
        content = json.loads(file.read_text("utf-8-sig"))
    except (ValueError, OSError, RecursionError) as error:
        raise InvalidInput(f"{file} cannot be read: {error}") from None
    waiting = [content]
    while waiting:
        item = waiting.pop(0)
        if isinstance(item, dict) and isinstance(item.get("fields"), list) and "name" in item:
            yield item
        elif isinstance(item, dict):
            waiting += [value for key, value in item.items() if isinstance(value, dict | list) and key != "fields"]
        elif isinstance(item, list):
            waiting += [value for value in item if isinstance(value, dict)]
