"""`bedstone serve`: choose toolsets and transport, and serve until stopped."""

import json
import logging
import os
import signal
import stat
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import click

from bedstone import __version__
from bedstone.app import App, open_app
from bedstone.cli.logs import configure_logging
from bedstone.cli.options import CONTENT_FLAGS, SERVER_FLAGS, configuration, settings_options
from bedstone.settings import Settings

logger = logging.getLogger(__name__)

SHUTDOWN_SECONDS = 2


@click.command
@settings_options(CONTENT_FLAGS | SERVER_FLAGS)
def serve(**options: Any) -> None:
    """Serve the configured toolsets to agents.

    Over stdio by default; `--transport http` listens on http://127.0.0.1:3000 with every network transport.
    """
    loaded = configuration(options)
    configure_logging(loaded.settings.log)
    for warning in loaded.warnings:
        logger.warning(warning, extra={"action": "setting_ignored"})
    anyio.run(_serve, loaded.settings)


async def _serve(settings: Settings) -> None:
    async with open_app(settings) as app:
        logger.info("Serving %s", ", ".join(app.toolsets), extra={"action": "serving"})
        transport = settings.mcp.transport
        if transport == "stdio":
            await _serve_stdio(app)
        elif transport == "all" and _input_is_open():
            await _serve_network(app, beside=_serve_stdio)
        else:
            await _serve_network(app)


def _input_is_open() -> bool:
    """Whether somebody may write to us: not under a service manager, where standard input is closed or /dev/null."""
    try:
        return sys.stdin.isatty() or not stat.S_ISCHR(os.fstat(sys.stdin.fileno()).st_mode)
    except (AttributeError, OSError, ValueError):
        return False


async def _serve_stdio(app: App) -> None:
    from bedstone.transports.stdio import serve_stdio

    # A thread waits in a read of standard input that nothing can interrupt, so Ctrl-C ends the process at once.
    # There is nothing to lose: what was acknowledged is on disk.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        await serve_stdio(app.hub())
    except* OSError as errors:
        logger.warning("The client is gone: %s", errors.exceptions[0], extra={"action": "client_gone"})


async def _serve_network(app: App, beside: Callable[[App], Awaitable[None]] | None = None) -> None:
    """Listen until stopped; with something served beside it, until that has ended."""
    import uvicorn

    from bedstone.transports.access import Access
    from bedstone.transports.http import MAX_BODY_BYTES, NETWORK_TRANSPORTS, build_http_app, listen
    from bedstone.web import page_routes

    mcp = app.settings.mcp
    access = Access.for_address(mcp.host, allowed_hosts=mcp.allowed_hosts, token=app.settings.access_token)
    everything = mcp.transport in ("http", "all")
    asgi = build_http_app(
        app.servers(),
        access,
        transports=NETWORK_TRANSPORTS if everything else (mcp.transport,),
        json_response=mcp.json_response,
        pages=page_routes(app.toolsets) if everything else (),
    )
    config = uvicorn.Config(
        asgi,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        ws_max_size=MAX_BODY_BYTES,
    )
    server = uvicorn.Server(config)
    with listen(mcp.host, mcp.port) as listener:
        click.echo(banner(app), err=True)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.serve, [listener])
            if beside is not None:
                await beside(app)
                server.should_exit = True


def banner(app: App) -> str:
    """What a person wants to know once the server listens: addresses, and a configuration to paste."""
    mcp = app.settings.mcp
    host = "localhost" if mcp.host == "127.0.0.1" else f"[{mcp.host.strip('[]')}]" if ":" in mcp.host else mcp.host
    base, path = f"http://{host}:{mcp.port}", "/mcp"
    entry: dict[str, Any] = {"type": "http"}
    if mcp.transport == "sse":
        path, entry = "/sse", {"type": "sse"}
    elif mcp.transport == "ws":
        base, entry = base.replace("http", "ws", 1), {"type": "ws"}
    entry["url"] = f"{base}{path}"
    if app.settings.access_token:
        entry["headers"] = {"Authorization": "Bearer <token>"}
    rows = [("page", f"{base}/")] if mcp.transport in ("http", "all") else []
    rows += [("all toolsets", f"{base}{path}")]
    rows += [(label, f"{base}/{label.replace('_', '-')}{path}") for label in app.toolsets]
    width = max(len(label) for label, _ in rows)
    return "\n".join(
        [
            f"Bedstone {__version__} is listening.",
            *(f"  {label:{width}}  {address}" for label, address in rows),
            "",
            "Paste this into your client's MCP configuration (or see `bedstone install --help`):",
            json.dumps({"mcpServers": {"bedstone": entry}}, indent=2),
            "",
            "Ctrl-C stops it.",
        ]
    )
