"""`bedstone salesforce`: the demo org, and orgs."""

import json
import re
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import click

from bedstone.cli.options import configuration, settings_options
from bedstone.cli.progress import progress_bar
from bedstone.errors import InvalidInput, MissingExtra
from bedstone.services.orgs import DEMO_ORG, default_org, open_client, open_orgs
from bedstone.settings import layout

if TYPE_CHECKING:
    from socket import socket

    import uvicorn

    from bedstone.salesforce.client import SalesforceClient
    from bedstone.salesforce.client.orgs import Org, Orgs
    from bedstone.salesforce.demo_org.server import DemoServer
    from bedstone.services.articles.mirror import SyncReport
    from bedstone.services.articles.service import ArticleService
    from bedstone.services.schema.service import SchemaService
    from bedstone.services.schema.sync import SyncReport as SchemaReport

FLAGS = {"--data-dir": "data_dir"}
ORG_FLAGS = {"--org": "salesforce.org", **FLAGS}
METHODS = ["browser", "access-token", "client-credentials", "jwt", "refresh-token", "sf", "soap", "demo"]
DEMO_PORT = 3001
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
FORMAT = click.option(
    "--format",
    "output",
    type=click.Choice(["table", "csv", "json"]),
    default="table",
    show_default=True,
    help="How to print.",
)
HOST = "127.0.0.1"
SHUTDOWN_SECONDS = 2
CALLBACK_PORT, LOGIN_SECONDS = 1717, 300
UVICORN: dict[str, Any] = {
    "log_config": None,
    "access_log": False,
    "lifespan": "off",
    "timeout_graceful_shutdown": SHUTDOWN_SECONDS,
}


@click.group
def salesforce() -> None:
    """Salesforce: log in, query, search, describe; and a demo org to try it on."""


@salesforce.command
@click.option("--org", "name", default="default", show_default=True, help="Name the org gets here.")
@click.option("--method", type=click.Choice(METHODS), default="browser", show_default=True, help="How to log in.")
@click.option(
    "--url", default="https://login.salesforce.com", show_default=True, help="Where one logs in, or the org's address."
)
@click.option("--client-id", default="", help="Of the external client app.")
@click.option("--username", default="", help="Of the user; with sf, the alias of the org.")
@click.option("--key-file", default="", help="Private key for jwt.")
@click.option("--read-only", is_flag=True, help="Never change anything in this org.")
@settings_options(FLAGS)
def login(name: str, method: str, url: str, read_only: bool, **options: Any) -> None:
    """Log into an org and remember it. Secrets are asked for, never given as options."""
    from bedstone.salesforce.client.orgs import NEEDS, Org

    details = {key: options.pop(key) for key in ("client_id", "username", "key_file")}
    orgs = _orgs(options)
    if "/" in name:
        raise InvalidInput("The name of an org holds no slash.")
    if method == "browser":
        secret = anyio.run(_browser_login, url, details["client_id"])
        org = Org(name, "refresh-token", url, read_only=read_only, **details)
    elif method == "demo":
        org, secret = _demo_org(
            name, url if "localhost" in url or "127.0.0.1" in url else f"http://localhost:{DEMO_PORT}"
        )
        org = replace(org, read_only=read_only)
    else:
        org = Org(name, method, url, read_only=read_only, **details)  # type: ignore[arg-type]
        needs_secret = "secret" in NEEDS[org.method]
        secret = (
            click.prompt("Secret (access token, client secret, refresh token or password)", hide_input=True)
            if needs_secret
            else ""
        )
    user = anyio.run(_who, org, secret)  # nothing is remembered that does not work
    orgs.add(org, secret)
    click.echo(f"Logged in as {user}; the org is called {name} here.")


