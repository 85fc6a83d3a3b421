"""Every page in this process: status, links, escaping, forms, errors."""

import json
import re
import sys
from collections.abc import AsyncIterator, Iterable, Iterator
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote, urljoin

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.routing import BaseRoute, Mount, Route

from bedstone.services.schema.service import SchemaService
from bedstone.settings import Settings
from bedstone.transports.access import Access, Guard
from support.site import BASE, Site, links, make_settings, open_site

HOSTILE = "<img src=x onerror=alert(1)>"
TOKEN = "open-sesame-please"
CONTENT_TOOLSETS = ("knowledge", "docs", "kb", "salesforce_graph")
FORM_ROUTES = (
    "/documents",
    "/documents/x/metadata",
    "/documents/x/remove",
    "/documents/x/retry",
    "/documents/x/read-again",
    "/documents/x/collections",
    "/collections",
    "/collections/x/delete",
    "/tasks/x/cancel",
    "/tools/knowledge-status",
    "/salesforce/sync",
    "/salesforce/paths/counts",
    "/salesforce/paths/rows",
    "/salesforce/soql/check",
    "/salesforce/soql/format",
    "/salesforce/soql/run",
    "/salesforce/soql/rows.csv",
    "/salesforce/orgs/one/soql/check",
)
MAX_PAGES = 300
SURROGATE = b"--x\r\nContent-Disposition: form-data; name=a\r\n\r\n+2AA-\r\n--x--\r\n"


def write_describes(folder: Path, fields: int = 0) -> Path:
    """Write a chain of three objects as an org describes them, with hostile labels."""
    folder.mkdir(parents=True, exist_ok=True)
    link = {"type": "reference", "referenceTo": ["Account"], "relationshipName": "Account"}
    stage = {"type": "picklist", "picklistValues": [{"value": HOSTILE, "label": "Stage", "active": True}]}
    owner = [{"name": "AccountId", "label": "Account", **link}, {"name": "Stage__c", "label": "Stage", **stage}]
    more = [{"name": f"Field{number}__c", "label": f"Field {number}", "type": "string"} for number in range(fields)]
    contact = {"type": "reference", "referenceTo": ["Contact"], "relationshipName": "Contact"}
    case = [{"name": "ContactId", "label": "Contact", **contact}]
    for name, own in (("Account", more), ("Contact", owner), ("Case", case)):
        common = [
            {"name": "Id", "label": f"{name} ID", "type": "id"},
            {"name": "Name", "label": f"{name} {HOSTILE}", "type": "string", "nameField": True},
        ]
        described = {"name": name, "label": f"{name} {HOSTILE}", "fields": [*common, *own]}
        (folder / f"{name}.json").write_text(json.dumps(described))
    return folder


def write_content(folder: Path) -> Settings:
    """Write documentation, a text and a schema, all with hostile titles."""
    guide = folder / "guide"
    (guide / "deep" / "er").mkdir(parents=True)
    sections = "".join(f"\n## Section {number}\n\nText of section {number}.\n" for number in range(45))
    (guide / "guide.md").write_text(f"# Guide {HOSTILE}\n\nUse the cursor {HOSTILE} to read on.\n{sections}")
    (guide / "deep" / "er" / "what? %.md").write_text("# Odd name\n\nPercent signs and question marks.\n")
    (folder / "notes.txt").write_text("Opening hours are nine to five.")
    return make_settings(
        folder, *CONTENT_TOOLSETS, docs={"dir": [guide]}, kb={"file_path": folder / "notes.txt", "description": "Notes"}
    )


