"""Every page in this process: status, links, escaping, forms, errors."""

import csv
import io
import json
import os
import re
import shutil
import sqlite3
import sys
import time
from collections.abc import AsyncIterator
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote, urljoin

import anyio
import pytest

from bedstone.services.schema.service import SchemaService
from bedstone.settings import Settings
from support.demo_org import Running, V, log_in
from support.processes import bedstone
from support.site import BASE, Site, links, make_settings, open_site

HOSTILE = "<img src=x onerror=alert(1)>"
TOKEN = "open-sesame-please"
GOLDEN_DATA = Path(__file__).parents[1] / "golden" / "data_folder" / "data.zip"
ARTICLE = "ka000000000000NAAQ"
CONTENT_TOOLSETS = ("knowledge", "docs", "kb", "salesforce_graph")
FORM_ROUTES = (
    "/documents",
    "/documents/x/metadata",
    "/documents/x/remove",
    "/documents/x/retry",
    "/tasks/x/cancel",
    "/tools/knowledge-status",
    "/salesforce/soql/check",
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
        "/salesforce/objects/Account/relationships",
        f"/salesforce/paths?from={quote(HOSTILE)}&to=Account",
        f"/salesforce/soql?q={quote(HOSTILE)}",
        f"/tools/knowledge-search?query={quote(HOSTILE)}",
    ):
        text = await site.text(path)
        assert HOSTILE not in text, path
        assert escape(HOSTILE, quote=False) in text or escape(HOSTILE) in text, path


async def test_words_of_the_query_are_marked_and_the_match_is_named(site: Site) -> None:
    text = await site.text("/search?q=walrus&mode=words")
    assert "<mark>walrus</mark>" in text
    assert "keyword match · score" in text
    assert '<option value="keyword" selected>Keyword</option>' in text
    assert "No results." in await site.text("/search/results?q=zzzz&in=knowledge")
    compared = await site.text("/search/beside?q=walrus")
    assert [title for title in ("Keyword", "Semantic", "Hybrid") if f"<h2>{title}</h2>" in compared] == [
        "Keyword", "Semantic", "Hybrid",
    ]  # fmt: skip


async def test_more_results_are_offered_up_to_a_limit(site: Site) -> None:
    text = await site.text("/search?q=section&in=docs")
    (more,) = (link for link in links(text) if "most=30" in link)
    assert len(re.findall("<article", await site.text(more))) == 30
    assert "More results" not in await site.text("/search?q=section&in=docs&most=999")


async def test_a_chosen_facet_can_be_cleared(site: Site) -> None:
    text = await site.text("/search?q=walrus&in=knowledge&f.format=epub")
    assert 'aria-current="true">epub 0</a>' in text
    assert "/search?q=walrus&amp;in=knowledge&amp;mode=hybrid" in text


async def test_long_lists_have_pages(site: Site) -> None:
    text = await site.text("/docs/corpora/guide/guide.md")
    assert "Page 1 of 2" in text
    assert 'href="?page=2"' in text
    fields = await site.text("/salesforce/objects/Account?fields=field&page=2&type=string")
    assert "Page 2 of 2" in fields
    assert 'href="?fields=field&amp;type=string&amp;page=1"' in fields
    missing = await site.text("/documents?page=99")
    assert 'Page 99 does not exist. <a href="?page=1">Go to page 1</a>.' in missing
    for odd in ("%C2%B2", "9" * 5000, "-1", "x"):
        assert "Page 1 of 2" in await site.text(f"/docs/corpora/guide/guide.md?page={odd}")


