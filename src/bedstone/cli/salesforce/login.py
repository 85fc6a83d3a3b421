"""`bedstone salesforce login` and `orgs`: the orgs of a data folder."""

import json
import shutil
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import anyio
import click

from bedstone.cli.options import configuration, settings_options
from bedstone.cli.salesforce.options import AS_JSON, DATA_FLAGS
from bedstone.errors import InvalidInput
from bedstone.services.orgs import open_orgs
from bedstone.settings import layout

if TYPE_CHECKING:
    from bedstone.salesforce.client.orgs import Org

METHODS = ["browser", "access-token", "client-credentials", "jwt", "refresh-token", "sf", "soap", "demo"]
HOST = "127.0.0.1"
CALLBACK_PORT = 1717
CALLBACK = f"http://localhost:{CALLBACK_PORT}/callback"
LOGIN_SECONDS = 300
DEMO_URL = "http://localhost:3001"


@click.command
@click.option("--org", "name", default="default", show_default=True, help="Name for the org.")
@click.option("--method", type=click.Choice(METHODS), default="browser", show_default=True, help="Login method.")
@click.option(
    "--url", default="https://login.salesforce.com", show_default=True, help="Login URL, or the URL of the org."
)
@click.option("--client-id", default="", help="Client id of the external client app.")
@click.option("--username", default="", help="Username; with sf, the alias of the org.")
@click.option("--key-file", default="", help="Private key file, for jwt.")
@click.option("--read-only", is_flag=True, help="Never change anything in this org.")
@settings_options(DATA_FLAGS)
def login(name: str, method: str, url: str, read_only: bool, **options: Any) -> None:
    """Log in to an org and save it. Secrets are prompted for, never passed as options."""
    details = {key: options.pop(key) for key in ("client_id", "username", "key_file")}
    orgs = open_orgs(configuration(options).settings)
    if "/" in name:
        raise InvalidInput("The name of an org cannot contain a slash.")
    org, secret = _credentials(name, method, url, details)
    org = replace(org, read_only=read_only)
    anyio.run(_check_login, org, secret)  # an org that does not work is not saved
    orgs.add(org, secret)
    click.echo(f"Logged in to {org.url or org.username}; saved as {name}.")


def _credentials(name: str, method: str, url: str, details: dict[str, Any]) -> "tuple[Org, str]":
    """Return the org and its secret, which a browser login or the user provides."""
    from bedstone.salesforce.client.orgs import NEEDS, Org

    if method == "browser":
        return Org(name, "refresh-token", url, **details), anyio.run(_browser_login, url, details["client_id"])
    if method == "demo":
        from bedstone.transports.demo_org import demo_credentials

        return demo_credentials(name, url if "localhost" in url or HOST in url else DEMO_URL)
    org = Org(name, method, url, **details)  # type: ignore[arg-type]
    prompt = "Secret (access token, client secret, refresh token or password)"
    return org, click.prompt(prompt, hide_input=True) if "secret" in NEEDS[org.method] else ""


async def _check_login(org: "Org", secret: str) -> None:
    from bedstone.salesforce.client import SalesforceClient
    from bedstone.salesforce.client.orgs import auth_of

    async with SalesforceClient(auth_of(org, secret)) as client:
        await client.limits()  # every user may call this


async def _browser_login(url: str, client_id: str) -> str:
    """Open the browser, receive the redirect on this machine, and return the refresh token."""
    import webbrowser

    import httpx2

    from bedstone.salesforce.client.auth import BrowserLogin

    if not client_id:
        raise InvalidInput(
            f"A browser login needs --client-id of an external client app that may redirect to {CALLBACK}"
        )
    flow = BrowserLogin(url, client_id, CALLBACK)
    received = anyio.Event()
    addresses: list[str] = []

    async def receive(stream: Any) -> None:
        async with stream:
            line = (await stream.receive()).decode(errors="replace").split(" ")
            addresses.append(line[1] if len(line) > 1 else "")
            await stream.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\nYou can close this window now.")
        received.set()

    async with anyio.create_task_group() as tasks:
        listener = await anyio.create_tcp_listener(local_host=HOST, local_port=CALLBACK_PORT)
        tasks.start_soon(listener.serve, receive)
        click.echo(f"Opening the browser. If it does not open, go to:\n{flow.address}", err=True)
        webbrowser.open(flow.address)
        with anyio.fail_after(LOGIN_SECONDS):
            await received.wait()
        tasks.cancel_scope.cancel()
    async with httpx2.AsyncClient() as http:
        _, refresh_token = await flow.finish(http, addresses[0])
    return refresh_token


@click.command("orgs")
@click.option("--remove", metavar="NAME", help="Remove an org with its synced data.")
@AS_JSON
@settings_options(DATA_FLAGS)
def list_orgs(remove: str | None, as_json: bool, **options: Any) -> None:
    """List the saved orgs, or remove one."""
    settings = configuration(options).settings
    orgs = open_orgs(settings)
    if remove:
        folder = orgs.folder_name(orgs.get(remove))
        orgs.remove(remove)
        for kind in ("articles", "schemas"):
            shutil.rmtree(layout.salesforce(settings) / kind / folder, ignore_errors=True)
    known = orgs.all()
    if as_json:
        click.echo(json.dumps([asdict(org) for org in known], indent=2))
        return
    for org in known:
        click.echo(f"{org.name:12} {org.method:18} {org.url or org.username}{'  read-only' * org.read_only}")
    if not known:
        click.echo("No orgs yet. `bedstone salesforce login` adds one; `bedstone salesforce demo` runs one to try.")
