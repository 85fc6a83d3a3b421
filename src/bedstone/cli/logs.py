"""Log to stderr, as text or as JSON lines."""

import json
import logging
import sys
from datetime import UTC, datetime

from bedstone.settings import LogSettings


class JsonFormatter(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return time, level, logger, action, message and exception of a record as JSON."""
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
    """Log to stderr only, because stdout carries the protocol."""
    handler = logging.StreamHandler(sys.stderr)
    text = logging.Formatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s", "%H:%M:%S")
    handler.setFormatter(JsonFormatter() if settings.format == "json" else text)
    logging.basicConfig(level=settings.level.upper(), handlers=[handler], force=True)
    # On shutdown open streams are closed; uvicorn would report that as an error of the application.
    logging.getLogger("uvicorn.error").addFilter(lambda record: "without completing response" not in record.msg)
    if settings.level != "debug":
        for name in ("mcp", "uvicorn.access", "uvicorn.error", "httpx", "httpx2", "watchfiles"):
            logging.getLogger(name).setLevel(logging.WARNING)
