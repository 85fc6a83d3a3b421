"""The schemas a server has, each with what is derived from it; loaded when first asked, again when synced anew."""

import json
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import to_thread

from bedstone.errors import InvalidInput, NotFound, Unavailable
from bedstone.library.schema.grounding import Grounder
from bedstone.library.schema.intent import Interpreter
from bedstone.salesforce.client import SalesforceClient
from bedstone.salesforce.client.orgs import Org, Orgs
from bedstone.salesforce.graph.model import SchemaGraph
from bedstone.salesforce.graph.paths import PathFinder
from bedstone.services.schema.search import SchemaSearch
from bedstone.services.schema.store import SchemaStore
from bedstone.services.schema.sync import NAMES, ORG_ID, SYNCED_AT, WANTED, SchemaSync, SyncReport, Tell

if TYPE_CHECKING:
    from bedstone.search.embedder import Embedder

IMPORTED = "import-"


class UnknownGraphOrg(NotFound):
    """No org has that id or name."""

    code = "NOT_FOUND"


class NotSynced(Unavailable):
    """The org's schema is not here yet."""

    code = "NOT_SYNCED"


@dataclass(frozen=True)
class OrgGraph:
    """One org's schema, and what answers questions about it."""

    name: str
    facts: dict[str, str]
    graph: SchemaGraph
    search: SchemaSearch

    @cached_property
    def grounder(self) -> Grounder:
        return Grounder(self.graph, self.search, json.loads(self.facts.get(NAMES) or "[]"))

    @cached_property
    def interpreter(self) -> Interpreter:
        return Interpreter(self.graph, self.search, self.grounder)

    @cached_property
    def paths(self) -> PathFinder:
        return PathFinder(self.graph)


@dataclass(frozen=True)
class KnownOrg:
    """An org that was logged into, or a schema that was imported."""

    name: str
    folder: Path
    org: Org | None = None

    @property
    def store(self) -> SchemaStore:
        return SchemaStore(self.folder)

    def spellings(self) -> set[str]:
        """What it is called: its name, and Salesforce's id in both lengths."""
        try:
            org_id = self.store.facts().get(ORG_ID, "")
        except sqlite3.Error:  # damaged: its name does
            org_id = ""
        return {self.name, org_id, org_id[:15]} - {""}


@dataclass
class GraphService:
    """Every org's graph. `default` is asked where nobody names one; None means the only one there is."""

    folder: Path
    orgs: Orgs
    open_client: Callable[[Org], SalesforceClient]
    embedder: "Callable[[], Embedder | None]"
    default: str | None = None
    record_names: bool = True
    _loaded: dict[str, OrgGraph] = field(default_factory=dict, init=False)
    _clients: dict[str, SalesforceClient] = field(default_factory=dict, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def known(self) -> list[KnownOrg]:
        """Every org."""
        orgs = [KnownOrg(org.name, self.folder / self.orgs.folder_name(org), org) for org in self.orgs.all()]
        imported = [
            KnownOrg(path.name.removeprefix(IMPORTED), path) for path in sorted(self.folder.glob(f"{IMPORTED}*"))
        ]
        return [*orgs, *imported]

    def find(self, org_id: str | None) -> KnownOrg:
        """An org by its name or Salesforce's id."""
        known = self.known()
        wanted = org_id or self.default
        logged_in = [org for org in known if org.org is not None]
        if wanted is None and len(logged_in or known) == 1:  # a schema that was imported besides is asked by its name
            return (logged_in or known)[0]
        for org in known:
            if wanted is not None and wanted in org.spellings():
                return org
        names = [org.name for org in known]
        listed = ", ".join(names) or "none; `bedstone salesforce login` makes one known"
        asked = f"Unknown org {wanted!r}." if wanted is not None else "Say which org with orgId."
        raise UnknownGraphOrg(f"{asked} Known: {listed}.", details={"known": names})

    async def graph(self, org_id: str | None = None) -> OrgGraph:
        """An org's graph; the last complete one while another is synced."""
        return await to_thread.run_sync(self._graph, org_id)

    def _graph(self, org_id: str | None) -> OrgGraph:
        org = self.find(org_id)
        try:
            facts = org.store.facts()
        except sqlite3.Error as error:
            if org.name in self._loaded:  # what was read before still holds
                return self._loaded[org.name]
            message = f"The schema of {org.name} cannot be read ({error}); remove {org.folder} and sync again."
            raise Unavailable(message) from None
        if not facts.get(SYNCED_AT):
            done = f" (a sync has {len(org.store.staged())} of {facts[WANTED]} objects)" if facts.get(WANTED) else ""
            raise NotSynced(
                f"The schema of {org.name} is not synced yet{done}; `bedstone salesforce sync-schema` does it.",
                details={"org": org.name},
            )
        with self._lock:
            loaded = self._loaded.get(org.name)
            if loaded is None or loaded.facts.get(SYNCED_AT) != facts[SYNCED_AT]:
                graph = org.store.load()
                loaded = OrgGraph(org.name, facts, graph, SchemaSearch(graph, org.folder, self.embedder))
                self._loaded[org.name] = loaded
            return loaded

    def graph_now(self) -> OrgGraph:
        """The same, blocking: for lists that must not wait for a thread."""
        return self._graph(None)

    def make_vectors(self, org_id: str | None = None, tell: Tell = lambda done, total: None) -> int:
        """Let the names of a schema be found by meaning; what has vectors already is left as it is."""
        loaded = self._graph(org_id)
        return loaded.search.make_vectors(tell)

    def client(self, org_id: str | None) -> SalesforceClient:
        """A client of an org; an imported schema has none."""
        org = self.find(org_id)
        if org.org is None:
            raise Unavailable(f"{org.name} was imported from files: there is no org to ask.")
        if org.name not in self._clients:
            self._clients[org.name] = self.open_client(org.org)
        return self._clients[org.name]

    async def sync(
        self, org_id: str | None = None, tell: Tell = lambda done, total: None, *, derived: bool = False
    ) -> SyncReport:
        """Bring an org's schema up to date."""
        org = await to_thread.run_sync(self.find, org_id)
        return await SchemaSync(org.store).from_org(
            self.client(org.name), tell, derived=derived, record_names=self.record_names
        )

    def import_folder(self, name: str, source: Path, tell: Tell = lambda done, total: None) -> SyncReport:
        """A schema from describes that somebody saved."""
        if any(org.name == name for org in self.orgs.all()):
            raise InvalidInput(f"An org is called {name} already; give the schema another name.", parameter="name")
        return SchemaSync(SchemaStore(self.folder / f"{IMPORTED}{name}")).from_folder(source, tell)

    async def close(self) -> None:
        """Let go of connections."""
        for client in self._clients.values():
            await client.close()
        self._clients.clear()