async def test_unknown_names_are_answered_with_a_helpful_sentence(site: Site) -> None:
    for path, sentence in {
        "/nowhere/": "Page not found: /nowhere/",
        "/documents/x": "Document with ID &#39;x&#39; not found",
        "/docs/corpora/none": "Unknown corpus &#39;none&#39;. The Docs page lists every corpus.",
        "/docs/corpora/none/guide.md": "Unknown corpus &#39;none&#39;.",
        "/docs/corpora/guide?in=none": "Folder &#39;none&#39; not found in corpus &#39;guide&#39;.",
        "/docs/corpora/guide/none.md": "File &#39;none.md&#39; not found in corpus &#39;guide&#39;.",
        "/docs/chunk?id=guide.md%23none": "guide.md#none",
        "/salesforce/objects/Acount": "Did you mean Account?",
        "/salesforce/objects/Acount/relationships": "Did you mean Account?",
        "/salesforce/orgs/none": "Unknown org &#39;none&#39;. Known: one.",
        "/salesforce/orgs/none/objects/Account": "Unknown org &#39;none&#39;. Known: one.",
        "/tools/none": "Unknown tool &#39;none&#39;. The Tools page lists every tool.",
        "/quality/chart.svg?name=none": "Evaluation &#39;none&#39; not found.",
    }.items():
        text = await site.text(path, status=404)
        assert "<h1>Not found</h1>" in text, path
        assert sentence in text, f"{path}: {text}"
    plain = await site.http.get("/tools/none")
    assert plain.text == "Unknown tool 'none'. The Tools page lists every tool."
    assert "<nav" not in (await site.get("/tools/none", **{"x-part": "1"})).text


async def test_an_error_page_marks_the_section_it_belongs_to(site: Site) -> None:
    assert '<a href="/docs" aria-current="page">' in await site.text("/docs/corpora/none", status=404)
    assert "aria-current" not in await site.text("/nowhere", status=404)
    assert (await site.http.post("/quality")).status_code == 405


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
    for path in ("/", "/nowhere", "/search/results?q=x", "/static/style.css"):
        headers = (await site.get(path)).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers.get("cache-control") == (None if path.startswith("/static/") else "no-store")


async def test_home_shows_every_source_and_the_configuration_of_clients(site: Site) -> None:
    text = await site.text("/")
    for title in (toolset.title for toolset in site.app.toolsets.values()):
        assert f">{escape(title)}</h2>" in text
    assert f"{{&#34;url&#34;: &#34;{BASE}/mcp&#34;}}" in text
    assert f"Served at <code>{BASE}/salesforce-graph/mcp</code>" in text
    assert "<summary>1 tools" not in text


async def test_a_chunk_is_shown_as_agents_see_it(site: Site) -> None:
    found = re.search(r'href="(/docs/chunk\?id=[^"]*section-3)"', await site.text("/docs/corpora/guide/guide.md"))
    assert found
    alone, around = await site.text(found[1]), await site.text(f"{found[1]}&context=1")
    assert "Text of section 3." in alone
    assert "Text of section 4." not in alone
    assert "Text of section 4." in around
    assert "section-2" in alone
    folder = await site.get("/docs/corpora/guide/deep")
    assert (folder.status_code, folder.headers["location"]) == (307, "/docs/corpora/guide?in=deep")


async def test_objects_paths_and_relationships_are_shown(site: Site) -> None:
    assert ">1 object<" in (await site.text("/salesforce?search=contact&category=standard")).replace("</h2>", "<")
    contact = await site.text("/salesforce/objects/Contact?depth=2")
    assert 'references <a href="/salesforce/objects/Account">Account</a>' in contact
    assert '<a href="?depth=2" aria-current="true">Two steps</a>' in contact
    account = await site.text("/salesforce/objects/Account?depth=2")
    assert (account.count("<line "), account.count("<rect ")) == (2, 3)
    related = await site.text("/salesforce/objects/Account/relationships?search=contact")
    assert "is referenced by" in related
    paths = await site.text("/salesforce/paths?from=Account&to=Contact")
    assert paths.count("<line ") == 1
    assert "Did you mean" in await site.text("/salesforce/paths?from=Acount&to=Contact")


