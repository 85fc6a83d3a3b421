"""Log to stderr, as text or as JSON lines."""

import atexit
import json
import logging
import os
import select
import sys
import threading
from collections import deque
from contextlib import suppress
from datetime import UTC, datetime
from typing import TextIO

from bedstone.cli.redaction import redact
from bedstone.settings import LogSettings

MAX_WAITING_LINES = 10_000
PIPE_BUF = getattr(select, "PIPE_BUF", 512)  # bytes that a pipe takes whole once it takes any
MAX_EXIT_SECONDS = 1.0


class WaitingHandler(logging.Handler):
    """Writes to a stream that nothing may read, and never waits for it: that would stop the server.

    A line that the stream cannot take at once waits, and a thread writes it later. When too many wait, the oldest are
    dropped, and a line counts them.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._descriptor = stream.fileno()
        self._poll = _poll_for_room(self._descriptor)
        self._lines: deque[bytes] = deque()
        self._dropped = 0
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        atexit.register(self.flush)

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line, or let it wait."""
        try:
            line = self.format(record).encode(errors="replace") + b"\n"
        except Exception:  # noqa: BLE001 - as every handler of the standard library
            self.handleError(record)
            return
        with self._changed:
            if not self._lines and len(line) <= PIPE_BUF and self._takes_line():
                self._write(line)
                return
            if len(self._lines) >= MAX_WAITING_LINES:
                del self._lines[1]  # the thread is writing the first
                self._dropped += 1
            self._lines.append(line)
            self._changed.notify_all()
            if self._thread is None:
                self._thread = threading.Thread(target=self._write_waiting, name="log", daemon=True)
                self._thread.start()

    def flush(self) -> None:
        """Wait until every line is written, but no longer than a moment."""
        with self._changed:
            self._changed.wait_for(lambda: not self._lines, MAX_EXIT_SECONDS)

    def _write_waiting(self) -> None:
        while True:
            with self._changed:
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._lines)
                line, dropped, self._dropped = self._lines[0], self._dropped, 0
            if dropped:
                self._write(b"%d log lines were dropped: nothing read stderr\n" % dropped)
            self._write(line)
            with self._changed:
                self._lines.popleft()

    def _takes_line(self) -> bool:
        return self._poll is not None and any(event & select.POLLOUT for _, event in self._poll.poll(0))

    def _write(self, line: bytes) -> None:
        with suppress(OSError):  # stderr is closed
            while line:
                line = line[os.write(self._descriptor, line) :]


def _poll_for_room(descriptor: int) -> "select.poll | None":
    """Return what tells whether a write of up to `PIPE_BUF` bytes returns at once; None where nothing does."""
    if not hasattr(select, "poll"):
        return None
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    return poll


class JsonFormatter(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return time, level, logger, action, message, facts and exception of a record as JSON, without secrets."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "action": getattr(record, "action", None),
            "message": redact(record.getMessage()),
            **{
                key: redact(value) if isinstance(value, str) else value
                for key, value in getattr(record, "facts", {}).items()
            },
        }
        if record.exc_info:
            line["exception"] = redact(self.formatException(record.exc_info))
        return json.dumps({key: value for key, value in line.items() if value is not None}, ensure_ascii=False)


class TextFormatter(logging.Formatter):
    """One line per record, and its exception below."""

    def format(self, record: logging.LogRecord) -> str:
        """Return time, level, logger, message and exception of a record, without secrets."""
        return redact(super().format(record))


def configure_logging(settings: LogSettings) -> None:
    """Log to stderr only, because stdout carries the protocol."""
    handler = WaitingHandler(sys.stderr)
    text = TextFormatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s", "%H:%M:%S")
    handler.setFormatter(JsonFormatter() if settings.format == "json" else text)
    logging.basicConfig(level=settings.level.upper(), handlers=[handler], force=True)
    # On shutdown open streams are closed; uvicorn would report that as an error of the application.
    logging.getLogger("uvicorn.error").addFilter(lambda record: "without completing response" not in record.msg)
    if settings.level != "debug":
        for name in ("mcp", "uvicorn.access", "uvicorn.error", "httpx", "httpx2", "watchfiles"):
            logging.getLogger(name).setLevel(logging.WARNING)
