"""What a service is: one domain of the product, usable without MCP, opened when it is first needed."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from anyio import to_thread

from bedstone.errors import BedstoneError, NotFound

if TYPE_CHECKING:
    from bedstone.search.embedding import EmbedderPool
    from bedstone.services.peers import Peers
    from bedstone.settings import Settings

logger = logging.getLogger(__name__)

RETRY_SECONDS = 3.0  # before a store that does not answer is opened again

T = TypeVar("T")
StateKind = Literal["good", "busy", "warn", "bad"]


@dataclass(frozen=True)
class State:
    """How a source is, in a word or two, and the page with more about it."""

    kind: StateKind
    text: str
    address: str = ""


READY = State("good", "Ready")


@dataclass(frozen=True)
class NamedPage:
    """A page by the name of what it shows; `detail` tells apart what has the same name."""

    title: str
    address: str
    detail: str = ""


def parse_time(text: str | None) -> datetime | None:
    """Return an ISO time; None for anything else."""
    try:
        return datetime.fromisoformat(text or "")
    except ValueError:
        return None


def format_count(count: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: 1 file, 2,404 files."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


@dataclass(frozen=True)
class Summary:
    """What a source holds, for people: `count` for the menu, `amount` in words, when it last changed, its states.

    `running` is how many of its tasks are active.
    """

    amount: str = ""
    count: int | None = None
    changed_at: datetime | None = None
    states: Sequence[State] = (READY,)
    running: int = 0
    is_empty: bool = False


@dataclass(frozen=True)
class SyncFacts:
    """What a service keeps up to date: what, from where, how it went last and when it runs next.

    `last_at` is when it last succeeded, `failed_at` when it failed after that, for `problem`. `progress` says how far a
    running one is, `rhythm` in words when it runs. `name` is what `sync_now` takes; empty if it cannot be asked for.
    """

    what: str
    origin: str = ""
    last_at: datetime | None = None
    next_at: datetime | None = None
    result: str = ""
    problem: str = ""
    is_running: bool = False
    name: str = ""
    rhythm: str = ""
    verb: str = "Sync now"
    progress: str = ""
    failed_at: datetime | None = None


class Service:
    """Base of every service. Opening one costs what its first use needs; it may be used from several threads."""

    is_fast = False  # whether calls take less time than handing them to a thread

    async def start(self) -> None:
        """Begin background work; called once, by a server, never by a command."""

    async def aclose(self) -> None:
        """Stop background work and release files and connections."""

    def problems(self) -> Sequence[str]:
        """Return what keeps the service from working right now; `/readyz` reports it."""
        return ()

    async def find_names(self, text: str, limit: int) -> "Sequence[NamedPage]":
        """Return what has a text in its name, to jump to; people type it letter by letter, so it must be cheap."""
        return ()

    async def summary(self) -> Summary:
        """Return how much there is, in what state and how fresh; pages show it, so it must be cheap."""
        return Summary()

    def syncs(self) -> Sequence[SyncFacts]:
        """Return what is kept up to date, for people; may block for a moment."""
        return ()

    async def sync_now(self, name: str) -> None:
        """Begin a sync in the background, unless it is running."""
        raise NotFound(f"Nothing called {name!r} is synced.")


S = TypeVar("S", bound=Service)


@dataclass(frozen=True)
class ServiceContext:
    """What a service is opened from."""

    settings: "Settings"
    embedders: "EmbedderPool"
    services: "Services | None" = None
    peers: "Peers | None" = None

    @property
    def secret(self) -> str | None:
        """The secret that servers with the same content sign cursors with, if there is one."""
        return self.peers.secret if self.peers is not None else self._own_secret

    @cached_property
    def _own_secret(self) -> str | None:
        return self.settings.signing_secret


class Handle(Generic[S]):
    """A service that may not be open yet.

    A server opens it in the background with itself if `starts_at_once`: there is work to resume or to repeat.
    """

    def __init__(
        self, open_service: Callable[[], S], *, starts_at_once: bool = False, context: ServiceContext | None = None
    ) -> None:
        self._open = open_service
        self.context = context
        self._starts_at_once = starts_at_once
        self._lock = threading.Lock()
        self._is_serving = False
        self._is_started = False
        self._opening: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self.opened: S | None = None
        self.failure: str | None = None  # why it could not be opened

    @classmethod
    def of(cls, service: S) -> "Handle[S]":
        """Return the handle of a service that is open."""
        handle = cls(lambda: service)
        handle.opened = service
        return handle

    def get(self) -> S:
        """Return the service, opening it first if necessary; blocks."""
        with self._lock:
            if self.opened is None:
                try:
                    self.opened = self._open()
                except BedstoneError as error:
                    self.failure = error.message
                    raise
                self.failure = None
            return self.opened

    async def open(self) -> S:
        """Return the service without blocking the event loop; under a server its background work begins."""
        service = self.opened
        if service is None:
            service = await to_thread.run_sync(self.get)
        if self._is_serving and not self._is_started:
            self._is_started = True
            await service.start()
        return service

    async def run(self, work: Callable[[S], T]) -> T:
        """Call the service in a thread, or inline where a thread would cost more than the call."""
        service = await self.open()
        return work(service) if service.is_fast else await to_thread.run_sync(work, service)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Let the service do its background work; close it at the end."""
        self._is_serving = True
        self._closing = asyncio.Event()
        if self._starts_at_once:
            self._opening = asyncio.create_task(self._open_in_background())
        try:
            yield
        finally:
            await self.aclose()

    async def _open_in_background(self) -> None:
        """Open the service; try again while its store does not answer."""
        from bedstone.store.engine import StoreDamaged, StoreUnavailable  # noqa: PLC0415 - most services have none

        known = None
        while not self._closing.is_set():
            try:
                await self.open()
            except BedstoneError as error:  # a call gets the same answer
                if error.message != known:
                    logger.warning("%s", error.message, extra={"action": "service_not_opened"})
                known = error.message
                if not isinstance(error, StoreUnavailable) or isinstance(error, StoreDamaged):
                    return
            except Exception:
                logger.exception("A service cannot be opened", extra={"action": "service_not_opened"})
                return
            else:
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), RETRY_SECONDS)

    async def aclose(self) -> None:
        """Close the service if it is open."""
        self._closing.set()
        if self._opening is not None:
            await asyncio.wait([self._opening])
            self._opening = None
        with self._lock:
            service, self.opened = self.opened, None
        self._is_serving = self._is_started = False
        if service is not None:
            await service.aclose()


class Services:
    """Every service by the label of its toolset, each opened when it is first needed.

    `find_sources` returns what people call each source that the product serves, by the label of its toolset.
    """

    def __init__(
        self,
        context: ServiceContext,
        make_handle: Callable[[str, ServiceContext], Handle[Any] | None],
        find_sources: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self.context = replace(context, services=self)
        self._make_handle = make_handle
        self._find_sources = find_sources
        self._handles: dict[str, Handle[Any] | None] = {}

    @cached_property
    def sources(self) -> Mapping[str, str]:
        """What can be searched: titles by the labels of toolsets."""
        return self._find_sources()

    def handle(self, label: str) -> Handle[Any] | None:
        """Return the handle of a toolset's service; None if the toolset has none."""
        if label not in self._handles:
            self._handles[label] = self._make_handle(label, self.context)
        return self._handles[label]

    def __getitem__(self, label: str) -> Handle[Any]:
        handle = self.handle(label)
        if handle is None:
            raise KeyError(label)
        return handle

    async def aclose(self) -> None:
        """Close every service that was opened, the last one first."""
        for handle in reversed(self._handles.values()):
            if handle is not None:
                await handle.aclose()
