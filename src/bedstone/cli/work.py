"""`bedstone work`: read and embed added files for servers that only answer, until stopped."""

import logging
import signal
import sys
from typing import Any

import anyio
import click

from bedstone.app import among_peers, make_services
from bedstone.cli.logs import configure_logging
from bedstone.cli.options import configuration, settings_options
from bedstone.cli.serve import SWITCH_SECONDS
from bedstone.cli.startup import collection_paused
from bedstone.errors import BedstoneError, InvalidSetting
from bedstone.services.service import RETRY_SECONDS, Services
from bedstone.settings import Settings, layout
from bedstone.store.engine import StoreDamaged, StoreUnavailable

logger = logging.getLogger(__name__)

WORK_FLAGS = {"--data-dir": "data_dir", "--log-level": "log.level", "--log-format": "log.format"}


@click.command(short_help="Read and embed added files for servers that only answer.")
@settings_options(WORK_FLAGS)
def work(**options: Any) -> None:
    """Read files that were added elsewhere, embed them, and keep watched folders in sync. Serves no page and no agent.

    Start as many as you like on one PostgreSQL database (storage.database), each with a data folder of its own.
    """
    with collection_paused():
        loaded = configuration(options | {"role": "work"})
    settings = loaded.settings
    configure_logging(settings.log)
    for warning in loaded.warnings:
        logger.warning(warning, extra={"action": "setting_ignored"})
    if settings.read_only:
        raise InvalidSetting("A worker changes documents, and read_only is set.")
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        anyio.run(_work, settings)
    except ExceptionGroup as group:  # task groups wrap the errors of their tasks
        if len(group.exceptions) == 1 and isinstance(group.exceptions[0], BedstoneError):
            raise group.exceptions[0] from None
        raise


async def _work(settings: Settings) -> None:
    services = make_services(settings, ["knowledge"])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_work_until_cancelled, services)
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for _ in signals:
                tasks.cancel_scope.cancel()
                break


async def _work_until_cancelled(services: Services) -> None:
    handle = services["knowledge"]
    async with among_peers(services), handle.serving():
        try:
            await _open(services)
            place = layout.knowledge_store(services.context.settings)
            logger.info("Working on %s", place, extra={"action": "working"})
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await services.aclose()


async def _open(services: Services) -> None:
    """Open the knowledge base; try again while its store does not answer."""
    known = None
    while True:
        try:
            await services["knowledge"].open()
        except StoreDamaged:
            raise
        except StoreUnavailable as error:
            if error.message != known:
                logger.warning("%s", error.message, extra={"action": "service_not_opened"})
            known = error.message
            await anyio.sleep(RETRY_SECONDS)
        else:
            return
