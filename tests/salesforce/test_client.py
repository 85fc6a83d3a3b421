"""The client against the demo org in a process of its own."""

import json
import logging
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from bedstone.errors import ReadOnly
from bedstone.salesforce.client import (
    AuthError,
    LimitExceeded,
    OrgUnavailable,
    RecordNotFound,
    SalesforceClient,
    SalesforceError,
)
from bedstone.salesforce.client.auth import (
    AccessToken,
    Auth,
    BrowserLogin,
    ClientCredentials,
    JwtBearer,
    RefreshToken,
    SoapLogin,
)
from bedstone.salesforce.client.orgs import Org, Orgs
from support.demo_org import Running
from support.processes import bedstone, free_port, listening

pytestmark = pytest.mark.usefixtures("calm")


@pytest.fixture
def url(demo: Running) -> str:
    return f"http://127.0.0.1:{demo.port}"


@pytest.fixture
async def client(url: str) -> AsyncIterator[SalesforceClient]:
    async with SalesforceClient(ClientCredentials(url, "demo-client", "demo-secret")) as client:
        yield client


async def test_it_reads_searches_and_describes(client: SalesforceClient) -> None:
    assert await client.base() == "/services/data/v66.0"
    rows = [row async for row in client.rows("SELECT Id, Name FROM Contact")]
    assert len(rows) == 426
    picked = [rows[7]["Id"], rows[3]["Id"], "003000000000999AAA"]
    assert [row["Id"] for row in await client.rows_by_id("SELECT Id FROM Contact", picked)] == picked[:2]
    assert (await client.search("FIND {Connor} RETURNING Account(Name)"))[0]["Name"] == "O'Connor's Bikes"
    assert {item["name"] for item in await client.describe_global()} >= {"Account", "Bike__c"}
    described = await client.describe("Account")
    assert described
    assert await client.describe("Account", since="Mon, 16 Nov 2026 00:00:00 GMT") is None
    names = [item["name"] for item in await client.describe_global()]
    answers = [(name, status) async for name, status, _ in client.describe_many(names)]
    assert [name for name, _ in answers] == names
    assert {status for _, status in answers} == {200}
    assert (await client.get(f"sobjects/Contact/{picked[0]}", fields="Name"))["Name"] == rows[7]["Name"]
    with pytest.raises(RecordNotFound):
        await client.get("sobjects/Contact/003000000000999AAA")
    assert client.usage
    assert client.usage.limit == 15_000


class WritingClient(SalesforceClient):
    """A client that writes, which the product's own never does."""

    async def create(self, name: str, **values: str) -> str:
        return str((await self._json("POST", f"{await self.base()}/sobjects/{name}", json=values))["id"])

    async def create_in_composite(self, name: str, **values: str) -> None:
        post = {"method": "POST", "url": f"{await self.base()}/sobjects/{name}", "referenceId": "a", "body": values}
        await self._send("POST", f"{await self.base()}/composite", json={"compositeRequest": [post]})


async def test_a_read_only_org_is_never_written_to(url: str, demo: Running) -> None:
    auth = ClientCredentials(url, "demo-client", "demo-secret")
    async with WritingClient(auth, read_only=True) as pinned:
        assert [status async for _, status, _ in pinned.describe_many(["Account"])] == [200]
        for write in (pinned.create, pinned.create_in_composite):
            with pytest.raises(ReadOnly):
                await write("Lead", LastName="Pinned", Company="B")
    assert demo.query("SELECT COUNT() FROM Lead WHERE LastName = 'Pinned'")["totalSize"] == 0


async def test_a_write_is_never_sent_twice(url: str, demo: Running) -> None:
    sent: list[str] = []

    async def note(request: httpx2.Request) -> None:
        sent.append(request.method)

    auth = ClientCredentials(url, "demo-client", "demo-secret")
    http = httpx2.AsyncClient(event_hooks={"request": [note]})
    async with WritingClient(auth, http=http) as client:
        assert (await client.create("Lead", LastName="Free", Company="B")).startswith("00Q")
        demo.faults("unavailable")
        sent.clear()
        for work in (client.limits(), client.create("Lead", LastName="Once", Company="B")):
            with pytest.raises(OrgUnavailable):
                await work
    assert (sent.count("GET"), sent.count("POST")) == (4, 1)


async def test_pages_are_followed(client: SalesforceClient, demo: Running) -> None:
    demo.faults("small-batches")
    rows = [row["Id"] async for row in client.rows("SELECT Id FROM Account LIMIT 23")]
    assert len(set(rows)) == 23


async def test_every_way_in(demo: Running, url: str) -> None:
    ways: list[Auth] = [
        AccessToken(url, demo.token),
        ClientCredentials(url, "demo-client", "demo-secret"),
        RefreshToken(url, "demo-client", "demo-refresh-token"),
        SoapLogin(url, "admin@kestrel.example", "demo"),
    ]
    for auth in ways:
        async with SalesforceClient(auth) as client:
            assert (await client.query("SELECT COUNT() FROM Account"))["totalSize"] == 240
        assert "demo.standing" not in repr(auth)
        assert "secret" not in repr(auth).replace("client_secret", "")
    wrong: list[Auth] = [
        AccessToken(url, "nobody"),
        AccessToken(url, "has a blank"),
        ClientCredentials(url, "demo-client", "wrong-secret"),
        RefreshToken(url, "demo-client", "wrong-token"),
        SoapLogin(url, "admin@kestrel.example", "wrong"),
    ]
    for auth in wrong:
        async with SalesforceClient(auth) as client:
            with pytest.raises(AuthError) as caught:
                await client.limits()
        assert "wrong" not in str(caught.value)