@salesforce.command("orgs")
@click.option("--remove", metavar="NAME", help="Forget an org.")
@AS_JSON
@settings_options(FLAGS)
def list_orgs(remove: str | None, as_json: bool, **options: Any) -> None:
    """List the orgs that are known, or forget one."""
    from dataclasses import asdict

    orgs = _orgs(options)
    if remove:
        folder = orgs.folder_name(orgs.get(remove))
        orgs.remove(remove)
        for kind in ("articles", "schemas"):
            shutil.rmtree(layout.salesforce(configuration(options).settings) / kind / folder, ignore_errors=True)
    rows = [asdict(org) for org in orgs.all()]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    for row in rows:
        click.echo(
            f"{row['name']:12} {row['method']:18} {row['url'] or row['username']}{'  read-only' * row['read_only']}"
        )
    if not rows:
        click.echo("No orgs yet. `bedstone salesforce login` adds one; `bedstone salesforce demo` runs one to try.")


@salesforce.command
@click.argument("soql")
@FORMAT
@click.option("--limit", type=click.IntRange(1), default=200, show_default=True, help="Most rows to print.")
@click.option("--all-rows", is_flag=True, help="Deleted rows too.")
@settings_options(ORG_FLAGS)
def query(soql: str, output: str, limit: int, all_rows: bool, **options: Any) -> None:
    """Run SOQL and print what it finds."""
    from bedstone.salesforce.rows import counted, selected_columns
    from bedstone.salesforce.soql import parse_soql

    parse_soql(soql)  # what cannot be read costs no call

    async def ask() -> tuple[list[dict[str, Any]], int]:
        async with _client(options) as client:
            page = await client.query(soql, all_rows=all_rows)
            total, rows = page["totalSize"], list(page["records"])
            while not page["done"] and len(rows) < limit:
                page = await client.more(page["nextRecordsUrl"])
                rows += page["records"]
            return rows[:limit], total

    rows, total = anyio.run(ask)
    _print_rows(rows or counted(soql, total), output, selected_columns(soql))
    if 0 < len(rows) < total:
        click.echo(f"{len(rows)} of {total} rows; --limit gives more", err=True)
    elif output == "table":
        click.echo(f"{total} row{'' if total == 1 else 's'}", err=True)


@salesforce.command
@click.argument("sosl")
@FORMAT
@settings_options(ORG_FLAGS)
def search(sosl: str, output: str, **options: Any) -> None:
    """Run SOSL; a text without FIND is searched for in accounts, contacts, leads, opportunities and cases."""
    from bedstone.salesforce.soql import parse_sosl
    from bedstone.salesforce.soql.quoting import search_term

    if not re.match(r"\s*find\s*\{", sosl, re.IGNORECASE):
        wanted = (
            "Account(Id, Name), Contact(Id, Name), Lead(Id, Name), Opportunity(Id, Name), Case(Id, CaseNumber, Subject)"
        )
        sosl = f"FIND {{{search_term(sosl)}}} RETURNING {wanted}"
    parse_sosl(sosl)

    async def ask() -> list[dict[str, Any]]:
        async with _client(options) as client:
            return await client.search(sosl)

    _print_rows([{"type": row["attributes"]["type"], **row} for row in anyio.run(ask)], output)


@salesforce.command
@click.argument("object_name", required=False)
@FORMAT
@settings_options(ORG_FLAGS)
def describe(object_name: str | None, output: str, **options: Any) -> None:
    """Print an object's fields, or every object."""

    async def ask() -> Any:
        async with _client(options) as client:
            return await client.describe(object_name) if object_name else await client.describe_global()

    found = anyio.run(ask)
    if output == "json":
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
    elif object_name:
        rows = [
            {
                "field": field["name"],
                "label": field["label"],
                "type": field["type"],
                "to": ", ".join(field["referenceTo"]),
            }
            for field in found["fields"]
        ]
        _print_rows(rows, output)
    else:
        _print_rows(
            [{"object": item["name"], "label": item["label"], "prefix": item["keyPrefix"]} for item in found], output
        )


