"""The documentation pages in this process: corpora and their state, folders, files as rich text, what agents get."""

import os
import re
import time
from collections.abc import AsyncIterator
from html import escape, unescape
from pathlib import Path
from urllib.parse import quote, urljoin

import anyio
import anyio.lowlevel
import pytest

from bedstone.services.docs.corpus import FileFacts
from bedstone.web.docs.dialects import to_plain_markdown
from bedstone.web.docs.tree import Branch, build_tree, name_folders
from support.payloads import MARKDOWN_PAYLOADS, PAYLOADS, check_markup, visible_text
from support.processes import bedstone
from support.site import Site, links, make_settings, open_site

MAX_BYTES = 150_000
ERRORS = """# Errors and retries

Read this [before you start](getting-started.md), [the codes](#error-codes) and
[what is left](../api/bikes.md#lock-a-bike).

## Error codes

| code | what to do |
|---|---|
| `RATE_LIMIT` | wait |

See [the folder](../api), [the site](https://example.org/x), [nothing](missing.md), [a part](#deep-inside).

### Deep inside

Words below.

## Rate limits {#limits}

A key may send 100 requests a minute. After too many, **wait** as long as `Retry-After` says.

!!! warning "Careful"
    Do not poll.

## Backoff

Wait one second, then two, then four.
"""
GUIDE = "/docs/corpora/guide"
PAGE = f"{GUIDE}/guides/errors.md"
LIMITS = "guides/errors.md#errors-and-retries/rate-limits-limits"


