"""`bedstone serve`: choose toolsets and transport, and serve until stopped."""

import logging
import os
import shlex
import signal
import stat
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import click

from bedstone import __version__
from bedstone.app import App, among_peers, open_app
from bedstone.cli.logs import configure_logging
from bedstone.cli.options import CONTENT_FLAGS, SERVER_FLAGS, configuration, serve_arguments, settings_options
from bedstone.cli.redaction import hide
from bedstone.cli.startup import collection_paused
from bedstone.services.orgs import DEMO_ORG
from bedstone.settings import Settings, layout

if TYPE_CHECKING:
    import uvicorn

    from bedstone.transports.access import Access
    from bedstone.transports.demo_org import DemoOrg
    from bedstone.transports.page_sessions import SessionRecords
    from bedstone.web import PageOptions

logger = logging.getLogger(__name__)

SHUTDOWN_SECONDS = 2
SWITCH_SECONDS = 0.001  # maximum wait of a call for a thread that reads files; Python's default is 5 ms


@click.command
@settings_options(CONTENT_FLAGS | SERVER_FLAGS)
def serve(**options: Any) -> None:
    """Serve the configured toolsets to agents.

    Uses stdio by default; `--transport http` listens on http://127.0.0.1:3000 with all network transports.
    """
    with collection_paused():
        loaded = configuration(options)
        _import_transports(loaded.settings.mcp.transport)
    configure_logging(loaded.settings.log)
    for warning in loaded.warnings:
        logger.warning(warning, extra={"action": "setting_ignored"})
    if loaded.settings.mcp.transport != "stdio":
        hide(loaded.settings.access_token)  # raises an error for a weak or exposed token before anything opens
        hide(loaded.settings.signing_secret)
    if loaded.settings.role == "work":
        raise click.UsageError("A process with the role 'work' has no clients. Start it with `bedstone work`.")
    sys.setswitchinterval(SWITCH_SECONDS)
    anyio.run(_serve, loaded.settings, serve_arguments(options))


def _import_transports(transport: str) -> None:
    """Import the SDK and what else a transport needs, which is most of the start-up."""
    import bedstone.transports.stdio

    if transport != "stdio":
        import bedstone.transports.http
        import bedstone.web  # noqa: F401


async def _serve(settings: Settings, arguments: Sequence[str]) -> None:
    address = "" if settings.mcp.transport == "stdio" else f"{settings.mcp.host}:{settings.mcp.port}"
    async with (
        open_app(settings) as app,
        among_peers(app.services, address, has_documents="knowledge" in app.toolsets),
    ):
        logger.info("Serving %s", ", ".join(app.toolsets), extra={"action": "serving"})
        transport = settings.mcp.transport
        if transport == "stdio":
            await _serve_stdio(app)
        elif transport == "all" and _is_input_open():
            await _serve_network(app, arguments, companion=_serve_stdio)
        else:
            await _serve_network(app, arguments)


def _is_input_open() -> bool:
    """Return whether a client can write to standard input; service managers close it or use /dev/null."""
    try:
        return sys.stdin.isatty() or not stat.S_ISCHR(os.fstat(sys.stdin.fileno()).st_mode)
    except (AttributeError, OSError, ValueError):
        return False


async def _serve_stdio(app: App) -> None:
    from bedstone.transports.stdio import serve_stdio

    async def exit_on_signal() -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for number in signals:
                await app.aclose()
                # A thread blocks in a read of standard input that nothing can interrupt, so exit without joining it.
                os._exit(128 + number)

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(exit_on_signal)
            await serve_stdio(app.hub())
            tasks.cancel_scope.cancel()
    except* OSError as errors:
        logger.warning("Client disconnected: %s", errors.exceptions[0], extra={"action": "client_gone"})