@pytest.fixture(scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    settings = write_content(folder)
    describes = write_describes(folder / "describes", fields=120)
    async with open_site(settings) as site:
        schemas: SchemaService = await site.app.services["salesforce_graph"].open()
        schemas.import_folder("one", describes)
        await site.add(f"{quote(HOSTILE)}.txt", f"The walrus {HOSTILE} sleeps at noon.".encode())
        yield site


async def test_every_page_that_a_page_links_to_exists(site: Site) -> None:
    """Follow every link from the home page; facets and filters included."""
    seen, waiting = set[str](), ["/", "/search?q=walrus", "/search?q=cursor", "/salesforce/orgs/one", "/quality"]
    while waiting and len(seen) < MAX_PAGES:
        address = waiting.pop()
        if address in seen:
            continue
        seen.add(address)
        response = await site.get(address)
        assert response.status_code in (200, 307), f"{address}: {response.status_code}"
        if response.headers.get("content-type", "").startswith("text/html"):
            waiting += sorted({urljoin(address, link) for link in links(response.text)} - seen)
    routes = ("/documents/", "/docs/chunk", "/docs/corpora/guide", "/salesforce/objects/Contact", "/salesforce/paths")
    assert all(any(address.startswith(route) for address in seen) for route in (*routes, "/tools/", "/static/"))


async def test_hostile_titles_and_queries_are_text(site: Site) -> None:
    document = re.search(r'href="(/documents/[0-9a-f-]{36})"', await site.text("/documents"))
    assert document
    for path in (
        "/documents",
        document[1],
        f"/documents?name={quote(HOSTILE)}&context={quote(HOSTILE)}&format={quote(HOSTILE)}",
        f"/search?q=walrus+{quote(HOSTILE)}",
        f"/search/results?q=cursor+{quote(HOSTILE)}",
        f"/search/beside?q=cursor+{quote(HOSTILE)}",
        f"/search?q=x&in={quote(HOSTILE)}&f.format={quote(HOSTILE)}",
        "/docs/corpora/guide/guide.md",
        "/salesforce?search=account",
        "/salesforce/objects/Account",
        "/salesforce/objects/Contact?fields=stage",
        "/salesforce/objects/Account?view=list",
        "/salesforce/objects/Account?view=two-steps",
        "/salesforce/paths?from=Account&to=Case",
        f"/salesforce/paths?from={quote(HOSTILE)}&to=Account",
        f"/salesforce/soql?q={quote(HOSTILE)}",
        f"/tools/knowledge-search?query={quote(HOSTILE)}",
    ):
        text = await site.text(path)
        assert HOSTILE not in text, path
        assert escape(HOSTILE, quote=False) in text or escape(HOSTILE) in text, path


async def test_more_results_are_offered_up_to_a_limit(site: Site) -> None:
    text = await site.text("/search?q=section&in=docs")
    (more,) = (link for link in links(text) if "most=50" in link)
    assert len(re.findall('<li class="result[ "]', await site.text(more))) > 30
    assert "Show more" not in await site.text("/search?q=section&in=docs&most=999")


async def test_a_chosen_facet_can_be_cleared(site: Site) -> None:
    text = await site.text("/search?q=walrus&in=knowledge&f.format=epub")
    assert 'href="/search?q=walrus&amp;in=knowledge" aria-current="true">epub <b>0</b></a>' in text


async def test_long_lists_have_pages(site: Site) -> None:
    fields = await site.text("/salesforce/objects/Account?fields=field&page=2&type=string")
    assert "Page 2 of 2" in fields
    assert 'href="?fields=field&amp;type=string&amp;page=1"' in fields


async def test_a_form_without_its_token_is_refused(site: Site) -> None:
    form = {"content-type": "application/x-www-form-urlencoded"}
    for path in FORM_ROUTES:
        for headers in (form, form | {"x-csrf": "0" * 64}):
            response = await site.http.post(path, content=b"", headers=headers)
            assert (response.status_code, response.text) == (403, "This form has expired. Reload the page."), path
    for origin, status in (
        ("http://localhost:3000", 404),
        ("http://localhost:9999", 403),
        ("http://localhost", 403),
        ("http://localhost:none", 403),
    ):
        response = await site.post("/documents/x/remove", origin=origin)
        assert response.status_code == status, origin


async def test_odd_forms_are_refused(site: Site) -> None:
    csrf = {"x-csrf": await site.csrf()}
    path = "/tools/knowledge-status"
    encoded = csrf | {"content-type": "application/x-www-form-urlencoded"}
    multipart = csrf | {"content-type": "multipart/form-data; boundary=x"}
    for headers, body, status in (
        (encoded, b"x" * 1_000_001, 413),
        (encoded | {"content-length": "-1"}, b"", 413),
        (encoded | {"transfer-encoding": "chunked"}, b"", 413),
        (multipart, b"--x\r\nContent-Disposition: form-data; name=a; filename=b\r\n\r\nc\r\n--x--\r\n", 400),
        (csrf | {"content-type": "multipart/form-data"}, b"x", 400),
        (csrf | {"content-type": "multipart/form-data; charset=utf-7; boundary=x"}, SURROGATE, 400),
    ):
        response = await site.http.post(path, content=body, headers=headers)
        assert response.status_code == status, (headers, response.text)


async def test_every_response_has_the_security_headers(site: Site) -> None:
    for path in ("/", "/nowhere", "/search/results?q=x", "/static/tokens.css"):
        headers = (await site.get(path)).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers.get("cache-control") == (None if path.startswith("/static/") else "no-store")


async def test_home_shows_every_source_and_the_configuration_of_clients(site: Site) -> None:
    text = await site.text("/")
    for title in ("Documents", "Documentation", "Knowledge file", "Schema"):
        assert re.search(rf'<a href="/[^"]*">{title}</a>', text), title
    assert f"{{&#34;url&#34;: &#34;{BASE}/mcp&#34;}}" in text
    assert f'data-copy-text="{BASE}/salesforce-graph/mcp"' in text


async def test_a_read_only_server_refuses_changes_and_says_so(tmp_path: Path) -> None:
    async with open_site(make_settings(tmp_path, "knowledge")) as site:
        document = await site.add("kept.txt", b"Kept as it is.")
    async with open_site(make_settings(tmp_path, "knowledge", read_only=True)) as site:
        assert "This server is read-only" in await site.text("/documents")
        for path in FORM_ROUTES[:9]:
            response = await site.post(path.replace("/x/", f"/{document}/"), {"metadata": "{}"})
            assert (response.status_code, response.text) == (403, "This server is read-only."), path
        assert "read-only" in (await site.post("/tools/knowledge-clear", {"confirm": "true"})).text


async def test_a_broken_service_hides_nothing_else(tmp_path: Path) -> None:
    index = tmp_path / "data" / "index"
    index.mkdir(parents=True)
    (index / "knowledge.sqlite").write_bytes(b"not a database, although it has its name" * 100)
    (tmp_path / "guide").mkdir()
    (tmp_path / "guide" / "guide.md").write_text("# Guide\n\nUse the cursor.\n")
    async with open_site(make_settings(tmp_path, "knowledge", "docs", docs={"dir": [tmp_path / "guide"]})) as site:
        for path, other in (("/", "1 corpus, 1 file"), ("/search?q=cursor", "<mark>cursor</mark>")):
            text = await site.text(path)
            assert "is damaged: file is not a database" in text
            assert other in text
        assert "bedstone knowledge rebuild" in await site.text("/documents", status=503)
        assert "guide.md" in await site.text("/docs/corpora/guide")


async def test_a_server_without_sources_says_so(tmp_path: Path) -> None:
    async with open_site(make_settings(tmp_path, "kb")) as site:
        assert "Knowledge file could not be searched" in await site.text("/search?q=x")
        assert "Ask anything" in await site.text("/search")


OUTSIDE = '''
from starlette.responses import Response
from starlette.routing import Route

from bedstone.services.service import Service, Summary
from bedstone.toolkit import NavigationItem, Toolset, ToolsetContext, ToolsetSpec


class DiaryService(Service):
    async def summary(self):
        return Summary("3 <b> entries", 3)


class DiaryToolset(Toolset):
    """Entries of a diary."""

    server_name = "diary"
    title = "Diary <i>"

    @classmethod
    def build(cls, context: ToolsetContext):
        return cls()


def routes(pages):
    async def show_diary(request):
        return pages.render(request, "problem.html", page="diary", title="My diary", message="Dear diary")

    async def fail(request):
        raise RuntimeError("a secret of the diary")

    return [Route("/diary", show_diary), Route("/diary/broken", fail)]


SPEC = ToolsetSpec(
    "diary",
    DiaryToolset,
    service=lambda context: DiaryService(),
    pages="outside_diary:routes",
    navigation=(NavigationItem("diary", "/diary", "Diary <i>"),),
)
'''


async def test_a_toolset_of_another_package_has_a_page_and_a_navigation_item(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "packages" / "outside_diary-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: outside-diary\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[bedstone.toolsets]\ndiary = outside_diary:SPEC\n")
    (tmp_path / "packages" / "outside_diary.py").write_text(OUTSIDE)
    monkeypatch.syspath_prepend(tmp_path / "packages")
    monkeypatch.delitem(sys.modules, "outside_diary", raising=False)
    async with open_site(make_settings(tmp_path, "diary", "kb")) as site:
        home = await site.text("/")
        assert '<a href="/diary">Diary &lt;i&gt;</a>' in home
        assert "3 &lt;b&gt;" in home
        assert '<a href="/diary" aria-current="page">' in await site.text("/diary")
        broken = await site.text("/diary/broken", status=500)
        assert "Internal error; see the server log." in broken
        assert "a secret" not in broken


# What a read-only server still accepts: forms that ask and change nothing. `/tools` has no tools then that change.
ASKING_FORMS = {
    "/login",
    "/logout",
    "/tools/{name}",
    "/salesforce/paths/counts",
    "/salesforce/paths/rows",
    "/salesforce/soql/check",
    "/salesforce/soql/format",
    "/salesforce/soql/run",
    "/salesforce/soql/rows.csv",
}


def every_route(routes: Iterable[BaseRoute]) -> Iterator[Route]:
    """Yield the routes of an application, those inside of others too."""
    for route in routes:
        if isinstance(route, Route):
            yield route
        elif isinstance(route, Mount):
            app: Any = route.app
            while not isinstance(app, Starlette) and hasattr(app, "_app"):
                app = app._app  # noqa: SLF001 - the middleware around the pages
            yield from every_route(app.routes if isinstance(app, Starlette) else ())


def fill_path(route: Route) -> str:
    return re.sub(r"\{\w+(:path)?\}", "x", route.path)


async def test_every_route_that_changes_something_is_guarded(tmp_path: Path) -> None:
    """Whatever routes there are, of every toolset: no form without its token, and no change on a read-only server."""
    every = [*CONTENT_TOOLSETS, "everything", "salesforce_knowledge"]
    settings = write_content(tmp_path).model_copy(update={"toolsets": every})
    async with open_site(settings.model_copy(update={"read_only": True})) as site:
        forms = [route for route in every_route(site.routes) if "POST" in (route.methods or ())]
        assert {fill_path(route) for route in forms} >= {*FORM_ROUTES, "/activity/sync", "/activity/tasks/x/stop"} - {
            "/tools/knowledge-status",
            "/salesforce/orgs/one/soql/check",
        }
        csrf = {"x-csrf": await site.csrf()}
        for route in forms:
            path = fill_path(route)
            if route.path != "/login":
                assert (await site.http.post(path, data={"a": "b"})).status_code == 403, path
            answer = await site.http.post(path, data={"a": "b"}, headers=csrf)
            pattern = route.path.replace("/orgs/{org}", "")
            if pattern not in ASKING_FORMS:
                assert (answer.status_code, "read-only" in answer.text) == (403, True), path


async def test_every_page_needs_the_token_the_right_host_and_the_right_origin(tmp_path: Path) -> None:
    access = Access.for_address("0.0.0.0", token=TOKEN)
    every = [*CONTENT_TOOLSETS, "everything", "salesforce_knowledge"]
    settings = write_content(tmp_path).model_copy(update={"toolsets": every})
    async with open_site(settings) as site:
        transport = httpx2.ASGITransport(app=Guard(Starlette(routes=site.routes), access), raise_app_exceptions=False)
        async with httpx2.AsyncClient(transport=transport, base_url=BASE) as http:
            paths = {fill_path(route) for route in every_route(site.routes)} - {"/login"}
            assert len(paths) > 50
            for path in sorted(paths):
                known = {"authorization": f"Bearer {TOKEN}"}
                assert (await http.get(path)).status_code == 401, path
                assert (await http.get(path, headers=known | {"host": "evil.example"})).status_code == 421, path
                assert (await http.get(path, headers=known | {"origin": "https://evil.example"})).status_code == 403, (
                    path
                )
                picture = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}
                assert (await http.get(path, headers=known | picture)).status_code == 403, path
