"""Standard input and output: one JSON-RPC message per line.

Two dedicated threads read and write. The SDK's transport passes through a thread pool three times for each call, which
costs more than the rest of a small call.
"""

import asyncio
import json
import os
import sys
import threading
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

import anyio
from anyio import to_thread
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage

from bedstone.transports.jsonrpc import Malformed, MessageStream, failure, parse

MAX_QUEUED_MESSAGES = 1_000  # read ahead of the server
MAX_UNWRITTEN_BYTES = 64 * 2**20  # sent but not read by the client
POLL_SECONDS = 0.005


async def serve_stdio(server: Server[Any]) -> None:
    """Serve one client until it closes standard input."""
    stream = StdioStream(*take_over_stdio())
    await server.run(stream, stream, server.create_initialization_options())
    await to_thread.run_sync(stream.finish)


class StdioStream(MessageStream):
    """Two file descriptors as the stream that the SDK reads from and writes to."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._incoming: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._outgoing: SimpleQueue[bytes | None] = SimpleQueue()
        self._room = threading.Semaphore(MAX_QUEUED_MESSAGES)
        self._unwritten = 0
        self._is_broken = self._has_ended = False
        self._writer = threading.Thread(target=self._write, args=(outgoing,), name="stdout", daemon=True)
        self._writer.start()
        threading.Thread(target=self._read, args=(incoming,), name="stdin", daemon=True).start()

    async def receive(self) -> SessionMessage:
        """Return the next message; answer malformed lines with an error."""
        while not self._has_ended:
            line = await self._incoming.get()
            if line is None:
                self._has_ended = True  # the SDK calls again
                break
            self._room.release()
            try:
                return parse(line)
            except Malformed as malformed:
                await self._send(json.dumps(failure(malformed.request_id, malformed.error)))
        raise anyio.EndOfStream

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message as one line."""
        await self._send(item.message.model_dump_json(by_alias=True, exclude_unset=True))

    def finish(self) -> None:
        """Write what is queued and end the thread."""
        self._outgoing.put(None)
        self._writer.join()

    async def _send(self, text: str) -> None:
        while self._unwritten > MAX_UNWRITTEN_BYTES and not self._is_broken:  # noqa: ASYNC110 - a thread counts it down
            await anyio.sleep(POLL_SECONDS)
        if self._is_broken:
            raise anyio.BrokenResourceError
        data = text.encode() + b"\n"
        self._unwritten += len(data)
        self._outgoing.put(data)

    def _read(self, descriptor: int) -> None:
        with suppress(RuntimeError, OSError), os.fdopen(descriptor, "rb", closefd=False) as lines:  # the loop has ended
            for line in lines:
                self._room.acquire()
                self._loop.call_soon_threadsafe(self._incoming.put_nowait, line)
        self._end()

    def _write(self, descriptor: int) -> None:
        while (data := self._outgoing.get()) is not None:
            try:
                rest = memoryview(data)
                while rest:
                    rest = rest[os.write(descriptor, rest) :]
            except OSError:  # the client disconnected
                self._is_broken = True
                self._end()
                return
            self._unwritten -= len(data)

    def _end(self) -> None:
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._incoming.put_nowait, None)


def take_over_stdio() -> tuple[int, int]:
    """Return private descriptors of input and output; other code reads nothing and prints to stderr."""
    sys.stdout.flush()
    incoming, outgoing = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return incoming, outgoing
