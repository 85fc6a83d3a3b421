"""Logging to stderr, as text for people or as JSON lines for machines."""

import json
import logging
import sys
from datetime import UTC, datetime

from bedstone.settings import LogSettings


class JsonLines(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """The record's time, level, logger, action and message, and its exception if it has one."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "action": getattr(record, "action", None),
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps({key: value for key, value in line.items() if value is not None}, ensure_ascii=False)


def configure_logging(settings: LogSettings) -> None:
    """Send every log line to stderr: stdout belongs to the protocol."""
    handler = logging.StreamHandler(sys.stderr)
    text = logging.Formatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s", "%H:%M:%S")
    handler.setFormatter(JsonLines() if settings.format == "json" else text)
    logging.basicConfig(level=settings.level.upper(), handlers=[handler], force=True)
    # Streams that are still open when we stop are cut; uvicorn calls that an error of the application.
    logging.getLogger("uvicorn.error").addFilter(lambda record: "without completing response" not in record.msg)
    if settings.level != "debug":
        for chatty in ("mcp", "uvicorn.access", "uvicorn.error", "httpx", "httpx2", "watchfiles"):
            logging.getLogger(chatty).setLevel(logging.WARNING)
