"""Run a short command on an opened app."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio

from bedstone.app import App, open_app
from bedstone.cli.logs import configure_logging
from bedstone.cli.options import configuration
from bedstone.settings import LogSettings

Answer = TypeVar("Answer")


def with_app(options: dict[str, Any], use: Callable[[App], Awaitable[Answer]]) -> Answer:
    """Open the app with the options of a command, call `use`, and close it. Logs warnings only by default."""
    settings = configuration(options).settings
    level = options.get("log_level") or "warning"
    configure_logging(LogSettings(level=level, format=settings.log.format))

    async def run() -> Answer:
        async with open_app(settings) as app:
            return await use(app)

    return anyio.run(run)
