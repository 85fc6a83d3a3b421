"""The pages of articles: list, search, categories, languages, live and mirror; one article with its citation."""

import re
import shutil
import sqlite3
from collections.abc import AsyncIterator
from html import escape, unescape
from pathlib import Path

import anyio
import pytest

from bedstone.settings import Settings
from support.demo_org import Running, V, log_in
from support.processes import bedstone
from support.site import Site, links, make_settings, open_site

pytestmark = pytest.mark.usefixtures("calm")

LIST = "/salesforce/articles"
PADS = f"{LIST}/How-to-change-the-brake-pads-of-the-Porter"
HOSTILE = "<img src=x onerror=alert(1)>"
PAYLOADS = (
    "<script>alert(1)</script>",
    HOSTILE,
    "<svg/onload=alert(1)>",
    '<a href="javascript:alert(1)">x</a>',
    '<iframe srcdoc="<script>alert(1)</script>"></iframe>',
    "<style>body{display:none}</style>",
    '<p style="position:fixed" onclick="alert(1)">x</p>',
)
GOLDEN_DATA = Path(__file__).parents[1] / "golden" / "data_folder" / "data.zip"
ARTICLE = "ka000000000000NAAQ"
MAX_BYTES = 150_000


@pytest.fixture(scope="module")
def data(demo: Running, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose data know the org, with a mirror without vectors."""
    folder = tmp_path_factory.mktemp("mirrored")
    log_in(demo, folder / "data")
    made = bedstone(
        *("salesforce", "sync-knowledge", "--data-dir", folder / "data"), BEDSTONE_EMBEDDING__MODEL_NAME="none"
    )
    assert made.returncode == 0, made.stderr
    return folder


@pytest.fixture
async def site(data: Path) -> AsyncIterator[Site]:
    async with open_site(make_settings(data, "salesforce_knowledge")) as site:
        yield site


def plain(page: str) -> str:
    """Return the words of a page."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page)).split())


def titles(page: str) -> list[str]:
    found = re.findall(r'<article class="result">.*?<h2><a[^>]*>(.*?)</a></h2>', page, re.DOTALL)
    return [unescape(re.sub("<[^>]*>", "", title)) for title in found]


def chips(page: str, group: str) -> dict[str, int]:
    (row,) = re.findall(rf'<nav class="chips" aria-label="{group}">(.*?)</nav>', page, re.DOTALL)
    found = re.findall(r'<a class="chip"[^>]*>(.*?)<b>([\d,]+)</b></a>', row)
    return {plain(label).removeprefix("\u203a").strip(): int(count) for label, count in found}


async def test_all_articles_of_a_language_are_listed_by_title(site: Site) -> None:
    page = await site.text(LIST)
    assert "192 published articles in 3 languages" in plain(page)
    assert "120 articles by title" in plain(page)
    shown = titles(page)
    assert shown == sorted(shown, key=str.lower)
    assert (len(shown), shown[0]) == (20, "API keys for fleet customers")
    assert "Keys are made in the dashboard and shown once." in page
    assert len(titles(await site.text(f"{LIST}?page=6"))) == 20
    assert "There is no page 7" in plain(await site.text(f"{LIST}?page=7"))
    german = await site.text(f"{LIST}?language=de")
    assert "36 articles by title" in plain(german)
    assert "Bremsbeläge am Barrow wechseln" in german
    assert 'lang="de" aria-current="true">Deutsch' in german


async def test_a_search_shows_the_best_first_with_marked_passages(site: Site) -> None:
    page = await site.text(f"{LIST}?q=change+the+brake+pads+of+the+Porter")
    assert titles(page)[0] == "How to change the brake pads of the Porter"
    assert "from the mirror, best first" in plain(page)
    assert "<mark>brake</mark>" in page
    assert re.search(r'class="band strong".*?Strong', page, re.DOTALL)
    found = re.search(rf'href="({PADS}[^"]*)"', page)
    assert found
    address = unescape(found[1])
    assert re.fullmatch(rf"{PADS}\?q=[\w+]+&start=\d+&end=\d+#found", address)
    article = await site.text(address.partition("#")[0])
    assert article.count('id="found"') == 1
    nothing = await site.text(f"{LIST}?q=qqqq&category=Topics.Brakes")
    assert "No article matches “qqqq”" in plain(nothing)
    assert 'value="qqqq"' in nothing
    assert "Search all categories" in nothing


async def test_titles_can_still_be_filtered(site: Site) -> None:
    assert titles(await site.text(f"{LIST}?title=GIFT")) == ["Gift vouchers"]


async def test_categories_are_chips_with_counts_that_narrow_the_list(site: Site) -> None:
    page = await site.text(LIST)
    assert chips(page, "Topics") == {"All": 120, "The bike": 58, "Service": 62}
    assert chips(page, "Models") == {"All": 120, "Kestrel Haul": 12, "Kestrel Barrow": 12, "Kestrel Porter": 12}
    below = await site.text(f"{LIST}?category=Topics.Bike")
    assert chips(below, "Topics")["Brakes"] == 6
    assert "58 articles by title" in plain(below)
    both = await site.text(f"{LIST}?category=Topics.Brakes&category=Models.Porter")
    assert titles(both) == [
        "How to bleed the hydraulic brake of the Porter",
        "How to change the brake pads of the Porter",
    ]
    assert chips(both, "Models")["Kestrel Haul"] == 2  # of the brakes
    assert chips(both, "Topics")["Brakes"] == 2  # of the Porter
    searched = await site.text(f"{LIST}?q=brake")
    assert chips(searched, "Topics")["Brakes"] == 6
    assert "120 articles" in plain(await site.text(f"{LIST}?category=Topics.Nothing"))
    assert f"{LIST}?category=Models.Porter" in links(both)
    assert len(titles(await site.text(f"{LIST}?category=Models.Porter"))) == 12


async def test_the_org_and_the_mirror_can_be_compared(site: Site, demo: Running) -> None:
    page = await site.text(f"{LIST}?q=flat+tyre&from=live")
    assert "from the org, in its order" in plain(page)
    assert titles(page)[0].startswith("How to fix a flat tyre")
    assert 'class="band' not in page
    assert "Answers" in page
    assert "In step" in page
    demo.faults("unavailable")
    with anyio.fail_after(30):
        down = plain(await site.text(f"{LIST}?q=flat+tyre&from=live"))
    assert "The org cannot be asked" in down
    assert "Show the mirror" in down


async def test_the_mirror_says_how_far_it_is_behind(data: Path, demo: Running) -> None:
    facts = {"Title": "Brand new", "UrlName": "Brand-new", "PublishStatus": "Online", "Language": "en_US"}
    record = demo.http.post(f"{V}/sobjects/Knowledge__kav", json=facts).json()["id"]
    try:
        async with open_site(make_settings(data, "salesforce_knowledge")) as site:
            assert "1 behind" in await site.text(LIST)
            new = await site.text(f"{LIST}/Brand-new")
            assert "Live, from demo" in plain(new)
            assert "The mirror does not have this version yet" in plain(new)
    finally:
        demo.http.delete(f"{V}/sobjects/Knowledge__kav/{record}")


async def test_an_article_is_rich_text_with_what_an_agent_gets(site: Site) -> None:
    page = await site.text(f"{PADS}?q=plastic+lever")
    assert page.count("<h1") == 1
    assert "<li>Take out the wheel.</li>" in page
    assert '<p class="lead">Worn pads are replaced in ten minutes with a 5 mm key.</p>' in page
    assert re.search(r'<h2 id="part-\w*answer"[^>]*>Answer', page)
    assert re.search(r"Push the pistons back with a <mark>plastic</mark> <mark>lever</mark>", page)
    answer = await site.app.toolsets["salesforce_knowledge"].call(
        "get_article_by_id", {"article_id": "ka000000000001kAAA"}
    )
    assert escape(f'"id": "{answer.payload["article"]["id"]}"', quote=True).replace("&quot;", "&#34;") in page  # type: ignore[index,call-overload]
    assert f"about {-(-len(answer.text) // 4)} tokens" in plain(page)
    words = plain(page)
    assert "Read from Answer__c , Steps__c" in words
    assert "Left out Internal Notes" in words
    assert "article:How-to-change-the-brake-pads-of-the-Porter" in words
    assert "salesforce-knowledge://article/How-to-change-the-brake-pads-of-the-Porter" in words
    assert "More in Brakes" in words
    assert f'href="{LIST}?category=Topics.Brakes&amp;language=en_US">All 6</a>' in page
    assert f"{LIST}?category=Topics.Brakes&amp;language=en_US" in page
    assert "Open in Salesforce" not in words  # the demo org has no pages
    line = await site.text(f"{PADS}?view=line")
    assert "search_articles , about" in plain(line)
    assert "&#34;citation&#34;" in line


async def test_a_cited_passage_is_highlighted_and_nothing_else(site: Site) -> None:
    service = await site.app.services["salesforce_knowledge"].open()
    text = (await service.fetch("article", "How-to-change-the-brake-pads-of-the-Porter")).text
    start = text.index("2. Push the pistons")
    end = text.index("\n", start)
    page = await site.text(f"{PADS}?start={start}&end={end}")
    assert '<li id="found" class="found">Push the pistons back with a plastic lever.</li>' in page
    assert page.count('class="found"') == 1
    for wrong in ("start=5", "start=9&end=2", "start=-1&end=3", f"start=0&end={10**12}", "start=x&end=y"):
        assert 'id="found"' not in await site.text(f"{PADS}?{wrong}")


async def test_an_article_links_its_translations(site: Site) -> None:
    page = await site.text(PADS)
    german = "/salesforce/articles/Bremsbelage-am-Porter-wechseln"
    assert f'href="{german}" lang="de">Deutsch' in page
    assert '<h1 lang="de">Bremsbeläge am Porter wechseln' in await site.text(german)


async def test_every_link_of_the_pages_leads_somewhere_on_this_server(site: Site) -> None:
    pages = (LIST, f"{LIST}?q=brake", PADS)
    found = {address for path in pages for address in links(await site.text(path)) if address.startswith(LIST)}
    assert len(found) > 30
    for address in sorted(found):
        response = await site.get(address)
        assert response.status_code == 200, address
        assert len(response.content) < MAX_BYTES


async def test_an_unknown_article_is_answered_with_the_nearest_name(site: Site) -> None:
    page = await site.text(f"{LIST}/How-to-chnge-the-brake-pads-of-the-Porter", status=404)
    assert "Did you mean How to change the brake pads of the Porter?" in plain(page)
    assert f'class="btn primary" href="{PADS}"' in page
    missing = await site.text(f"{LIST}/ka0000000000xxx", status=404)
    assert "No article is called ka0000000000xxx" in plain(missing)
    assert HOSTILE not in await site.text(f"{LIST}/%3Cimg%20src=x%20onerror=alert(1)%3E", status=404)


async def test_ids_of_versions_and_articles_are_addresses_too(site: Site) -> None:
    for record in ("ka000000000001kAAA", "ka000000000001k"):
        assert "How to change the brake pads of the Porter</h1>" in await site.text(f"{LIST}/{record}")


@pytest.mark.parametrize("source", ["live", "mirror"])
async def test_what_an_article_says_is_never_markup_of_the_page(demo: Running, tmp_path: Path, source: str) -> None:
    """Payloads in every field, in the list, the search and the page, from the org and from the mirror."""
    log_in(demo, tmp_path / "data")
    body = "".join(PAYLOADS) + '<a href="https://a.example/">out</a><img src="https://a.example/x.png" alt="Photo">'
    body += '<a href="/articles/Knowledge/Gift-vouchers">gift</a>'
    facts = {"Title": HOSTILE, "Summary": "".join(PAYLOADS), "Answer__c": body, "Steps__c": body}
    given = {"UrlName": "Hostile", "PublishStatus": "Online", "Language": "en_US"}
    record = demo.http.post(f"{V}/sobjects/Knowledge__kav", json=facts | given).json()["id"]
    try:
        settings = make_settings(tmp_path, "salesforce_knowledge", salesforce={"article_source": source})
        async with open_site(settings) as site:
            if source == "mirror":
                await (await site.app.services["salesforce_knowledge"].open()).sync()
            for path in (f"{LIST}/Hostile?q=x", f"{LIST}/Hostile?view=line", LIST, f"{LIST}?q=onerror&title=img"):
                page = await site.text(path)
                assert not re.search(r"<[^>]*\s(?:on\w+|style)=", page), path
                assert not re.search(r"<[^>]*(?:href|src|action)=[\"']?\s*javascript:", page), path
                assert not re.search(r"<(?:script|style|iframe|img)(?![^>]*/static/)", page), path
            page = await site.text(f"{LIST}/Hostile")
            assert re.search(r'<a [^>]*rel="noopener noreferrer nofollow"[^>]*>out</a>', page)
            assert "Photo" in page
            assert ('<a href="/salesforce/articles/Gift-vouchers">gift</a>' in page) == (source == "mirror")
    finally:
        demo.http.delete(f"{V}/sobjects/Knowledge__kav/{record}")


async def test_without_a_mirror_the_org_is_listed_and_can_be_mirrored(demo: Running, tmp_path: Path) -> None:
    log_in(demo, tmp_path / "data")
    async with open_site(make_settings(tmp_path, "salesforce_knowledge")) as site:
        page = await site.text(LIST)
        assert "These articles come from the org" in plain(page)
        status = re.search(r'role="status">(.*?)</p>', page)
        assert status
        assert plain(status[1]) == "120 articles from the org, by title"
        assert titles(page)[0] == "API keys for fleet customers"
        assert titles(await site.text(f"{LIST}?q=flat+tyre"))[0].startswith("How to fix a flat tyre")
        assert "The Porter takes part B-122" in await site.text(PADS)
        assert "Mirror the articles" in page
        action = "/activity/sync/salesforce_knowledge"
        assert f'action="{action}"' in page
        sent = await site.post(action, {"name": "mirror", "next": LIST})
        assert (sent.status_code, sent.headers["location"]) == (303, LIST)
        service = await site.app.services["salesforce_knowledge"].open()
        with anyio.fail_after(30):
            while service.syncs()[0].is_running:  # noqa: ASYNC110 - the page looks in the same way
                await anyio.sleep(0.05)
        assert "120 articles by title" in plain(await site.text(LIST))


async def test_a_chosen_mirror_that_is_missing_is_explained(demo: Running, tmp_path: Path) -> None:
    log_in(demo, tmp_path / "data")
    chosen = {"article_source": "mirror"}
    async with open_site(make_settings(tmp_path, "salesforce_knowledge", salesforce=chosen)) as site:
        page = await site.text(LIST)
        assert "The articles are not mirrored yet" in plain(page)
        assert "Mirror the articles" in page
    settings = make_settings(tmp_path, "salesforce_knowledge", salesforce=chosen, read_only=True)
    async with open_site(settings) as site:
        page = await site.text(LIST)
        assert "bedstone salesforce sync-knowledge" in page
        assert "<form method" not in page


async def test_without_an_org_the_page_says_how_to_log_in(tmp_path: Path) -> None:
    async with open_site(make_settings(tmp_path, "salesforce_knowledge")) as site:
        page = plain(await site.text(LIST))
        assert "There are no articles to show" in page
        assert "No org is connected yet. Log in to one on the command line with `bedstone salesforce login`." in page
        assert "bedstone salesforce login" in await site.text("/")


@pytest.fixture
def earlier_mirror(tmp_path: Path) -> Settings:
    """The settings of a mirror that an earlier version made, whose article has a hostile title."""
    shutil.unpack_archive(GOLDEN_DATA, tmp_path / "data")
    (file,) = (tmp_path / "data").rglob("articles.sqlite")
    with sqlite3.connect(file) as store:
        (metadata,) = store.execute("SELECT metadata FROM document WHERE id = ?", (ARTICLE,)).fetchone()
        hostile = metadata.replace("Battery lost its capacity", HOSTILE)
        assert hostile != metadata
        store.execute("UPDATE document SET metadata = ? WHERE id = ?", (hostile, ARTICLE))
        store.execute("INSERT INTO setting VALUES ('instance_url', 'https://acme.my.salesforce.com')")
    store.close()
    return make_settings(tmp_path, "salesforce_knowledge", salesforce={"article_source": "mirror"})


async def test_a_mirror_of_an_earlier_version_is_listed_and_shown(earlier_mirror: Settings) -> None:
    async with open_site(earlier_mirror) as site:
        listed = await site.text(f"{LIST}?title=alert(1)")
        assert "1 article by title" in plain(listed)
        assert HOSTILE not in listed
        shown = await site.text(f"{LIST}/{ARTICLE}")
        assert escape(HOSTILE) in shown
        assert "mirrored" in plain(shown)
        opened = f'href="https://acme.my.salesforce.com/{ARTICLE}" rel="noopener noreferrer"'
        assert opened in shown
        assert "Open in Salesforce" in shown
        assert "ka0000000000xxx" in await site.text(f"{LIST}/ka0000000000xxx", status=404)
        assert "not asked" in plain(await site.text(LIST)).lower()
