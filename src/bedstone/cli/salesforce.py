"""`bedstone salesforce`: the demo org, and orgs."""

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import click

from bedstone.cli.options import configuration, settings_options
from bedstone.errors import MissingExtra

if TYPE_CHECKING:
    import uvicorn

    from bedstone.salesforce.demo_org.server import DemoServer

FLAGS = {"--data-dir": "data_dir"}
HOST = "127.0.0.1"
SHUTDOWN_SECONDS = 2


@click.group
def salesforce() -> None:
    """Salesforce: a demo org to try things on."""


@salesforce.command
@click.option("--port", type=click.IntRange(1, 65535), default=3001, show_default=True, help="Port for http.")
@click.option("--https-port", type=click.IntRange(1, 65535), help="Port for https, for clients that insist on it.")
@click.option("--data", type=click.Path(file_okay=False, path_type=Path), help="Folder the org is kept in.")
@click.option("--fault", "faults", multiple=True, help="Something to misbehave in; `--fault list` names them.")
@click.option("--admin", is_flag=True, help="Let PUT /_demo/faults switch misbehaviours while it runs.")
@settings_options(FLAGS)
def demo(
    port: int, https_port: int | None, data: Path | None, faults: tuple[str, ...], admin: bool, **options: Any
) -> None:
    """Run a small Salesforce org on this machine: objects, records, articles, REST, logins. Everything is invented."""
    from bedstone.salesforce.demo_org.faults import NAMES, Faults
    from bedstone.salesforce.demo_org.org import open_org
    from bedstone.salesforce.demo_org.server import DemoServer

    if "list" in faults:
        for name, meaning in NAMES.items():
            click.echo(f"{name:14} {meaning}")
        return
    chosen = Faults.of(list(faults))
    folder = data or configuration(options).settings.data_folder / "salesforce"
    org = open_org(folder)
    try:
        server = DemoServer(org, chosen, admin=admin)
        anyio.run(_serve, server, port, https_port, folder)
    finally:
        org.close()


async def _serve(server: "DemoServer", port: int, https_port: int | None, folder: Path) -> None:
    import uvicorn

    from bedstone.transports.access import Access, Guard
    from bedstone.transports.http import listen

    app = Guard(server.app(), Access.for_address(HOST))
    common: dict[str, Any] = {"log_config": None, "access_log": False, "timeout_graceful_shutdown": SHUTDOWN_SECONDS}
    running = [(uvicorn.Server(uvicorn.Config(app, **common)), port)]
    if https_port is not None:
        running.append((uvicorn.Server(uvicorn.Config(app, **common, **_certificate(folder))), https_port))
    listeners = [listen(HOST, number) for _, number in running]
    click.echo(_told(server, port, https_port, folder), err=True)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_stop_on_signal, [item for item, _ in running])
        async with anyio.create_task_group() as serving:
            for (item, _), listener in zip(running, listeners, strict=True):
                item.capture_signals = _quietly  # type: ignore[method-assign]
                serving.start_soon(item.serve, [listener])
        tasks.cancel_scope.cancel()


async def _stop_on_signal(servers: "list[uvicorn.Server]") -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for number in signals:
            for server in servers:
                server.handle_exit(number, None)


def _quietly() -> Any:
    """The signals are ours."""
    from contextlib import nullcontext

    return nullcontext()


def _certificate(folder: Path) -> dict[str, Any]:
    """A certificate for this machine, and the authority that clients must be told to trust."""
    try:
        import trustme
    except ImportError:
        raise MissingExtra(
            "--https-port needs a certificate; install with: pip install 'bedstone[demo-https]'"
        ) from None
    authority = trustme.CA()
    made = authority.issue_cert("localhost", HOST)
    key, chain = folder / "demo-key.pem", folder / "demo-certificate.pem"
    made.private_key_pem.write_to_path(key)
    key.chmod(0o600)
    chain.write_bytes(b"".join(part.bytes() for part in made.cert_chain_pems))
    authority.cert_pem.write_to_path(folder / "demo-authority.pem")
    return {"ssl_keyfile": str(key), "ssl_certfile": str(chain)}


def _told(server: "DemoServer", port: int, https_port: int | None, folder: Path) -> str:
    from bedstone.salesforce.demo_org.identity import CLIENT, PASSWORD, SECRET, USERNAME

    lines = [
        "The demo org is listening.",
        f"  address        http://localhost:{port}",
        f"  access token   {server.identity.standing}",
        f"  user           {USERNAME}, password {PASSWORD}",
        f"  client         {CLIENT}, secret {SECRET}",
    ]
    if https_port is not None:
        lines.append(f"  https          https://localhost:{https_port}, authority {folder / 'demo-authority.pem'}")
    return "\n".join([*lines, "", "Ctrl-C stops it; what was changed stays."])
