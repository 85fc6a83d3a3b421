"""The servers that share a store: who is there, which logins have ended, and what each tells the others.

Everything here goes through notes of the store. A server connects in the background and goes on while the store does
not answer; it then knows what it knew before.
"""

import asyncio
import json
import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

from anyio import to_thread

from bedstone import __version__
from bedstone.errors import BedstoneError, Unavailable
from bedstone.services.service import Service
from bedstone.store.notes import SERVERS

if TYPE_CHECKING:  # most servers have no peers
    from bedstone.store.notes import Notes

logger = logging.getLogger(__name__)

BEAT_SECONDS = 3.0
LIFE_SECONDS = 10.0  # after the last beat, a server is taken to be gone
LOOK_SECONDS = 0.5  # between looks at the notes, if a notification was lost
RETRY_SECONDS = 1.0
READY_SECONDS = 3.0  # that a start waits for the store
EVENT_SECONDS = 30.0
STOP_SECONDS = 5.0  # to say goodbye to the others
SECRET_BYTES = 32
ENDED = "ended-session:"
EVENT = "event:"
SECRET = "secret"  # noqa: S105 - the name of a note

NOT_TOLD = {"action": "peers_not_told"}

Listener = Callable[[str], Awaitable[None]]


@dataclass(frozen=True)
class Work:
    """What a server does and how far its index is: `behind` is the number of changes it has not applied yet."""

    applied: int = 0
    behind: int = 0
    tasks: tuple[str, ...] = ()  # the files that it reads
    jobs: tuple[str, ...] = ()  # those that one server does for all


@dataclass(frozen=True)
class Peer:
    """A server that is there; `role` is what it does, `address` where it listens."""

    id: str
    role: str
    address: str = ""
    host: str = ""
    process: int = 0
    version: str = ""
    started_at: float = 0.0
    work: Work = Work()

    @classmethod
    def of_this_process(cls, role: str, address: str = "") -> Self:
        """Return the facts of a server in this process."""
        return cls(uuid4().hex, role, address, socket.gethostname(), os.getpid(), __version__, time.time())

    @property
    def reads_files(self) -> bool:
        """Whether it runs tasks."""
        return self.role != "answers"