async def test_a_query_is_validated_and_corrected(site: Site) -> None:
    wrong = await site.post("/salesforce/soql/check", {"query": f"SELECT Id FROM Acount WHERE Name = '{HOSTILE}'"})
    assert "Did you mean:" in wrong.text
    assert HOSTILE not in wrong.text
    assert ">valid<" in (await site.post("/salesforce/soql/check", {"query": "SELECT Id FROM Account LIMIT 1"})).text
    unknown = await site.post("/salesforce/orgs/none/soql/check", {"query": "SELECT Id FROM Account"})
    assert 'role="alert"' in unknown.text
    refused = await site.post("/salesforce/soql/run", {"query": "SELECT Id FROM Account"})
    assert (refused.status_code, 'role="alert"' in refused.text) == (200, True)  # an imported schema has no org


async def test_a_tool_is_called_with_the_types_of_its_schema(site: Site) -> None:
    page = await site.text("/tools/knowledge-search?query=walrus&top_k=3")
    assert ">walrus</textarea>" in page
    given = {"query": "walrus", "top_k": "3", "min_relevance": "0.0", "filters": '{"format": "txt"}'}
    fragment = await site.post("/tools/knowledge-search", given, **{"x-part": "1"})
    assert "<html" not in fragment.text
    assert "&#34;top_k&#34;: 3" in fragment.text
    assert "sleeps at noon" in fragment.text
    whole = await site.post("/tools/knowledge-search", given)
    assert "<html" in whole.text
    assert "sleeps at noon" in whole.text
    plain = await site.post("/tools/get_doc", {"chunk_id": "none"}, **{"x-part": "1"})
    assert '<span class="tag bad">error</span>' in plain.text
    added = await site.post("/tools/knowledge-add", {"file_path": "/none", "async": "false"}, **{"x-part": "1"})
    assert "&#34;async&#34;: false" in added.text
    for argument, value, sentence in (
        ("top_k", "many", "top_k must be a number: many"),
        ("min_relevance", "x", "min_relevance must be a number: x"),
        ("filters", "{", "filters must be valid JSON: {"),
        ("filters", '"\\ud800"', "filters must be valid JSON:"),
        ("filters", "[" * 5_000, "filters must be valid JSON: [[["),
    ):
        refused = await site.post("/tools/knowledge-search", {"query": "x", argument: value})
        assert sentence in refused.text, value


async def test_files_are_added_described_and_removed(site: Site) -> None:
    document = await site.add("%E6%BC%A2" * 100 + ".txt", b"Tulips bloom in spring.")
    page = f"/documents/{document}"
    assert "1 chunk<" in await site.text(page)
    assert "Tulips bloom" in await site.text(f"{page}?chunk=none")
    for bad in ('{"a": "\\ud800"}', '{"a": NaN}', '{"a": 1e999}', "[" * 5_000, "5", "{"):
        assert (await site.post(f"{page}/metadata", {"metadata": bad})).status_code == 400, bad
    saved = await site.post(f"{page}/metadata", {"metadata": json.dumps({"topic": HOSTILE, "price": 1.5})})
    assert (saved.status_code, saved.headers["location"]) == (303, page)
    text = await site.text(page)
    assert HOSTILE not in text
    assert "1.5" in text
    assert (await site.post(f"{page}/retry")).status_code == 404
    assert (await site.post(f"{page}/remove")).status_code == 303
    assert (await site.post(f"{page}/remove")).status_code == 404
    await site.text(page, status=404)
    empty = await site.http.post(
        "/documents", content=b"x", headers={"x-csrf": await site.csrf(), "x-filename": "program.exe"}
    )
    assert empty.status_code == 400


async def test_a_file_that_cannot_be_read_is_listed_with_the_reason_and_retried(site: Site, tmp_path: Path) -> None:
    file = tmp_path / "late.html"
    file.write_text("<p></p>")
    await site.post("/tools/knowledge-add", {"file_path": str(file), "async": "false"})
    listed = await site.text("/documents?status=failed")
    assert "No text was found in the file." in listed
    found = re.search(r'href="(/documents/[0-9a-f-]{36})">late.html', listed)
    assert found
    assert re.search(r"<dt>failed</dt>\s*<dd>1</dd>", await site.text("/"))
    text = await site.text(found[1])
    assert "Processing failed" in text
    assert "Retry</button>" in text
    file.write_text("<p>Better late than never.</p>")
    assert (await site.post(f"{found[1]}/retry", {"force_ocr": ""})).status_code == 303
    tasks = re.findall(r'data-task="([^"]+)"', await site.text("/documents"))
    with anyio.fail_after(60):
        await site.get(f"/tasks?ids={','.join(tasks)}")  # ends with the tasks
    assert "than never." in await site.text("/search/results?q=better+late&in=knowledge")


