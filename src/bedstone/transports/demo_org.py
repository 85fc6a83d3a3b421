"""The demo org over HTTP: a guarded uvicorn server, alone or beside another one."""

import logging
import socket
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn

from bedstone.errors import InvalidSetting
from bedstone.salesforce.client.orgs import Org, Orgs
from bedstone.salesforce.demo_org.identity import CLIENT, SECRET
from bedstone.salesforce.demo_org.org import open_org
from bedstone.salesforce.demo_org.server import DemoServer
from bedstone.settings import LimitSettings
from bedstone.transports.access import Access, Guard
from bedstone.transports.connections import protocol_options
from bedstone.transports.http import listen

logger = logging.getLogger(__name__)

HOST = "127.0.0.1"
SHUTDOWN_SECONDS = 2


def build_server(demo: DemoServer, **options: Any) -> uvicorn.Server:
    """Return a server for the demo org that leaves signals to the caller."""
    config = uvicorn.Config(
        Guard(demo.app(), Access.for_address(HOST)),
        log_config=None,
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        **protocol_options(LimitSettings()),
        **options,
    )
    server = uvicorn.Server(config)
    server.capture_signals = nullcontext  # type: ignore[method-assign, assignment]
    return server


@dataclass(frozen=True)
class DemoOrg:
    """A demo org beside another server: its address, and the coroutine function that serves it."""

    url: str
    serve: Callable[[], Coroutine[Any, Any, None]]


@contextmanager
def demo_org_beside(folder: Path, port: int, name: str) -> Iterator[DemoOrg]:
    """Open the demo org on the port, or on a free one if that is in use, and save it as an org of the data folder."""
    org = open_org(folder)
    try:
        with _listen_anyway(port) as listener:
            url = f"http://localhost:{listener.getsockname()[1]}"
            Orgs(folder).add(*demo_credentials(name, url))
            yield DemoOrg(url, partial(build_server(DemoServer(org)).serve, [listener]))
    finally:
        org.close()


def _listen_anyway(port: int) -> socket.socket:
    try:
        return listen(HOST, port, "salesforce.demo_port")
    except InvalidSetting as error:
        logger.warning("%s The demo org uses a free port.", error.message, extra={"action": "demo_port_taken"})
        return listen(HOST, 0)


def demo_credentials(name: str, url: str) -> tuple[Org, str]:
    """Return the demo org at an address as an org to log in to, with its secret."""
    return Org(name, "client-credentials", url, CLIENT), SECRET
