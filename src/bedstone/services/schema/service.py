"""The schemas of orgs, each with what is derived from it: loaded on first use, again after a sync."""

import json
import re
import sqlite3
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar

from anyio import to_thread

from bedstone.errors import BedstoneError, InvalidInput, NotFound, Unavailable
from bedstone.salesforce.client import SalesforceClient
from bedstone.salesforce.client.orgs import Org, Orgs
from bedstone.salesforce.graph.model import ObjectSchema, SchemaGraph
from bedstone.salesforce.graph.paths import PathFinder
from bedstone.salesforce.questions.grounding import EntityType, Grounder, Grounding
from bedstone.salesforce.questions.interpreter import Interpreter
from bedstone.salesforce.questions.row_checks import settle, statements_to_count
from bedstone.salesforce.questions.text_grounds import text_grounds
from bedstone.salesforce.soql.quoting import search_term
from bedstone.salesforce.validation import Report, validate
from bedstone.services.catalog import FetchedText, FindRequest, Found
from bedstone.services.orgs import default_org, open_client, open_orgs
from bedstone.services.schema.counts import RecentCounts
from bedstone.services.schema.errors import InvalidQuery, NotSynced, OrgNotFound
from bedstone.services.schema.execution import QueryRun, QueryRunner
from bedstone.services.schema.finding import SCHEMES, fetch_name, find_names, find_objects
from bedstone.services.schema.org_syncs import OrgSyncs
from bedstone.services.schema.search import SchemaSearch
from bedstone.services.schema.store import SchemaStore
from bedstone.services.schema.sync import (
    NAMES,
    ORG_ID,
    REFRESHED_AT,
    SYNCED_AT,
    WANTED,
    OnProgress,
    SchemaSync,
    SyncReport,
)
from bedstone.services.service import (
    NamedPage,
    Service,
    ServiceContext,
    State,
    Summary,
    SyncFacts,
    format_count,
    parse_time,
)
from bedstone.settings import layout

if TYPE_CHECKING:
    from bedstone.search.embedder import Embedder

IMPORTED = "import-"
NAMED_OBJECTS = ("Account", "Contact", "Lead", "Opportunity", "User", "Campaign", "Product2")
MAX_RECORDS = 5  # per object, of a search by name
MAX_NAME_CHARACTERS = 200
WORD = re.compile(r"[^\W_]{2,}")
INLINE_CHARACTERS = 4_000  # validating a query up to this length takes less time than handing it to a thread


@dataclass(frozen=True)
class OrgSchema:
    """One org's schema, and what answers questions about it."""

    name: str
    facts: dict[str, str]
    graph: SchemaGraph
    search: SchemaSearch

    @cached_property
    def grounder(self) -> Grounder:
        return Grounder(self.graph, self.search.names, json.loads(self.facts.get(NAMES) or "[]"))

    @cached_property
    def interpreter(self) -> Interpreter:
        return Interpreter(self.graph, self.search.names, self.grounder)

    @cached_property
    def paths(self) -> PathFinder:
        return PathFinder(self.graph)

    def validate(self, soql: str) -> Report:
        """Check a query against the schema."""
        return validate(soql, self.graph, ground=self.grounder.explain_unknown_name)

    def require_valid(self, soql: str, parameter: str = "query") -> Report:
        """Check a query, and raise an error about the argument it came from unless it is valid."""
        report = self.validate(soql)
        if not report.valid:
            raise InvalidQuery.of(report, parameter)
        return report


@dataclass(frozen=True)
class KnownOrg:
    """An org that a user logged into, or a schema that was imported from files."""

    name: str
    store: SchemaStore
    org: Org | None = None

    def aliases(self) -> set[str]:
        """Return what callers may call it: its name, and Salesforce's id in both lengths."""
        try:
            org_id = self.store.facts().get(ORG_ID, "")
        except sqlite3.Error:  # damaged: the name still works
            org_id = ""
        return {self.name, org_id, org_id[:15]} - {""}