async def test_an_upload_that_is_too_large_is_refused(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, "knowledge", processing={"max_file_size_mb": 1})
    async with open_site(settings) as site:
        headers = {"x-csrf": await site.csrf(), "x-filename": "large.txt"}
        response = await site.http.post("/documents", content=b"x" * (1024 * 1024 + 1), headers=headers)
        assert response.status_code == 413
        assert "1 MB" in response.text
        assert "No documents yet." in await site.text("/documents")
        assert "No documents match." in await site.text("/documents?name=none")
        assert not list((tmp_path / "data" / "uploads").iterdir())


async def test_uploads_that_a_killed_server_left_are_deleted(tmp_path: Path) -> None:
    uploads = tmp_path / "data" / "uploads"
    for name, age in (("left", 2 * 24 * 3600), ("recent", 0)):
        (uploads / name).mkdir(parents=True)
        os.utime(uploads / name, (time.time() - age,) * 2)
    async with open_site(make_settings(tmp_path, "knowledge")):
        assert [item.name for item in uploads.iterdir()] == ["recent"]


async def test_a_read_only_server_refuses_changes_and_says_so(tmp_path: Path) -> None:
    async with open_site(make_settings(tmp_path, "knowledge")) as site:
        document = await site.add("kept.txt", b"Kept as it is.")
    async with open_site(make_settings(tmp_path, "knowledge", read_only=True)) as site:
        assert "This server is read-only." in await site.text("/documents")
        page = await site.text(f"/documents/{document}")
        assert "Kept as it is." in page
        assert "<button" not in page
        for path in FORM_ROUTES[:5]:
            response = await site.post(path.replace("/x/", f"/{document}/"), {"metadata": "{}"})
            assert (response.status_code, response.text) == (403, "This server is read-only."), path
        assert "read-only" in (await site.post("/tools/knowledge-clear", {"confirm": "true"})).text
        assert "disabled>Call</button>" in await site.text("/tools/knowledge-clear")


async def test_a_broken_service_hides_nothing_else(tmp_path: Path) -> None:
    index = tmp_path / "data" / "index"
    index.mkdir(parents=True)
    (index / "knowledge.sqlite").write_bytes(b"not a database, although it has its name" * 100)
    (tmp_path / "guide").mkdir()
    (tmp_path / "guide" / "guide.md").write_text("# Guide\n\nUse the cursor.\n")
    async with open_site(make_settings(tmp_path, "knowledge", "docs", docs={"dir": [tmp_path / "guide"]})) as site:
        for path, other in (("/", "corpora"), ("/search?q=cursor", "<mark>cursor</mark>")):
            text = await site.text(path)
            assert '<p class="error">The store ' in text
            assert "is damaged: file is not a database" in text
            assert other in text
        text = await site.text("/documents", status=503)
        assert "bedstone knowledge rebuild" in text
        assert "That did not work" in text
        assert "guide.md" in await site.text("/docs/corpora/guide")


async def test_a_server_without_sources_says_so(tmp_path: Path) -> None:
    async with open_site(make_settings(tmp_path, "kb")) as site:
        assert "No sources to search." in await site.text("/search?q=x")
        assert "<section" not in await site.text("/search")