@salesforce.command("sync-knowledge")
@AS_JSON
@settings_options(ORG_FLAGS)
def sync_knowledge(as_json: bool, **options: Any) -> None:
    """Mirror the org's published articles: they are then found by meaning too, and while the org does not answer.

    Only what changed is read again; what was interrupted goes on where it was.
    """
    from bedstone.app import make_services

    services = make_services(configuration(options).settings)

    async def sync() -> "SyncReport":
        service: ArticleService = services["salesforce_knowledge"].get()
        try:
            with progress_bar() as bar:
                line = bar.add_task("Reading articles", total=None)
                return await service.sync(lambda done, total: bar.update(line, completed=done, total=total))
        finally:
            await services.aclose()

    report = anyio.run(sync)
    if as_json:
        click.echo(json.dumps(vars(report)))
    else:
        click.echo(f"{report.total} articles: {report.changed} new or changed, {report.removed} removed.")


@salesforce.command("sync-schema")
@click.option(
    "--from",
    "source",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of describes saved as JSON, instead of an org.",
)
@click.option("--name", default="imported", show_default=True, help="Name of a schema that comes from a folder.")
@click.option("--derived", is_flag=True, help="Shares, feeds, histories and change events too.")
@AS_JSON
@settings_options(ORG_FLAGS)
def sync_schema(source: Path | None, name: str, derived: bool, as_json: bool, **options: Any) -> None:
    """Take over the org's schema: objects, fields, relationships, picklists. Again: only what changed."""
    from bedstone.app import make_services

    services = make_services(configuration(options).settings)
    service: SchemaService = services["salesforce_graph"].get()

    async def sync() -> "SchemaReport":
        try:
            with progress_bar() as bar:
                line = bar.add_task("Reading objects", total=None)

                def tell(done: int, total: int) -> None:
                    bar.update(line, completed=done, total=total)

                if source is not None:
                    if not re.fullmatch(r"\w[\w.-]{0,59}", name):
                        raise InvalidInput("--name takes letters, digits, dots and hyphens.")
                    report = service.import_folder(name, source, tell)
                else:
                    report = await service.sync(None, tell, derived=derived)
                bar.update(line, description="Learning what names mean")
                service.embed_names(name if source is not None else None, tell)
                return report
        finally:
            await services.aclose()

    report = anyio.run(sync)
    if as_json:
        click.echo(json.dumps(vars(report)))
        return
    click.echo(f"{report.objects} objects: {report.changed} new or changed, {report.removed} removed.")
    if report.failed:
        click.echo(f"{report.failed} could not be read; the log says why.", err=True)


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
    folder = data or layout.salesforce(configuration(options).settings)
    org = open_org(folder)
    try:
        server = DemoServer(org, chosen, admin=admin)
        anyio.run(_serve, server, port, https_port, folder)
    finally:
        org.close()


@dataclass(frozen=True)
class DemoOrgBeside:
    """The demo org inside a server of ours."""

    server: "uvicorn.Server"
    listener: "socket"

    @classmethod
    @contextmanager
    def opened(cls, folder: Path, port: int) -> "Iterator[DemoOrgBeside]":
        """Open it, and make it known as the org `demo`."""
        import uvicorn

        from bedstone.salesforce.client.orgs import Orgs
        from bedstone.salesforce.demo_org.org import open_org
        from bedstone.salesforce.demo_org.server import DemoServer
        from bedstone.transports.access import Access, Guard
        from bedstone.transports.http import listen

        org = open_org(folder)
        try:
            Orgs(folder).add(*_demo_org(DEMO_ORG, f"http://localhost:{port}"))
            app = Guard(DemoServer(org).app(), Access.for_address(HOST))
            server = uvicorn.Server(uvicorn.Config(app, **UVICORN))
            server.capture_signals = _quietly  # type: ignore[method-assign]
            with listen(HOST, port, "salesforce.demo_port") as listener:
                yield cls(server, listener)
        finally:
            org.close()

    async def serve(self) -> None:
        """Until cancelled."""
        await self.server.serve([self.listener])