async def _serve_network(
    app: App, arguments: Sequence[str], companion: Callable[[App], Awaitable[None]] | None = None
) -> None:
    """Listen until stopped, or until the companion ends."""
    import uvicorn

    from bedstone.transports.access import Access
    from bedstone.transports.attempts import Attempts
    from bedstone.transports.connections import LimitedServer, protocol_options
    from bedstone.transports.http import MAX_BODY_BYTES, NETWORK_TRANSPORTS, build_http_app, listen
    from bedstone.web import page_routes

    mcp, limits = app.settings.mcp, app.settings.limits
    access = Access.for_address(
        mcp.host,
        allowed_hosts=mcp.allowed_hosts,
        allowed_origins=mcp.allowed_origins,
        token=app.settings.access_token,
        attempts=Attempts(limits.free_attempts, limits.max_wait_seconds),
        session_records=_session_records(app),
    )
    serves_all = mcp.transport in ("http", "all")
    asgi = build_http_app(
        app.servers(),
        access,
        transports=NETWORK_TRANSPORTS if serves_all else (mcp.transport,),
        json_response=mcp.json_response,
        stateless=app.settings.is_stateless,
        pages=page_routes(app.services, app.toolsets, _page_options(app, access, arguments)) if serves_all else (),
        limits=limits,
    )
    config = uvicorn.Config(
        asgi,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        ws_max_size=MAX_BODY_BYTES,
        **protocol_options(limits),
    )
    server = LimitedServer(config)
    # uvicorn would raise the signal again after its shutdown and end the process before anything is closed.
    server.capture_signals = nullcontext  # type: ignore[method-assign, assignment]
    with listen(mcp.host, mcp.port) as listener, _demo_org(app.settings) as demo:
        _announce(app, demo.url if demo is not None else None)
        async with anyio.create_task_group() as tasks:
            if demo is not None:
                tasks.start_soon(demo.serve)
            if companion is None:
                tasks.start_soon(_stop_on_signal, server)
            else:
                tasks.start_soon(_stop_after, companion, app, server)
            await server.serve([listener])
            tasks.cancel_scope.cancel()


def _session_records(app: App) -> "SessionRecords":
    """Return where the ends of logins are recorded: where all servers see them, or in the data folder."""
    from bedstone.transports.page_sessions import SessionFile, SharedSessions

    if app.peers is not None:
        return SharedSessions(app.peers)
    return SessionFile(layout.page_sessions(app.settings), app.settings.signing_secret)


def _demo_org(settings: Settings) -> "AbstractContextManager[DemoOrg | None]":
    """Return the demo org, opened if the settings ask for it."""
    if settings.salesforce.demo_port is None:
        return nullcontext()
    from bedstone.transports.demo_org import demo_org_beside

    return demo_org_beside(layout.salesforce(settings), settings.salesforce.demo_port, DEMO_ORG)


async def _stop_on_signal(server: "uvicorn.Server") -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for number in signals:
            server.handle_exit(number, None)  # a second signal does not wait for open streams


async def _stop_after(companion: Callable[[App], Awaitable[None]], app: App, server: "uvicorn.Server") -> None:
    await companion(app)
    server.handle_exit(signal.SIGTERM, None)


def _announce(app: App, demo_url: str | None) -> None:
    if app.settings.log.format == "json":
        address = f"{app.settings.mcp.host}, port {app.settings.mcp.port}"
        logger.info("Listening on %s", address, extra={"action": "listening"})
    else:
        click.echo(banner(app, demo_url), err=True)


def _page_options(app: App, access: "Access", arguments: Sequence[str]) -> "PageOptions":
    from bedstone.cli.clients import client_setups
    from bedstone.web import PageOptions

    token, settings = app.settings.access_token, app.settings
    program = str(Path(sys.executable).with_name("bedstone"))
    evaluation = (program, "eval", "run", "--cases", "demo/questions.json", "--data-dir", str(settings.data_folder))
    return PageOptions(
        client_setups=lambda base: client_setups(f"{base}/mcp", guarded=token is not None, start=(program, arguments)),
        evaluation_command=shlex.join((*evaluation, "--", program, "serve", *arguments)),
        data_folder=app.settings.data_folder,
        read_only=app.settings.read_only,
        token=token,
        sessions=access.sessions,
        attempts=access.attempts,
        get_secret=lambda: app.services.context.secret,
    )


def banner(app: App, demo_url: str | None = None) -> str:
    """Return the text to print once the server listens: addresses, and a configuration to paste."""
    from bedstone.cli.clients import network_entry, snippet

    mcp = app.settings.mcp
    host = "localhost" if mcp.host == "127.0.0.1" else f"[{mcp.host.strip('[]')}]" if ":" in mcp.host else mcp.host
    scheme, path, kind = {"sse": ("http", "/sse", "sse"), "ws": ("ws", "/mcp", "ws")}.get(
        mcp.transport, ("http", "/mcp", "http")
    )
    base = f"{scheme}://{host}:{mcp.port}"
    entry = network_entry(f"{base}{path}", kind=kind, guarded=app.settings.access_token is not None)
    rows = [("page", f"{base}/")] if mcp.transport in ("http", "all") else []
    rows += [("all toolsets", f"{base}{path}")]
    rows += [(label, f"{base}/{label.replace('_', '-')}{path}") for label in app.toolsets]
    if demo_url is not None:
        rows.append(("demo org", demo_url))
    width = max(len(label) for label, _ in rows)
    return "\n".join(
        [
            f"Bedstone {__version__} is listening.",
            *(f"  {label:{width}}  {address}" for label, address in rows),
            "",
            "Paste this into your client's MCP configuration (or see `bedstone install --help`):",
            snippet(entry),
            "",
            "Press Ctrl-C to stop.",
        ]
    )
