"""Log to stderr, as text or as JSON lines."""

import atexit
import json
import logging
import sys
import threading
from collections import deque
from datetime import UTC, datetime
from typing import TextIO

from bedstone.settings import LogSettings

MAX_WAITING_LINES = 10_000
MAX_EXIT_SECONDS = 1.0


class WaitingHandler(logging.Handler):
    """Writes lines in a thread of its own: a client that does not read stderr would otherwise stop the server.

    While the stream takes nothing, lines wait; the oldest are dropped when too many do, and a line counts them.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream
        self._lines: deque[str] = deque()
        self._dropped = 0
        self._changed = threading.Condition()
        self._is_writing = False
        threading.Thread(target=self._write, name="log", daemon=True).start()
        atexit.register(self.flush)

    def emit(self, record: logging.LogRecord) -> None:
        """Queue a line."""
        try:
            line = self.format(record)
        except Exception:  # noqa: BLE001 - as every handler of the standard library
            self.handleError(record)
            return
        with self._changed:
            if len(self._lines) >= MAX_WAITING_LINES:
                self._lines.popleft()
                self._dropped += 1
            self._lines.append(line)
            self._changed.notify_all()

    def flush(self) -> None:
        """Wait until every line is written, but no longer than a moment."""
        with self._changed:
            self._changed.wait_for(lambda: not self._lines and not self._is_writing, MAX_EXIT_SECONDS)

    def _write(self) -> None:
        while True:
            with self._changed:
                self._is_writing = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._lines)
                lines, dropped = list(self._lines), self._dropped
                self._lines.clear()
                self._dropped, self._is_writing = 0, True
            if dropped:
                lines.insert(0, f"{dropped} log lines were dropped: nothing read stderr")
            try:
                self._stream.write("\n".join(lines) + "\n")
                self._stream.flush()
            except (OSError, ValueError):  # stderr is closed
                return


class JsonFormatter(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return time, level, logger, action, message, facts and exception of a record as JSON."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "action": getattr(record, "action", None),
            "message": record.getMessage(),
            **getattr(record, "facts", {}),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps({key: value for key, value in line.items() if value is not None}, ensure_ascii=False)


def configure_logging(settings: LogSettings) -> None:
    """Log to stderr only, because stdout carries the protocol."""
    handler = WaitingHandler(sys.stderr)
    text = logging.Formatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s", "%H:%M:%S")
    handler.setFormatter(JsonFormatter() if settings.format == "json" else text)
    logging.basicConfig(level=settings.level.upper(), handlers=[handler], force=True)
    # On shutdown open streams are closed; uvicorn would report that as an error of the application.
    logging.getLogger("uvicorn.error").addFilter(lambda record: "without completing response" not in record.msg)
    if settings.level != "debug":
        for name in ("mcp", "uvicorn.access", "uvicorn.error", "httpx", "httpx2", "watchfiles"):
            logging.getLogger(name).setLevel(logging.WARNING)