async def test_the_login_opens_the_pages_of_a_server_with_a_token(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, "kb", mcp={"token": TOKEN})
    async with open_site(settings) as site:
        login = await site.text("/login?next=/search")
        assert 'content=""' in login  # strangers get no form token
        assert "<nav" not in login
        assert (await site.get("/nowhere")).text == "Page not found: /nowhere"  # and no navigation
        wrong = await site.http.post("/login", data={"token": "wrong"})
        assert (wrong.status_code, "Wrong token." in wrong.text) == (401, True)
        for target, location in (
            ("/search%3Fq=x", "/search?q=x"), ("//other.example", "/"), ("https://other.example", "/"),
            ("/%5Cother.example", "/"),
        ):  # fmt: skip
            response = await site.http.post(f"/login?next={target}", data={"token": TOKEN})
            assert (response.status_code, response.headers["location"]) == (303, location)
            cookie = response.headers["set-cookie"].lower()
            assert ("httponly" in cookie, "samesite=strict" in cookie, "secure" in cookie) == (True, True, False)
        assert "Log out" in await site.text("/")
        assert "Page not found" in await site.text("/nowhere", status=404)
        assert (await site.http.post("/logout")).status_code == 403
        before = dict(site.http.cookies)
        out = await site.post("/logout")
        assert (out.status_code, out.headers["location"]) == (303, "/login")
        headers = {"cookie": "; ".join(f"{name}={value}" for name, value in before.items())}
        assert "<nav" not in (await site.get("/nowhere", **headers)).text  # the old cookie is worthless


async def test_each_of_several_orgs_has_its_pages(tmp_path: Path) -> None:
    describes = write_describes(tmp_path / "describes")
    async with open_site(make_settings(tmp_path, "salesforce_graph")) as site:
        await site.text("/salesforce", status=404)
        schemas: SchemaService = await site.app.services["salesforce_graph"].open()
        for name in ("one", "two & three"):
            schemas.import_folder(name, describes)
        choice = await site.text("/salesforce")
        assert "Choose an org" in choice
        assert 'href="/salesforce/orgs/two%20%26%20three"' in choice
        text = await site.text("/salesforce/orgs/two%20%26%20three")
        assert 'href="/salesforce/orgs/two%20%26%20three/objects/Contact"' in text
        assert "one, two &amp; three" in await site.text("/")
        await site.text("/salesforce/objects/Contact", status=404)


