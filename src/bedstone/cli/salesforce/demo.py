"""`bedstone salesforce demo`: the demo org as a server of its own."""

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import click

from bedstone.cli.options import UserPath, configuration, settings_options
from bedstone.cli.salesforce.options import DATA_FLAGS
from bedstone.errors import MissingExtra
from bedstone.settings import layout

if TYPE_CHECKING:
    import uvicorn

    from bedstone.salesforce.demo_org.server import DemoServer


@click.command
@click.option("--port", type=click.IntRange(1, 65535), default=3001, show_default=True, help="Port for http.")
@click.option("--https-port", type=click.IntRange(1, 65535), help="Port for https, for clients that require it.")
@click.option("--data", type=UserPath(file_okay=False, path_type=Path), help="Folder for the org's database.")
@click.option("--fault", "faults", multiple=True, help="Fault to switch on; `--fault list` lists them.")
@click.option("--admin", is_flag=True, help="Let clients switch faults with PUT /_demo/faults.")
@settings_options(DATA_FLAGS)
def demo(
    port: int, https_port: int | None, data: Path | None, faults: tuple[str, ...], admin: bool, **options: Any
) -> None:
    """Run a small Salesforce org on this machine: objects, records, articles, REST, logins. All data is invented."""
    from bedstone.salesforce.demo_org.faults import NAMES, Faults
    from bedstone.salesforce.demo_org.org import open_org
    from bedstone.salesforce.demo_org.server import DemoServer

    if "list" in faults:
        for name, meaning in NAMES.items():
            click.echo(f"{name:14} {meaning}")
        return
    chosen = Faults.of(list(faults))
    folder = data or layout.salesforce(configuration(options).settings)
    org = open_org(folder)
    try:
        server = DemoServer(org, chosen, admin=admin)
        anyio.run(_serve, server, port, https_port, folder)
    finally:
        org.close()


async def _serve(server: "DemoServer", port: int, https_port: int | None, folder: Path) -> None:
    from bedstone.transports.demo_org import HOST, build_server
    from bedstone.transports.http import listen

    servers = [(build_server(server), port)]
    if https_port is not None:
        servers.append((build_server(server, **_certificate(folder)), https_port))
    listeners = [listen(HOST, number) for _, number in servers]
    click.echo(_banner(server, port, https_port, folder), err=True)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_stop_on_signal, [item for item, _ in servers])
        async with anyio.create_task_group() as serving:
            for (item, _), listener in zip(servers, listeners, strict=True):
                serving.start_soon(item.serve, [listener])
        tasks.cancel_scope.cancel()


async def _stop_on_signal(servers: "list[uvicorn.Server]") -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for number in signals:
            for server in servers:
                server.handle_exit(number, None)


def _certificate(folder: Path) -> dict[str, Any]:
    """Create a certificate for this machine, and the authority that clients must trust."""
    from bedstone.transports.demo_org import HOST

    try:
        import trustme
    except ImportError:
        raise MissingExtra(
            "--https-port needs a certificate; install with: pip install 'bedstone[demo-https]'"
        ) from None
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost", HOST)
    key, chain = folder / "demo-key.pem", folder / "demo-certificate.pem"
    certificate.private_key_pem.write_to_path(key)
    key.chmod(0o600)
    chain.write_bytes(b"".join(part.bytes() for part in certificate.cert_chain_pems))
    authority.cert_pem.write_to_path(folder / "demo-authority.pem")
    return {"ssl_keyfile": str(key), "ssl_certfile": str(chain)}


def _banner(server: "DemoServer", port: int, https_port: int | None, folder: Path) -> str:
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
    return "\n".join([*lines, "", "Press Ctrl-C to stop; changes are kept."])
