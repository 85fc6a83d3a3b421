"""Standard input and output: one JSON-RPC message per line.

The event loop reads a pipe when it has something, and writes to one that is empty, so a call is answered without
another thread. Threads do the rest: they read what cannot be waited for (a file, a console of Windows), and write what
a client is slow to take. The SDK's transport passes through a thread pool three times for each call, which costs more
than the rest of a small call.
"""

import asyncio
import json
import os
import select
import socket
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from queue import SimpleQueue
from typing import Any

import anyio
from anyio import to_thread
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage

from bedstone.transports.jsonrpc import Malformed, MessageStream, failure, parse

if sys.platform == "linux":
    import fcntl
    import termios

MAX_QUEUED_MESSAGES = 1_000  # read ahead of the server
MAX_UNWRITTEN_BYTES = 64 * 2**20  # sent but not read by the client
READ_BYTES = 2**16
POLL_SECONDS = 0.005


async def serve_stdio(server: Server[Any]) -> None:
    """Serve one client until it closes standard input."""
    stream = StdioStream(*take_over_stdio())
    await server.run(stream, stream, server.create_initialization_options())
    await to_thread.run_sync(stream.finish)


class StdioStream(MessageStream):
    """Two file descriptors as the stream that the SDK reads from and writes to."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self._lines = _open_lines(incoming)
        self._output = Output(outgoing, self._lines.end)
        self._has_ended = False

    async def receive(self) -> SessionMessage:
        """Return the next message; answer malformed lines with an error."""
        while not self._has_ended:
            line = await self._lines.get()
            if line is None:
                self._has_ended = True  # the SDK calls again
                break
            try:
                return parse(line)
            except Malformed as malformed:
                await self._output.write(json.dumps(failure(malformed.request_id, malformed.error)))
        raise anyio.EndOfStream

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message as one line."""
        await self._output.write(item.message.model_dump_json(by_alias=True, exclude_unset=True))

    def finish(self) -> None:
        """Write what is queued and end the thread."""
        self._output.finish()


class PolledLines:
    """Lines of a descriptor that the event loop can wait for."""

    def __init__(self, descriptor: int) -> None:
        """Start to read; raises an error for a descriptor that the loop cannot wait for."""
        self._loop = asyncio.get_running_loop()
        self._descriptor = descriptor
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._line: list[bytes] = []  # its beginning, until the rest arrives
        self._is_paused = False
        self._loop.add_reader(descriptor, self._read)

    async def get(self) -> bytes | None:
        """Return the next line; None at the end."""
        line = await self._queue.get()
        if self._is_paused and self._queue.qsize() < MAX_QUEUED_MESSAGES // 2:
            self._is_paused = False
            self._loop.add_reader(self._descriptor, self._read)
        return line

    def end(self) -> None:
        """Return no line after those that were read; any thread may call it."""
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._queue.put_nowait, None)

    def _read(self) -> None:
        try:
            data = os.read(self._descriptor, READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        first, *others = data.split(b"\n")
        self._line.append(first)
        for start in others:
            self._queue.put_nowait(b"".join(self._line))
            self._line = [start]
        if not data:
            self._loop.remove_reader(self._descriptor)
            if any(self._line):
                self._queue.put_nowait(b"".join(self._line))
            self._queue.put_nowait(None)
        elif self._queue.qsize() >= MAX_QUEUED_MESSAGES:
            self._loop.remove_reader(self._descriptor)
            self._is_paused = True


class ThreadedLines:
    """Lines of a descriptor that only a thread can wait for."""

    def __init__(self, descriptor: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._room = threading.Semaphore(MAX_QUEUED_MESSAGES)
        threading.Thread(target=self._read, args=(descriptor,), name="stdin", daemon=True).start()

    async def get(self) -> bytes | None:
        """Return the next line; None at the end."""
        line = await self._queue.get()
        self._room.release()
        return line

    def end(self) -> None:
        """Return no line after those that were read; any thread may call it."""
        self._put(None)

    def _read(self, descriptor: int) -> None:
        with suppress(OSError), os.fdopen(descriptor, "rb", closefd=False) as lines:
            for line in lines:
                self._room.acquire()
                self._put(line)
        self.end()

    def _put(self, line: bytes | None) -> None:
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._queue.put_nowait, line)


class Output:
    """Writes lines to a descriptor: what it takes at once directly, the rest in a thread."""

    def __init__(self, descriptor: int, on_broken: Callable[[], None]) -> None:
        self._descriptor = descriptor
        self._on_broken = on_broken
        self._write_at_once = _writer_at_once(descriptor)
        self._waiting: SimpleQueue[bytes | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._unwritten = 0
        self._is_broken = False
        self._thread = threading.Thread(target=self._write_waiting, name="stdout", daemon=True)
        self._thread.start()

    async def write(self, text: str) -> None:
        """Write a line; wait while the client reads too slowly."""
        while self._unwritten > MAX_UNWRITTEN_BYTES and not self._is_broken:  # noqa: ASYNC110 - a thread counts it down
            await anyio.sleep(POLL_SECONDS)
        if self._is_broken:
            raise anyio.BrokenResourceError
        data = text.encode() + b"\n"
        if not self._unwritten:
            with self._noticing_break():
                data = data[self._write_at_once(data) :]
        if data:
            self._count(len(data))
            self._waiting.put(data)

    def finish(self) -> None:
        """Write what waits and end the thread."""
        self._waiting.put(None)
        self._thread.join()

    def _write_waiting(self) -> None:
        while (data := self._waiting.get()) is not None and not self._is_broken:
            with self._noticing_break():
                self._write(data)
            self._count(-len(data))

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except BlockingIOError:  # who started the server wants it so
                select.select([], [self._descriptor], [])

    def _count(self, change: int) -> None:
        with self._lock:
            self._unwritten += change

    @contextmanager
    def _noticing_break(self) -> Iterator[None]:
        try:
            yield
        except OSError:  # the client disconnected
            self._is_broken = True
            self._on_broken()


def _open_lines(descriptor: int) -> PolledLines | ThreadedLines:
    try:
        return PolledLines(descriptor)
    except (OSError, NotImplementedError):
        return ThreadedLines(descriptor)


def _writer_at_once(descriptor: int) -> Callable[[bytes], int]:
    """Return what writes without waiting, and tells how many bytes of a line it wrote: perhaps none."""
    if sys.platform == "linux":
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISSOCK(mode):  # clients on Node.js
            connection = socket.socket(fileno=os.dup(descriptor))
            return partial(_send_at_once, connection)
        if stat.S_ISFIFO(mode):
            return partial(_write_to_empty, descriptor, fcntl.fcntl(descriptor, fcntl.F_GETPIPE_SZ))
    return lambda _: 0


def _send_at_once(connection: socket.socket, data: bytes) -> int:
    try:
        return connection.send(data, socket.MSG_DONTWAIT)
    except BlockingIOError:
        return 0


def _write_to_empty(pipe: int, capacity: int, data: bytes) -> int:
    """Write what a pipe has room for if it is empty: no other process writes to it, so it stays like this."""
    unread = bytearray(4)
    fcntl.ioctl(pipe, termios.FIONREAD, unread)
    return 0 if any(unread) or len(data) > capacity else os.write(pipe, data)


def take_over_stdio() -> tuple[int, int]:
    """Return private descriptors of input and output; other code reads nothing and prints to stderr."""
    sys.stdout.flush()
    incoming, outgoing = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return incoming, outgoing