async def test_evaluations_are_shown_with_the_run_before(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "evaluations"
    folder.mkdir(parents=True)
    async with open_site(make_settings(tmp_path, "kb")) as site:
        assert "No evaluations yet." in await site.text("/quality")
        for number, value in enumerate((0.5, 0.75)):
            report = {"name": HOSTILE, "at": f"2026-01-0{number + 1}", "quality": {"mrr@5": value}, "by_category": {}}
            (folder / f"2026010{number + 1}.json").write_text(json.dumps(report))
        (folder / "broken.json").write_text("[" * 100_000)
        text = await site.text("/quality")
        assert HOSTILE not in text
        assert "mrr@5 0.75 (before: 0.5)" in text
        chart = await site.get(f"/quality/chart.svg?name={quote(HOSTILE)}")
        assert chart.headers["content-type"] == "image/svg+xml"
        assert HOSTILE not in chart.text


@pytest.fixture
def mirror(tmp_path: Path) -> Settings:
    """The settings of a mirror whose article has a hostile title."""
    shutil.unpack_archive(GOLDEN_DATA, tmp_path / "data")
    (file,) = (tmp_path / "data").rglob("articles.sqlite")
    with sqlite3.connect(file) as store:
        (metadata,) = store.execute("SELECT metadata FROM document WHERE id = ?", (ARTICLE,)).fetchone()
        hostile = metadata.replace("Battery lost its capacity", HOSTILE)
        assert hostile != metadata
        store.execute("UPDATE document SET metadata = ? WHERE id = ?", (hostile, ARTICLE))
    store.close()
    return make_settings(tmp_path, "salesforce_knowledge", salesforce={"article_source": "mirror"})


async def test_articles_of_the_mirror_are_listed_and_shown(mirror: Settings) -> None:
    async with open_site(mirror) as site:
        listed = await site.text("/salesforce/articles?title=alert(1)")
        assert ">1 article<" in listed
        assert HOSTILE not in listed
        shown = await site.text(f"/salesforce/articles/{ARTICLE}")
        assert escape(HOSTILE) in shown
        assert "mirrored 20" in shown
        assert "ka0000000000xxx" in await site.text("/salesforce/articles/ka0000000000xxx", status=404)


async def test_articles_without_a_mirror_say_what_to_do(tmp_path: Path) -> None:
    async with open_site(make_settings(tmp_path, "salesforce_knowledge")) as site:
        text = await site.text("/salesforce/articles")
        assert "bedstone salesforce login" in text
        assert "<table>" not in text
        assert "bedstone salesforce login" in await site.text("/")


@pytest.fixture(scope="module")
async def org_site(demo: Running, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    """The pages of an org that can be queried."""
    folder = tmp_path_factory.mktemp("org")
    log_in(demo, folder / "data")
    synced = bedstone("salesforce", "sync-schema", "--data-dir", folder / "data")
    assert synced.returncode == 0, synced.stderr
    for name in ("=1+1", HOSTILE):
        made = demo.http.post(f"{V}/sobjects/Contact", json={"LastName": name, "Title": "Tester"})
        assert made.status_code == 201
    async with open_site(make_settings(folder, "salesforce_graph")) as site:
        yield site


async def test_rows_of_an_org_are_text_and_come_in_pages(org_site: Site) -> None:
    query = "SELECT LastName, Account.Name FROM Contact WHERE Title = 'Tester'"
    found = await org_site.post("/salesforce/soql/run", {"query": query})
    assert HOSTILE not in found.text
    assert escape(HOSTILE) in found.text
    assert "<th>LastName</th><th>Account.Name</th>" in found.text
    first = await org_site.post("/salesforce/soql/run", {"query": "SELECT Id FROM Contact ORDER BY Id"})
    cursor = re.search(r'data-cursor="([^"]+)"', first.text)
    assert cursor
    again = {"query": "SELECT Id FROM Contact ORDER BY Id", "cursor": cursor[1]}
    second = await org_site.post("/salesforce/soql/run", again)
    assert "<h2>" not in second.text
    assert not set(re.findall("<td>(003[^<]+)", first.text)) & set(re.findall("<td>(003[^<]+)", second.text))


async def test_rows_are_downloaded_without_formulas(org_site: Site) -> None:
    query = "SELECT LastName, Account.Name FROM Contact WHERE Title = 'Tester' ORDER BY LastName"
    response = await org_site.post("/salesforce/soql/rows.csv", {"query": query})
    assert response.headers["content-disposition"] == 'attachment; filename="rows.csv"'
    rows: list[Any] = list(csv.reader(io.StringIO(response.text)))
    assert rows == [["LastName", "Account.Name"], [HOSTILE, ""], ["'=1+1", ""]]
    counted = await org_site.post("/salesforce/soql/rows.csv", {"query": "SELECT COUNT() FROM Contact"})
    assert counted.text.startswith("COUNT()\r\n")
    wrong = await org_site.post("/salesforce/soql/rows.csv", {"query": "SELECT Nope FROM Contact"})
    assert wrong.status_code >= 400


OUTSIDE = '''
from starlette.responses import Response
from starlette.routing import Route

from bedstone.services.service import Service
from bedstone.toolkit import NavigationItem, Toolset, ToolsetContext, ToolsetSpec


class DiaryService(Service):
    async def figures(self):
        return [("entries", "3 <b>")]


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
    navigation=(NavigationItem("diary", "/diary", "Diary"),),
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
        assert '<a href="/diary">Diary</a>' in home
        assert "Diary &lt;i&gt;" in home
        assert "3 &lt;b&gt;" in home
        assert '<a href="/diary" aria-current="page">Diary</a>' in await site.text("/diary")
        broken = await site.text("/diary/broken", status=500)
        assert "Internal error; see the server log." in broken
        assert "a secret" not in broken
