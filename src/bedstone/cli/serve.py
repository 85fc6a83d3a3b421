"""`bedstone serve`: choose toolsets and transport, and serve until stopped."""

import json
import logging
import signal
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
    settings = configuration(options).settings
    configure_logging(settings.log)
    anyio.run(_serve, settings)


async def _serve(settings: Settings) -> None:
    async with open_app(settings) as app:
        logger.info("Serving %s", ", ".join(app.toolsets), extra={"action": "serving"})
        match settings.mcp.transport:
            case "stdio":
                await _serve_stdio(app)
            case "all":
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(_serve_network, app)
                    await _serve_stdio(app)
                    tasks.cancel_scope.cancel()
            case _:
                await _serve_network(app)


async def _serve_stdio(app: App) -> None:
    from bedstone.transports.stdio import serve_stdio

    # A thread waits in a read of standard input that nothing can interrupt, so Ctrl-C ends the process at once.
    # There is nothing to lose: what was acknowledged is on disk.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    await serve_stdio(app.hub())


async def _serve_network(app: App) -> None:
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
    with listen(mcp.host, mcp.port) as listener:
        click.echo(banner(app), err=True)
        await uvicorn.Server(config).serve([listener])


def banner(app: App) -> str:
    """What a person wants to know once the server listens."""
    mcp = app.settings.mcp
    host = f"[{mcp.host}]" if ":" in mcp.host else mcp.host
    base = f"http://{'localhost' if mcp.host == '127.0.0.1' else host}:{mcp.port}"
    rows = [
        ("all toolsets", f"{base}/mcp"),
        *((label, f"{base}/{label.replace('_', '-')}/mcp") for label in app.toolsets),
    ]
    width = max(len(label) for label, _ in rows)
    entry: dict[str, Any] = {"type": "http", "url": f"{base}/mcp"}
    if app.settings.access_token:
        entry |= {"headers": {"Authorization": "Bearer <token>"}}
    snippet = json.dumps({"mcpServers": {"bedstone": entry}}, indent=2)
    lines = [
        f"Bedstone {__version__} is listening.",
        *([f"  {'page':{width}}  {base}/"] if mcp.transport in ("http", "all") else []),
        *(f"  {label:{width}}  {address}" for label, address in rows),
        "",
        "Paste this into your client's MCP configuration (or see `bedstone install --help`):",
        snippet,
        "",
        "Ctrl-C stops it.",
    ]
    return "\n".join(lines)