async def test_a_certificate_is_a_way_in(url: str, tmp_path: Path) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (tmp_path / "key.pem").write_bytes(pem)
    async with SalesforceClient(JwtBearer(url, "demo-client", "admin@kestrel.example", tmp_path / "key.pem")) as client:
        assert await client.limits()


async def test_a_browser_comes_back_with_a_code(url: str) -> None:
    flow = BrowserLogin(url, "demo-client", "http://localhost:1717/callback")
    async with httpx2.AsyncClient() as http:
        sent = await http.get(flow.address, follow_redirects=False)
        way_back = sent.headers["location"]
        assert parse_qs(urlsplit(way_back).query)["state"] == [flow.state]
        session, refresh = await flow.finish(http, way_back)
        async with SalesforceClient(RefreshToken(url, "demo-client", refresh)) as client:
            assert await client.limits()
        assert session.access_token not in repr(session)
        with pytest.raises(AuthError):
            await flow.finish(http, way_back)  # a code is good once
        with pytest.raises(AuthError):
            await flow.finish(http, way_back.replace("state=", "state=x"))


async def test_one_login_for_everybody_when_a_token_is_spent(client: SalesforceClient, demo: Running) -> None:
    await client.limits()
    before = demo.faults()["logins"]
    demo.faults("expired-token")
    counts: list[int] = []

    async def ask() -> None:
        counts.append((await client.query("SELECT COUNT() FROM Account"))["totalSize"])

    async with anyio.create_task_group() as tasks:
        for _ in range(50):
            tasks.start_soon(ask)
    assert counts == [240] * 50
    assert demo.faults()["logins"] == before + 1


async def test_a_busy_org_is_asked_again_and_a_spent_limit_is_not(client: SalesforceClient, demo: Running) -> None:
    await client.limits()
    demo.faults("flaky")
    for _ in range(4):
        assert await client.limits()
    demo.faults("unavailable")
    with pytest.raises(SalesforceError) as caught:
        await client.limits()
    assert caught.value.details["details"]["status"] == 503
    demo.faults("limit-over")
    with pytest.raises(LimitExceeded):
        await client.limits()
    assert client.usage
    assert client.usage.share == 1.0


async def test_nobody_there_is_told() -> None:
    async with SalesforceClient(ClientCredentials("http://127.0.0.1:9", "a", "b")) as client:
        with pytest.raises(OrgUnavailable, match="Cannot reach"):
            await client.limits()


async def test_secrets_stay_out_of_logs(client: SalesforceClient, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    await client.limits()
    assert "demo-secret" not in caplog.text
    assert "Bearer" not in caplog.text


def test_orgs_are_remembered_and_their_secrets_kept(tmp_path: Path) -> None:
    orgs = Orgs(tmp_path)
    orgs.add(Org("one", "client-credentials", "https://one.example", "id"), "tulip")
    orgs.add(Org("two", "sf", username="alias"))
    assert [org.name for org in orgs.all()] == ["one", "two"]
    assert orgs.auth(orgs.get("one")) == ClientCredentials("https://one.example", "id", "tulip")
    for file in tmp_path.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert file.name == "secrets.json" or "tulip" not in file.read_text()
    with pytest.raises(Exception, match="known: one, two"):
        orgs.get("three")
    with pytest.raises(Exception, match="needs: client_id, secret"):
        orgs.add(Org("bad", "client-credentials", "https://x.example"))
    orgs.remove("one")
    assert "tulip" not in "".join(file.read_text() for file in tmp_path.iterdir())
    assert orgs.get().name == "two"


def test_the_command_line_asks_an_org(demo: Running, url: str, tmp_path: Path) -> None:
    data = ("--data-dir", tmp_path)
    assert "No orgs yet" in bedstone("salesforce", "orgs", *data).stdout
    assert bedstone("salesforce", "login", "--method", "demo", "--url", url, "--org", "demo", *data).returncode == 0
    table = bedstone("salesforce", "query", "SELECT Name, Owner.Name FROM Account ORDER BY Name LIMIT 2", *data)
    assert table.stdout.splitlines()[0].split() == ["Name", "Owner.Name"]
    assert "2 rows" in table.stderr
    rows = bedstone(
        "salesforce", "query", "SELECT Name FROM Account LIMIT 2", "--format", "csv", *data
    ).stdout.splitlines()
    assert rows[:2] == ["Name", "O'Connor's Bikes"]
    found = json.loads(bedstone("salesforce", "search", "Connor bikes", "--format", "json", *data).stdout)
    assert found[0]["Name"] == "O'Connor's Bikes"
    assert "Frame_Number__c" in bedstone("salesforce", "describe", "Bike__c", *data).stdout
    wrong = bedstone("salesforce", "query", "SELECT Name FROM", *data)
    assert (wrong.returncode, "Unexpected end of the statement" in wrong.stderr) == (1, True)
    refused = bedstone("salesforce", "query", "SELECT Nothing FROM Account", *data)
    assert (refused.returncode, "No such column 'Nothing'" in refused.stderr) == (1, True)
    assert "secret" not in bedstone("salesforce", "orgs", *data).stdout


def test_a_server_runs_the_demo_org_beside_it(tmp_path: Path) -> None:
    port = free_port()
    environment = {"BEDSTONE_SALESFORCE__DEMO_PORT": str(port)}
    with listening("--data-dir", tmp_path / "data", log=tmp_path / "log", **environment):
        asked = bedstone("salesforce", "query", "SELECT COUNT(Id) n FROM Account", "--data-dir", tmp_path / "data")
        assert asked.stdout.split() == ["n", "240"], asked.stderr