@dataclass
class SchemaService(Service):
    """Every org's schema. `default` is used where the caller names no org; None means the only one there is."""

    schemes: ClassVar[tuple[str, ...]] = SCHEMES

    folder: Path
    orgs: Orgs
    open_client: Callable[[Org], SalesforceClient]
    embedder: "Callable[[], Embedder | None]"
    default: str | None = None
    record_names: bool = True
    sync_minutes: int = 0
    read_only: bool = False
    warn_share: float = 0.8
    _known: tuple[Any, list[KnownOrg]] | None = field(default=None, init=False)
    _stores: dict[Path, SchemaStore] = field(default_factory=dict, init=False)
    _loaded: dict[str, tuple[Any, OrgSchema]] = field(default_factory=dict, init=False)
    _clients: dict[str, SalesforceClient] = field(default_factory=dict, init=False)
    _counts: RecentCounts = field(default_factory=RecentCounts, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def __post_init__(self) -> None:
        self._syncs = OrgSyncs(self, self.sync_minutes)
        self._runner = QueryRunner(self, writes=not self.read_only, max_share=self.warn_share)

    async def start(self) -> None:
        """Begin periodic syncs, if they are configured."""
        self._syncs.start()

    async def aclose(self) -> None:
        """Stop syncing; close connections and files."""
        await self._syncs.stop()
        for client in self._clients.values():
            await client.close()
        self._clients.clear()
        for store in self._stores.values():
            store.close()
        self._stores.clear()

    async def summary(self) -> Summary:
        """Return the size and age of the default org's schema, or the names of all orgs."""
        try:
            org = await self.org()
        except NotSynced:
            return Summary(states=(State("warn", "Not synced yet", "/activity"),), is_empty=True)
        except NotFound:
            names = [org.name for org in await to_thread.run_sync(self.known_orgs)]
            if len(names) > 1:
                return Summary(f"orgs {', '.join(names)}")
            raise
        objects, synced_at = len(org.graph.objects), org.facts.get(SYNCED_AT)
        return Summary(
            f"{format_count(objects, 'object')}, {format_count(org.graph.field_count, 'field')}",
            objects,
            parse_time(synced_at),
        )

    def problems(self) -> Sequence[str]:
        """Return which schemas cannot be read."""
        return [problem for org in self.known_orgs() if (problem := self._find_problem(org))]

    @staticmethod
    def _find_problem(org: KnownOrg) -> str | None:
        try:
            org.store.check_readable()
        except (sqlite3.Error, OSError) as error:
            return f"Cannot read the schema of {org.name} ({error})"
        return None

    def known_orgs(self) -> list[KnownOrg]:
        """Return every org; the list is read again when a login or an import changes it."""
        state = (self.orgs.version(), self._folder_version())
        if self._known is None or self._known[0] != state:
            orgs = [
                KnownOrg(org.name, self._store(self.folder / self.orgs.folder_name(org)), org)
                for org in self.orgs.all()
            ]
            imported = [
                KnownOrg(path.name.removeprefix(IMPORTED), self._store(path))
                for path in sorted(self.folder.glob(f"{IMPORTED}*"))
            ]
            self._known = (state, [*orgs, *imported])
        return self._known[1]

    def find_org(self, org_id: str | None) -> KnownOrg:
        """Return an org by its name or by Salesforce's id."""
        known = self.known_orgs()
        wanted = org_id or self.default
        logged_in = [org for org in known if org.org is not None]
        if wanted is None and len(logged_in or known) == 1:  # an imported schema beside an org is asked for by name
            return (logged_in or known)[0]
        for org in known:
            if wanted is not None and (wanted == org.name or wanted in org.aliases()):
                return org
        names = [org.name for org in known]
        listed = ", ".join(names) or "none; add one with `bedstone salesforce login`"
        problem = f"Unknown org {wanted!r}." if wanted is not None else "Name an org with orgId."
        raise OrgNotFound(f"{problem} Known: {listed}.", details={"known": names})

    async def find(self, request: FindRequest) -> Found:
        """Return the best objects and fields of the default org, or of every org if none is."""
        orgs = await self._searched_orgs()
        found = [
            await to_thread.run_sync(find_names, org, request, prefix, abandon_on_cancel=True)
            for prefix, org in orgs.items()
        ]
        items = sorted((item for answer in found for item in answer.items), key=lambda item: -(item.score or 0.0))
        return Found(items[: request.limit])

    async def find_names(self, text: str, limit: int) -> Sequence[NamedPage]:
        """Return the objects whose labels or names have a text."""
        orgs = await self._searched_orgs()
        found = [page for prefix, org in orgs.items() for page in find_objects(org, text, limit, prefix)]
        return found[:limit]

    async def fetch(self, scheme: str, name: str) -> FetchedText:
        """Return an object with its fields, or one field, as text."""
        org_name, _, rest = name.rpartition("/")
        org = await self.org(org_name or None)
        return await to_thread.run_sync(fetch_name, org, scheme, rest, f"{org_name}/" if org_name else "")

    async def _searched_orgs(self) -> dict[str, OrgSchema]:
        """Return the orgs to search by the beginning of their ids; one that is not synced yet has nothing to find."""
        try:
            return {"": await self.org()}
        except NotSynced:
            return {}
        except OrgNotFound:
            names = [known.name for known in await to_thread.run_sync(self.known_orgs)]
            return {f"{name}/": await self.org(name) for name in names}

    async def org(self, org_id: str | None = None) -> OrgSchema:
        """Return an org's schema; the last complete one while a sync is running."""
        fresh = self._fresh(org_id)
        return fresh if fresh is not None else await to_thread.run_sync(self.load, org_id)

    def load(self, org_id: str | None = None) -> OrgSchema:
        """Return an org's schema, reading it first if it changed; blocks."""
        org = self.find_org(org_id)
        version = None
        try:
            version = org.store.version()
            facts = org.store.facts()
        except sqlite3.Error:
            if org.name in self._loaded:  # what was read before is still valid
                return self._loaded[org.name][1]
            advice = f"Remove {org.store.folder} and sync again."
            raise Unavailable(
                f"Cannot read the schema of {org.name}: its file is corrupt or locked. {advice}"
            ) from None
        if not facts.get(SYNCED_AT):
            done = (
                f" (a sync has {len(org.store.staged_names())} of {facts[WANTED]} objects)" if facts.get(WANTED) else ""
            )
            raise NotSynced(
                f"The schema of {org.name} is not synced yet{done}; run `bedstone salesforce sync-schema`.",
                details={"org": org.name},
            )
        with self._lock:
            loaded = self._loaded.get(org.name)
            if loaded is None or any(
                loaded[1].facts.get(name) != facts.get(name) for name in (SYNCED_AT, REFRESHED_AT)
            ):
                schema = self.schema_of(org, facts, org.store.load())
            else:
                schema = loaded[1]
            self._loaded[org.name] = (version, schema)
            return schema

    def load_unsynced(self, org: KnownOrg) -> OrgSchema:
        """Return the objects that were described before the first sync; blocks."""
        return self.schema_of(org, org.store.facts(), org.store.load())

    def schema_of(self, org: KnownOrg, facts: dict[str, str], graph: SchemaGraph) -> OrgSchema:
        """Return a graph with what is derived from it."""
        return OrgSchema(org.name, facts, graph, SchemaSearch(graph, org.store.folder, self.embedder))

    async def validate(self, soql: str, org_id: str | None = None) -> Report:
        """Check a query against an org's schema."""
        org = await self.org(org_id)
        return org.validate(soql) if len(soql) <= INLINE_CHARACTERS else await to_thread.run_sync(org.validate, soql)

    def embed_names(self, org_id: str | None = None, tell: OnProgress = lambda done, total: None) -> int:
        """Embed the names of a schema for semantic search; names that have vectors keep them."""
        return self.load(org_id).search.make_vectors(tell)

    def client(self, org_id: str | None) -> SalesforceClient:
        """Return a client of an org; an imported schema has none."""
        org = self.find_org(org_id)
        if org.org is None:
            raise Unavailable(f"The schema {org.name} was imported from files, so it has no org to query.")
        if org.name not in self._clients:
            self._clients[org.name] = self.open_client(org.org)
        return self._clients[org.name]

    async def query(self, soql: str, org_id: str | None = None, batch: int | None = None) -> QueryRun:
        """Run a query that is not certainly wrong, and return its first page."""
        return await self._runner.run(soql, await to_thread.run_sync(self.find_org, org_id), batch)

    async def query_all(self, soql: str, limit: int, org_id: str | None = None) -> tuple[list[dict[str, Any]], int]:
        """Return the records of a query, up to a limit, and how many there are."""
        page = (await self.query(soql, org_id)).page
        rows = list(page["records"])
        while page.get("nextRecordsUrl") and len(rows) < limit:
            page = await self.client(org_id).more(page["nextRecordsUrl"])
            rows += page["records"]
        return rows[:limit], page["totalSize"]

    async def find_records(self, org: OrgSchema, name: str) -> list[tuple[str, str, str]]:
        """Return object, name and id of records with this name, by one search; nothing without an org to query."""
        if len(name) > MAX_NAME_CHARACTERS or not WORD.search(name):
            return []
        objects = [item for label in NAMED_OBJECTS if (item := org.graph.get(label)) is not None and item.searchable]
        fields = {item.name: item.name_field.name for item in objects if item.name_field is not None}
        returning = ", ".join(f"{label}(Id, {field} LIMIT {MAX_RECORDS})" for label, field in fields.items())
        if not fields or self.find_org(org.name).org is None:
            return []
        try:
            rows = await self.client(org.name).search(
                f"FIND {{{search_term(name)}}} IN NAME FIELDS RETURNING {returning}"
            )
        except BedstoneError:  # callers go on without records
            return []
        return [
            (row["attributes"]["type"], str(row.get(fields[row["attributes"]["type"]]) or ""), row["Id"])
            for row in rows
        ]

    async def ground(
        self, org: OrgSchema, value: str, target: ObjectSchema | None, kind: EntityType = "unknown", *, by_name: bool
    ) -> list[Grounding]:
        """Return what a value means, the most likely first; what records have is counted before it is claimed.

        `by_name` also searches for records with this name. That takes at most two calls of the org.
        """
        text = value.strip().strip("\"'")
        records = await self.find_records(org, text) if by_name else []
        found = await to_thread.run_sync(lambda: org.grounder.ground(text, target=target, kind=kind, records=records))
        if kind == "unknown" and len(text) <= MAX_NAME_CHARACTERS:
            found += text_grounds(text, org.graph, target, lambda owner: _path(org, owner, target))
        return settle(found, await self.count_rows(org, statements_to_count(found)))

    async def count_rows(self, org: OrgSchema, statements: Sequence[str]) -> dict[str, int]:
        """Return how many rows statements count, by one call; nothing without an org to query."""
        now = monotonic()
        known = {text: count for text in statements if (count := self._counts.get((org.name, text), now)) is not None}
        missing = [text for text in statements if text not in known]
        if not missing or self.find_org(org.name).org is None:
            return known
        try:
            counts = await self.client(org.name).count_many(missing)
        except BedstoneError:  # callers go on without counts, and say so
            return known
        for text, count in counts.items():
            self._counts.put((org.name, text), count, now)
        return known | counts

    async def sync(
        self, org_id: str | None = None, tell: OnProgress = lambda done, total: None, *, derived: bool = False
    ) -> SyncReport:
        """Bring an org's schema up to date."""
        org = await to_thread.run_sync(self.find_org, org_id)
        return await SchemaSync(org.store).from_org(
            self.client(org.name), tell, derived=derived, record_names=self.record_names
        )

    def import_folder(self, name: str, source: Path, tell: OnProgress = lambda done, total: None) -> SyncReport:
        """Import a schema from saved describe results."""
        if any(org.name == name for org in self.orgs.all()):
            raise InvalidInput(
                f"An org is already called {name}; choose another name for the schema.", parameter="name"
            )
        return SchemaSync(self._store(self.folder / f"{IMPORTED}{name}")).from_folder(source, tell)

    def syncs(self) -> Sequence[SyncFacts]:
        """Return the sync of each org."""
        return self._syncs.facts()

    async def sync_now(self, name: str) -> None:
        """Begin to sync the schema of an org."""
        self._syncs.run_now(name)

    def _fresh(self, org_id: str | None) -> OrgSchema | None:
        """Return an org's loaded schema if it is still the stored one, which a few system calls tell."""
        if self._known is None or self._known[0] != (self.orgs.version(), self._folder_version()):
            return None
        org = self.find_org(org_id)
        loaded = self._loaded.get(org.name)
        try:
            return loaded[1] if loaded is not None and loaded[0] == org.store.version() else None
        except sqlite3.Error:
            return None

    def _store(self, folder: Path) -> SchemaStore:
        if folder not in self._stores:
            self._stores[folder] = SchemaStore(folder)
        return self._stores[folder]

    def _folder_version(self) -> int | None:
        try:
            return self.folder.stat().st_mtime_ns
        except OSError:
            return None


def _path(org: OrgSchema, owner: ObjectSchema, target: ObjectSchema | None) -> str | None:
    return org.grounder.path_to(owner, target) if target is not None else ""


def open_schemas(context: ServiceContext) -> SchemaService:
    """Return the service over the schemas of every org."""
    settings = context.settings
    orgs = open_orgs(settings)
    return SchemaService(
        layout.salesforce(settings) / "schemas",
        orgs,
        lambda org: open_client(orgs, org),
        context.embedders.get,
        default_org(settings),
        settings.salesforce.sync_names,
        0 if settings.read_only else settings.salesforce.sync_minutes,
        settings.read_only,
        settings.salesforce.warn_share,
    )