async def _serve(server: "DemoServer", port: int, https_port: int | None, folder: Path) -> None:
    import uvicorn

    from bedstone.transports.access import Access, Guard
    from bedstone.transports.http import listen

    app = Guard(server.app(), Access.for_address(HOST))
    running = [(uvicorn.Server(uvicorn.Config(app, **UVICORN)), port)]
    if https_port is not None:
        running.append((uvicorn.Server(uvicorn.Config(app, **UVICORN, **_certificate(folder))), https_port))
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


def _orgs(options: dict[str, Any]) -> "Orgs":
    return open_orgs(configuration(options).settings)


def _client(options: dict[str, Any]) -> "SalesforceClient":
    """A client of the org that is chosen by option or setting, or of the only one."""
    settings = configuration(options).settings
    orgs = open_orgs(settings)
    return open_client(orgs, orgs.get(default_org(settings)))


async def _who(org: "Org", secret: str) -> str:
    from bedstone.salesforce.client import SalesforceClient
    from bedstone.salesforce.client.orgs import auth_of

    async with SalesforceClient(auth_of(org, secret)) as client:
        await client.limits()  # whoever may call this is let in
        return f"a user of {org.url or org.username}"


def _demo_org(name: str, url: str) -> "tuple[Org, str]":
    from bedstone.salesforce.client.orgs import Org
    from bedstone.salesforce.demo_org.identity import CLIENT, SECRET

    return Org(name, "client-credentials", url, CLIENT), SECRET


async def _browser_login(url: str, client_id: str) -> str:
    """Open the browser, catch the way back on this machine, and give the refresh token."""
    import webbrowser

    import httpx2

    from bedstone.errors import InvalidInput
    from bedstone.salesforce.client.auth import BrowserLogin

    if not client_id:
        address = f"http://localhost:{CALLBACK_PORT}/callback"
        raise InvalidInput(
            f"A browser login needs --client-id: of an external client app that may redirect to {address}"
        )
    flow = BrowserLogin(url, client_id, f"http://localhost:{CALLBACK_PORT}/callback")
    came = anyio.Event()
    addresses: list[str] = []

    async def catch(stream: Any) -> None:
        async with stream:
            line = (await stream.receive()).decode(errors="replace").split(" ")
            addresses.append(line[1] if len(line) > 1 else "")
            await stream.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\nYou can close this window now.")
        came.set()

    async with anyio.create_task_group() as tasks:
        listener = await anyio.create_tcp_listener(local_host=HOST, local_port=CALLBACK_PORT)
        tasks.start_soon(listener.serve, catch)
        click.echo(f"Opening the browser. If it does not open, go to:\n{flow.address}", err=True)
        webbrowser.open(flow.address)
        with anyio.fail_after(LOGIN_SECONDS):
            await came.wait()
        tasks.cancel_scope.cancel()
    async with httpx2.AsyncClient() as http:
        _, refresh = await flow.finish(http, addresses[0])
    return refresh


def _print_rows(rows: list[dict[str, Any]], output: str, selected: Sequence[str] = ()) -> None:
    """Rows as people or programs want them; records inside records get names with dots."""
    if output == "json":
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    from bedstone.salesforce.rows import column_names, table_rows

    flat = table_rows(rows, None) if output == "csv" else table_rows(rows)
    names = column_names(flat, selected)
    if output == "csv":
        import csv

        writer = csv.DictWriter(sys.stdout, names, restval="", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(flat)
        return
    from rich.markup import escape
    from rich.table import Table

    from bedstone.cli.progress import console

    table = Table(*names, box=None, pad_edge=False)
    for row in flat:
        table.add_row(*(escape(str(row.get(name, ""))) for name in names))
    out = console()
    if names:
        out.print(table)