def write_guide(folder: Path) -> Path:
    """Write a small corpus with links, a long file and a file of hostile texts."""
    for name, text in {
        "guides/errors.md": ERRORS,
        "guides/getting-started.md": "# Getting started\n\nInstall it.\n",
        "api/bikes.md": "# Bikes\n\nList them.\n\n## Lock a bike\n\nLock it.\n",
        "sdk/python/client.md": "# Client\n\nCall it.\n",
        "long.md": "# Long\n"
        + "".join(f"\n## Section {number}\n\n{f'Text of section {number}. ' * 60}\n" for number in range(90)),
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    hostile = [item.encode("utf-8", "replace").decode().replace("\0", "") for item in (*PAYLOADS, *MARKDOWN_PAYLOADS)]
    parts = "".join(f"\n\n## Case {number}\n\n{text}\n" for number, text in enumerate(hostile))
    (folder / "hostile.md").write_text(f"# <img src=x onerror=alert(1)>\n{parts}")
    manifest = (
        '{"version": "1", "metadata": {"scope": "global-guide"}, "taxonomy": {"scope": {"description": "Scope"}}}'
    )
    (folder / "guides" / ".docs-mcp.json").write_text(manifest)
    return folder


@pytest.fixture(scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    folder = tmp_path_factory.mktemp("docs")
    guide = write_guide(folder / "guide")
    async with open_site(make_settings(folder, "docs", docs={"dir": [guide]})) as site:
        yield site


def sections(page: str) -> dict[str, str]:
    """Return the passages of a page by id."""
    found = re.findall(r'<section id="([^"]+)"[^>]*>(.*?)</section>', page, re.DOTALL)
    return {unescape(name): text for name, text in found}


async def test_corpora_are_listed_with_what_is_in_them(site: Site) -> None:
    text = await site.text("/docs")
    plain = visible_text(text)
    assert "1 corpus with 6 files and" in plain
    assert "api 1, guides 2, sdk 1" in plain
    assert '<span class="state good">Ready</span>' in text
    assert "scope global-guide" in plain
    assert "bedstone serve --docs-dir ./docs --watch" in plain, "this server does not read what `build` writes"
    assert '<input type="hidden" name="in" value="docs">' in text
    assert '<form method="post" action="/activity/sync/docs">' in text
    assert {"/tools/search_docs", "/tools/get_doc", GUIDE} <= links(text)


def write_page(path: Path, text: str, age: float) -> None:
    path.write_text(text)
    os.utime(path, (time.time() - age,) * 2)


async def test_a_corpus_that_is_older_than_its_folder_says_so(tmp_path: Path) -> None:
    guide = tmp_path / "guide"
    guide.mkdir()
    for name in ("one", "two"):
        write_page(guide / f"{name}.md", f"# {name}\n\nText.\n", age=1_000)
    data = ("--data-dir", tmp_path / "data", "--embedding-provider", "none")
    assert bedstone("docs", "build", guide, *data).returncode == 0
    settings = make_settings(tmp_path, "docs")
    async with open_site(settings) as site:
        text = await site.text("/docs")
        assert '<span class="state good">Ready</span>' in text
        assert f"bedstone docs build ./docs --data-dir {tmp_path / 'data'}" in unescape(text)
    write_page(guide / "one.md", "# one\n\nAnother text that is longer.\n", age=900)
    (guide / "two.md").unlink()
    write_page(guide / "three.md", "# three\n\nNew.\n", age=-60)  # an index records seconds
    async with open_site(settings) as site:
        with anyio.fail_after(20):  # a busy machine shows the page before it has compared the folder
            while "Out of date" not in (text := await site.text("/docs")):
                await anyio.lowlevel.checkpoint()
        assert '<span class="state warn">Out of date</span>' in text
        assert "3 files changed since." in text
        corpus = visible_text(await site.text(GUIDE))
        assert all(item in corpus for item in ("one.md changed", "three.md new", "two.md removed"))
        assert f"bedstone docs build {guide} --data-dir {tmp_path / 'data'}" in corpus
        write_page(guide / "three.md", "# three\n\nNew.\n", age=800)
        assert bedstone("docs", "build", guide, *data).returncode == 0
    async with open_site(settings) as site:
        assert "Out of date" not in await site.text("/docs")


async def test_a_corpus_that_cannot_be_opened_is_named_and_the_others_are_shown(tmp_path: Path) -> None:
    data = ("--data-dir", tmp_path / "data", "--embedding-provider", "none")
    for name in ("good", "broken"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.md").write_text("# A\n\nText.\n")
        assert bedstone("docs", "build", tmp_path / name, *data).returncode == 0
    (store,) = (tmp_path / "data" / "docs" / "broken").rglob("store.sqlite")
    store.write_bytes(b"no database" * 500)
    async with open_site(make_settings(tmp_path, "docs")) as site:
        text = await site.text("/docs")
        assert '<span class="state bad">Cannot be opened</span>' in text
        assert "/docs/corpora/good" in links(text)
        assert "bedstone docs build" in await site.text("/docs/corpora/broken", status=503)
        assert 'name="f.corpus" value="good"' in await site.text("/docs/corpora/good")


async def test_folders_are_listed_and_narrowed(site: Site) -> None:
    text = await site.text(GUIDE)
    assert {f"{GUIDE}?in=api", f"{GUIDE}?in=guides", f"{GUIDE}/long.md"} <= links(text)
    assert "5 entries" in text
    inside = await site.text(f"{GUIDE}?in=guides")
    assert "Errors and retries" in inside
    narrowed = await site.text(f"{GUIDE}?name=RETRIES")
    assert "1 file with “RETRIES” in path or title" in narrowed
    assert PAGE in links(narrowed)
    assert "No file matches" in await site.text(f"{GUIDE}?name=zebra")
    folder = await site.get(f"{GUIDE}/sdk/python")
    assert (folder.status_code, folder.headers["location"]) == (307, f"{GUIDE}?in=sdk/python")


async def test_unknown_corpora_folders_and_files_are_answered_in_words(site: Site) -> None:
    for path, sentence in {
        "/docs/corpora/none": "Unknown corpus 'none'. The Documentation page lists every corpus.",
        "/docs/corpora/none/a.md": "Unknown corpus 'none'.",
        f"{GUIDE}?in=none": "The corpus 'guide' has no folder 'none'.",
        f"{GUIDE}/guides/error.md": "has no file 'guides/error.md'",
        "/docs/chunk?id=guides/errors.md%23none": "guides/errors.md#none",
        "/docs/answer?id=none": "none",
    }.items():
        assert sentence in unescape(await site.text(path, status=404)), path
    misspelt = await site.text(f"{GUIDE}/guides/error.md", status=404)
    assert "Did you mean guides/errors.md?</h2>" in misspelt
    assert f'href="{GUIDE}/guides/errors.md">Open guides/errors.md</a>' in misspelt


async def test_a_file_is_rich_text_with_one_title_and_no_level_skipped(site: Site) -> None:
    text = await site.text(PAGE)
    levels = [
        int(level)
        for level in re.findall(r"<h([1-6])[ >]", text.split('<article class="prose">')[1].split("</article>")[0])
    ]
    assert levels == [1, 2, 3, 2, 2]
    assert text.count("Errors and retries</h") == 1
    assert "## " not in visible_text(text.split("<article")[1].split("</article>")[0])
    assert '<table class="table to-cards">' in text
    assert "{#limits}" not in visible_text("".join(sections(text).values()))
    assert "<blockquote>\n<p><strong>Careful</strong></p>\n<p>Do not poll.</p>" in text, "a note of MkDocs"
    assert "4 passages" in text


async def test_links_of_a_file_lead_to_our_own_pages(site: Site) -> None:
    text = "".join(sections(await site.text(PAGE)).values())
    assert f'<a href="{GUIDE}/guides/getting-started.md">before you start</a>' in text
    assert '<a href="#guides/errors.md%23errors-and-retries/error-codes">the codes</a>' in text
    assert f'<a href="{GUIDE}/api/bikes.md?at=lock-a-bike">what is left</a>' in text
    assert f'<a href="{GUIDE}?in=api">the folder</a>' in text
    assert '<a href="https://example.org/x" rel="noopener noreferrer nofollow">the site</a>' in text
    assert "nothing</a>" not in text
    assert '<a href="#guides/errors.md%23errors-and-retries/error-codes">a part</a>' in text
    led = await site.get(f"{GUIDE}/api/bikes.md?at=lock-a-bike")
    assert led.headers["location"] == f"{GUIDE}/api/bikes.md#api/bikes.md%23bikes/lock-a-bike"
    own = await site.get(f"{PAGE}?at=limits")
    assert own.headers["location"] == f"{PAGE}#{quote(LIMITS)}"


async def test_every_link_of_the_pages_leads_somewhere(site: Site) -> None:
    for path in ("/docs", GUIDE, PAGE, f"{GUIDE}/hostile.md", f"{GUIDE}/long.md?page=2"):
        for address in links(await site.text(path)):
            if address.startswith(("/docs", "?")):
                response = await site.get(urljoin(path, address))
                assert response.status_code in (200, 307), (path, address)


async def test_the_passage_that_was_found_is_framed_and_marked(site: Site) -> None:
    text = await site.text(f"{PAGE}?chunk={quote(LIMITS)}&q=wait+requests")
    found = re.findall(r'<section id="([^"]+)" class="found"', text)
    assert [unescape(item) for item in found] == [LIMITS]
    assert "<strong><mark>wait</mark></strong>" in sections(text)[LIMITS]
    assert "<mark>requests</mark>" in sections(text)[LIMITS]
    assert 'href="/search?q=wait%20requests"' in text
    assert "found in passage 3 of 4" in text
    assert 'class="found"' not in await site.text(PAGE)
    gone = await site.text(f"{PAGE}?chunk=guides/errors.md%23gone&q=wait")
    assert "This passage is no longer in the file" in gone
    assert "Errors and retries</h1>" in gone


async def test_what_an_agent_gets_is_the_literal_answer(site: Site) -> None:
    for context in (0, 1):
        reply = await site.app.toolsets["docs"].call("get_doc", {"chunk_id": LIMITS, "context": context})
        text = await site.text(f"{PAGE}?chunk={quote(LIMITS)}&context={context}")
        shown = re.search(r'<pre class="answer-text"[^>]*>(.*?)</pre>', text, re.DOTALL)
        assert shown
        assert unescape(shown[1]) == reply.text
        part = await site.text(f"/docs/answer?id={quote(LIMITS)}&context={context}")
        assert escape(reply.text.splitlines()[0]) in part
        assert "<html" not in part
    assert "Passage 3 of 4, about" in text
    assert f'data-copy-text="{LIMITS}"' in text
    assert any(link.startswith("/tools/get_doc?chunk_id=guides") for link in links(text))


async def test_the_address_of_a_passage_leads_into_its_file(site: Site) -> None:
    response = await site.get(f"/docs/chunk?id={quote(LIMITS)}&context=1")
    assert response.status_code == 307
    assert response.headers["location"] == f"{PAGE}?chunk={quote(LIMITS, safe='')}&context=1#{quote(LIMITS)}"


async def test_long_files_have_pages_that_stay_small(site: Site) -> None:
    first = await site.get(f"{GUIDE}/long.md")
    last = int(re.findall(r"Page 1 of (\d+)", first.text)[0])
    assert last >= 3
    seen: list[str] = []
    for number in range(1, last + 1):
        page = await site.get(f"{GUIDE}/long.md?page={number}")
        assert len(page.content) < MAX_BYTES
        seen += re.findall(r"<h2>(Section \d+)", page.text)
    assert seen == [f"Section {number}" for number in range(90)]
    chunk = "long.md#long/section-80"
    assert "Text of section 80." in sections(await site.text(f"{GUIDE}/long.md?chunk={quote(chunk)}"))[chunk]
    assert sections(await site.text(f"{GUIDE}/long.md?page=999")).keys() >= {"long.md#long/section-89"}
    for odd in ("%C2%B2", "9" * 5000, "-1", "x"):
        assert "Page 1 of" in await site.text(f"{GUIDE}/long.md?page={odd}")


async def test_files_before_and_after_are_offered(site: Site) -> None:
    text = await site.text(PAGE)
    assert f'<a rel="prev" href="{GUIDE}/api/bikes.md">' in text
    assert f'<a rel="next" href="{GUIDE}/guides/getting-started.md">' in text
    assert 'rel="prev"' not in await site.text(f"{GUIDE}/api/bikes.md")


async def test_the_tree_shows_small_corpora_whole(site: Site) -> None:
    tree = (await site.text(PAGE)).split('<nav class="tree"')[1].split("</nav>")[0]
    assert f'<a href="{PAGE}" aria-current="page">Errors and retries</a>' in tree
    assert "python / Client" in tree, "a folder with one file needs no branch"
    assert tree.count("<a ") == 7


def test_the_tree_of_a_large_corpus_shows_what_is_around_the_file() -> None:
    files = [FileFacts(f"part{number % 20:02}/page{number:05}.md", f"Page {number}", 1) for number in range(14_000)]
    files = sorted(files, key=lambda item: item.path)
    started = time.process_time()
    tree = build_tree(files, files[7_000].path)
    assert time.process_time() - started < 0.2
    (branch,) = tree.branches
    assert files[7_000] in branch.files
    assert len(branch.files) == 40
    assert branch.more == 660
    assert count_links(tree) < 100
    assert name_folders(files).endswith("15 more folders")


def count_links(branch: Branch) -> int:
    return len(branch.files) + sum(1 + count_links(item) for item in branch.branches)


async def test_hostile_documentation_can_only_be_read(site: Site) -> None:
    number, shown = 1, dict[str, str]()
    while True:
        page = await site.text(f"{GUIDE}/hostile.md?page={number}&q=alert")
        assert not re.search(r"<(?:img|iframe|object|embed|form name|script>alert|style)", page), "not even in the tree"
        shown |= sections(page)
        if 'rel="next" href="?' not in page:
            break
        number += 1
    assert len(shown) >= len(PAYLOADS) + len(MARKDOWN_PAYLOADS) - 5, "some begin a heading of their own"
    for name, text in shown.items():
        assert check_markup(text, f"{name.partition('#')[2]}/") == [], text


def test_notes_of_site_generators_become_quotations() -> None:
    text = to_plain_markdown(
        '!!! note "Read me"\n    First.\n\n    Second.\n\nAfter.\n\n:::tip\nUse it.\n:::\n\n> [!WARNING]\n> Hot.\n\n'
        "```\n!!! note\n:::tip\n```\n"
    )
    assert "> **Read me**\n>\n> First.\n> \n> Second." in text
    assert "> **Tip**\n> \n> Use it." in text
    assert "> **Warning**" in text
    assert "```\n!!! note\n:::tip\n```" in text, "code stays"
    assert to_plain_markdown("Wow!!! Really???\n") == "Wow!!! Really???\n"
