"""The demo org over HTTP: a guarded uvicorn server, alone or beside another one."""

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn

from bedstone.salesforce.client.orgs import Org, Orgs
from bedstone.salesforce.demo_org.identity import CLIENT, SECRET
from bedstone.salesforce.demo_org.org import open_org
from bedstone.salesforce.demo_org.server import DemoServer
from bedstone.settings import LimitSettings
from bedstone.transports.access import Access, Guard
from bedstone.transports.connections import protocol_options
from bedstone.transports.http import listen

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


@contextmanager
def demo_org_beside(folder: Path, port: int, name: str) -> Iterator[Callable[[], Coroutine[Any, Any, None]]]:
    """Open the demo org, save it as an org of the data folder, and yield the coroutine function that serves it."""
    org = open_org(folder)
    try:
        Orgs(folder).add(*demo_credentials(name, f"http://localhost:{port}"))
        server = build_server(DemoServer(org))
        with listen(HOST, port, "salesforce.demo_port") as listener:
            yield partial(server.serve, [listener])
    finally:
        org.close()


def demo_credentials(name: str, url: str) -> tuple[Org, str]:
    """Return the demo org at an address as an org to log in to, with its secret."""
    return Org(name, "client-credentials", url, CLIENT), SECRET