class Peers:
    """This server's place among those with the same store. `start` connects; before, nothing is known."""

    def __init__(self, address: str, secret: str | None = None) -> None:
        """Use the store at an address, and a configured secret instead of the one in the store."""
        self._address = address
        self._configured = secret
        self._secret: str | None = secret
        self._me: Peer | None = None
        self._work: Callable[[], Work] = Work
        self._doing = Work()
        self._ended: frozenset[str] | None = None
        self.known: Sequence[Peer] = ()  # at the last beat, with this one
        self._seen: set[str] | None = None  # events
        self._listeners: dict[str, Listener] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._notes: Notes | None = None
        self._stop = threading.Event()
        self._ready = threading.Event()
        self._thread: threading.Thread | None = None
        self._reported: str | None = None
        self._cannot_write = False

    @property
    def secret(self) -> str | None:
        """The secret that all of them sign with; None until the store has answered."""
        return self._secret

    async def start(self, me: Peer, work: Callable[[], Work] = Work) -> None:
        """Tell the others about this server from now on, and hear what they tell; wait a moment for the store."""
        self._me, self._work, self._loop = me, work, asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name="peers", daemon=True)
        self._thread.start()
        await to_thread.run_sync(self._ready.wait, READY_SECONDS)

    async def stop(self) -> None:
        """Say goodbye, and disconnect."""
        self._stop.set()
        if self._thread is not None:
            await to_thread.run_sync(self._thread.join, STOP_SECONDS)

    def is_ended(self, session: str) -> bool:
        """Return whether a login session was ended on any server; it may have been, until the store has answered."""
        return self._ended is None or session in self._ended

    def end_session(self, session: str, seconds: float) -> None:
        """End a login session on every server, for as long as it would have lasted; blocks."""
        notes = self._notes
        if notes is None:
            raise Unavailable("You are not logged out: the store does not answer. Try again.")
        notes.put(f"{ENDED}{session}", "", seconds, wakes=True)
        self._ended = (self._ended or frozenset()) | {session}

    def subscribe(self, topic: str, listener: Listener) -> None:
        """Call a listener with what other servers publish under a topic."""
        self._listeners[topic] = listener

    async def publish(self, topic: str, text: str) -> None:
        """Tell the other servers; what cannot be told now is not told later."""
        notes, me = self._notes, self._me
        if notes is None or me is None:
            return
        message = json.dumps({"from": me.id, "topic": topic, "text": text})
        name = f"{EVENT}{uuid4().hex}"
        try:
            await to_thread.run_sync(lambda: notes.put(name, message, EVENT_SECONDS, wakes=True))
        except BedstoneError as error:
            logger.warning("Other servers were not told: %s", error.message, extra=NOT_TOLD)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._take_part()
            except BedstoneError as error:
                self._report(error)
            except Exception:
                logger.exception("Lost touch with the other servers", extra={"action": "peers_lost"})
            self._stop.wait(RETRY_SECONDS)

    def _take_part(self) -> None:
        from bedstone.store.opening import open_store  # noqa: PLC0415

        store = open_store(self._address)
        try:
            notes = store.notes
            if notes is None:  # a store of one machine
                self._stop.set()
                return
            self._exchange(notes)
        finally:
            self._notes = None
            store.close()

    def _exchange(self, notes: "Notes") -> None:
        """Beat, look and listen until the server stops or the store fails."""
        known, next_beat = None, 0.0
        while not self._stop.is_set():
            if time.monotonic() >= next_beat:
                self._beat(notes)
                next_beat = time.monotonic() + BEAT_SECONDS
            revision = notes.revision()
            if revision != known:
                self._look(notes)
                known, self._notes, self._reported = revision, notes, None
                self._ready.set()
            notes.wait(lambda: self._stop.is_set() or notes.revision() != known, LOOK_SECONDS)  # noqa: B023
        if self._me is not None and not self._cannot_write:
            notes.delete(f"{SERVERS}{self._me.id}")

    def _beat(self, notes: "Notes") -> None:
        """Say that this server is there, and see who else is; one that may only read says nothing."""
        assert self._me is not None
        try:
            self._doing = self._work()
        except BedstoneError as error:  # the store has no connection left: what it did before is near enough
            logger.debug("Cannot tell what this server does: %s", error.message)
        try:
            facts = json.dumps(asdict(replace(self._me, work=self._doing)))
            notes.put(f"{SERVERS}{self._me.id}", facts, LIFE_SECONDS)
            notes.prune()
        except BedstoneError as error:
            notes.revision()  # raises an error unless it is only writing that fails
            if not self._cannot_write:
                logger.warning("Other servers do not see this one: %s", error.message, extra=NOT_TOLD)
            self._cannot_write = True
        else:
            self._cannot_write = False
        self.known = list_peers(notes)

    def _look(self, notes: "Notes") -> None:
        if self._secret is None:
            own = secrets.token_hex(SECRET_BYTES)
            try:
                self._secret = notes.put_once(SECRET, own)
            except BedstoneError:
                if not self._cannot_write:
                    raise
                self._secret = own
        self._ended = frozenset(notes.read(ENDED))
        events = notes.read(EVENT)
        if self._seen is not None:
            for name in events.keys() - self._seen:
                self._deliver(json.loads(events[name]))
        self._seen = set(events)

    def _deliver(self, event: Mapping[str, str]) -> None:
        assert self._me is not None
        listener = self._listeners.get(event["topic"])
        if event["from"] != self._me.id and listener is not None and self._loop is not None:
            asyncio.run_coroutine_threadsafe(_call(listener, event["text"]), self._loop)

    def _report(self, error: BedstoneError) -> None:
        if error.message != self._reported:
            logger.warning("No contact with the other servers: %s", error.message, extra={"action": "peers_lost"})
        self._reported = error.message


async def _call(listener: Listener, text: str) -> None:
    try:
        await listener(text)
    except Exception:
        logger.exception("What another server told could not be passed on", extra={"action": "peers_failed"})


def list_peers(notes: "Notes") -> list[Peer]:
    """Return the servers that are there, those that started first first."""
    return sorted(map(_parse, notes.read(SERVERS).values()), key=lambda peer: (peer.started_at, peer.id))


def has_workers(notes: "Notes") -> bool:
    """Return whether a server is there that runs tasks."""
    return any(peer.reads_files for peer in list_peers(notes))


def _parse(text: str) -> Peer:
    """Return a peer; one of a newer version may say more."""
    data: dict[str, Any] = json.loads(text)
    work = _select_fields(Work, data.pop("work", {}))
    lists = {name: tuple(value) for name, value in work.items() if isinstance(value, list)}
    return Peer(**_select_fields(Peer, data), work=Work(**work | lists))


def _select_fields(kind: type[Peer] | type[Work], data: Mapping[str, Any]) -> dict[str, Any]:
    names = {field.name for field in fields(kind)}
    return {name: value for name, value in data.items() if name in names}


def work_of(service: Service | None) -> Work:
    """Return what a service tells of its work; nothing if it is not open."""
    tell = getattr(service, "work", None)
    found = tell() if tell is not None else None
    return found if isinstance(found, Work) else Work()
