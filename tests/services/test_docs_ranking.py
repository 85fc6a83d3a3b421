"""Docs corpora: what ranks lower, what counts as one hit, and which words beside the text are searched."""

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from bedstone.search.hits import Hit
from bedstone.services.docs.builder import BuildOptions, BuildReport, DocsBuilder
from bedstone.services.docs.corpus import DocsCorpus
from bedstone.services.docs.library import DocPage, DocsLibrary
from bedstone.services.docs.release_notes import asks_for_release_notes, is_release_notes

Search = Callable[..., DocPage]
FILLER = "Nothing of this is about the subject, and it only makes the page longer than the others. " * 40


def build(source: Path, index: Path) -> BuildReport:
    return DocsBuilder(source, index, None, BuildOptions(), lambda *_: None).build()


@pytest.fixture
def search(tmp_path: Path) -> Search:
    def search(files: dict[str, str], query: str, limit: int = 10, **filters: str) -> DocPage:
        for name, text in files.items():
            path = tmp_path / "source" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        build(tmp_path / "source", tmp_path / "index")
        with closing(DocsLibrary({"docs": DocsCorpus(tmp_path / "index")})) as library:
            return library.search(query, filters, limit)

    return search


def paths(hits: Sequence[Hit]) -> list[str]:
    return [hit.head.document_id for hit in hits]


@pytest.mark.parametrize(
    "front",
    [
        "---\ntitle: Key lifetimes\ndescription: What is thrown away when memory is full\n---\n",
        "---\ntitle: Key lifetimes\nkeywords: [thrown away, memory, full]\n---\n",
        "---\ntitle: Key lifetimes\nlinkTitle: Thrown away when memory is full\n---\n",
        '+++\ntitle = "Key lifetimes"\nsummary = "What is thrown away when memory is full"\n+++\n',
        "---\ntitle: Key lifetimes\naliases:\n  - /thrown-away/\n  - /memory-full/\n---\n",
    ],
)
def test_words_of_the_front_matter_find_the_page_and_raise_its_score(search: Search, front: str) -> None:
    files = {
        "eviction.md": f"{front}\nThe policy decides.\n\n## Notes\n\nMore.\n",
        "other.md": "# Memory\n\nA full page.\n",
    }
    page = search(files, "what is thrown away when memory is full")
    assert page.hits[0].head.id == "eviction.md#_preamble"
    assert page.hits[0].score >= 0.5
    assert "thrown" not in page.hits[0].plain  # what agents quote is the text of the page


def test_the_words_of_a_long_front_matter_that_are_left_out_are_reported(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(f"---\ntitle: A\nkeywords: {'word ' * 1000}\n---\n\nText.\n")
    report = build(tmp_path, tmp_path / "index")
    assert any("only the first 2,000 characters" in warning for warning in report.warnings)


RELEASES = {
    "guide/passwords.md": "# Passwords\n\nChange the hashing algorithm of a password in the settings file of a site.\n",
    "releases/2.1.md": "# Release 2.1\n\nThe hashing algorithm of a password changed.\n",
    "CHANGELOG.md": "# Changelog\n\n## 2.1\n\nHashing algorithm of a password.\n",
}


def test_release_notes_rank_below_the_page_that_explains(search: Search) -> None:
    found = paths(search(RELEASES, "how do I configure the hashing algorithm of a password").hits)
    assert found[0] == "guide/passwords.md"
    assert set(found) == set(RELEASES)  # lower, not lost


def test_release_notes_keep_their_rank_for_a_query_about_them(search: Search) -> None:
    assert paths(search(RELEASES, "what changed in the hashing algorithm in 2.1").hits)[0] == "releases/2.1.md"


@pytest.mark.parametrize(
    ("path", "title"),
    [
        ("CHANGELOG.md", ""),
        ("docs/release-notes/5.1.md", ""),
        ("changelog/changelog_13.rst", ""),
        ("announce/release-2.0.1.rst", "pytest 2.0.1: bug fixes"),
        ("releases/4.2.txt", "Django 4.2 release notes"),
        ("news.rst", "Release notes"),
        ("docs/whats-new.md", "What is new"),
    ],
)
def test_pages_that_are_release_notes(path: str, title: str) -> None:
    assert is_release_notes(path, title)


@pytest.mark.parametrize(
    ("path", "title"),
    [
        ("web/api/history/back/index.md", "History: back() method"),
        ("repositories/releases/about-releases.md", "About releases"),
        ("guides/migration.md", "Migration guide"),
        ("how-to/upgrade-version.txt", "How to upgrade to a newer version"),
        ("changes/tracking-changes.md", "Track changes"),
        ("status/404/index.md", "404 Not Found"),
    ],
)
def test_pages_that_are_no_release_notes(path: str, title: str) -> None:
    assert not is_release_notes(path, title)


def test_queries_that_ask_for_release_notes() -> None:
    asking = (
        "what is new in 8.3",
        "which features were removed",
        "changelog",
        "when was await introduced",
        "since 2.0",
    )
    assert all(map(asks_for_release_notes, asking))
    others = ("how do I change the password", "fill in a new form", "position fixed", "move data to another table")
    assert not any(map(asks_for_release_notes, others))


def versions(
    names: tuple[str, ...], text: str = "Slow down the crawl with a delay between two requests."
) -> dict[str, str]:
    return {f"docs/{name}/throttle.md": f"# Throttle\n\n## Slow down\n\n{text} Written for {name}.\n" for name in names}


def test_versions_of_a_section_are_one_hit_and_the_newest_is_shown(search: Search) -> None:
    files = versions(("1.9", "1.10", "2.0", "2.1-rc1")) | {"docs/faq.md": "# Questions\n\nSlow crawl? See the delay.\n"}
    page = search(files, "slow down the crawl")
    shown = page.hits[0]
    assert shown.head.id == "docs/2.0/throttle.md#throttle/slow-down"
    assert len(shown.variants) == 3
    assert not set(shown.variants) & {hit.head.id for hit in page.hits}
    assert "docs/faq.md" in paths(page.hits)


def test_a_page_without_a_version_or_a_stable_one_is_preferred(search: Search, tmp_path: Path) -> None:
    files = versions(("1.0", "9.9", "main", "stable"))
    assert search(files, "slow down the crawl").hits[0].head.document_id == "docs/stable/throttle.md"
    files = {
        "docs/throttle.md": "# Throttle\n\n## Slow down\n\nSlow down the crawl with a delay between two requests.\n"
    }
    assert search(files, "slow down the crawl").hits[0].head.document_id == "docs/throttle.md"


def test_a_version_that_the_query_names_is_shown(search: Search) -> None:
    page = search(versions(("1.0", "2.0", "3.0")), "slow down the crawl in 2.0")
    assert page.hits[0].head.document_id == "docs/2.0/throttle.md"


def test_many_versions_do_not_crowd_out_other_pages(search: Search) -> None:
    many = versions(tuple(f"1.{number}" for number in range(150)))
    rare = {f"other/{number}.md": f"# Page {number}\n\nA crawl of kind {number * 7} here.\n" for number in range(12)}
    found = paths(search(many | rare, "slow down the crawl", 13).hits)
    assert len(found) == 13
    assert sum("throttle" in path for path in found) == 1


def test_sections_with_the_same_heading_on_different_pages_stay_apart(search: Search) -> None:
    files = {
        f"status/{code}/index.md": f"---\ntitle: {code} {name}\n---\n\n## Meaning of the response\n\n{text}\n"
        for code, name, text in (
            (401, "Unauthorized", "The response says that a password is missing."),
            (403, "Forbidden", "The response says that nobody may see this page."),
            (404, "Not Found", "The response says that there is no such page."),
        )
    }
    page = search(files, "meaning of the response")
    assert {hit.head.document_id for hit in page.hits} == set(files)
    assert not any(hit.variants for hit in page.hits)


def test_versions_whose_text_differs_under_titles_with_numbers_stay_apart(search: Search) -> None:
    texts = (
        "Cookies carry a signature now and their lifetime is set per view.",
        "Sessions of anonymous visitors move.",
    )
    files = {
        f"notes/{number}.md": f"# Framework {number}\n\n## Security\n\n{text}\n"
        for number, text in zip(("4.1", "4.2"), texts, strict=True)
    }
    assert len(search(files, "security of cookies and sessions").hits) == 2


def test_copies_of_a_section_are_one_hit(search: Search) -> None:
    text = "# Limits\n\nA key may send one hundred requests a minute, and waits afterwards until the minute is over.\n"
    other = "# Limits\n\nA key opens as many connections as its plan says, and idle ones are closed after an hour.\n"
    files = {"cloud/api/limits.md": text, "server/limits.md": text, "storage/deep/down/limits.md": other}
    hits = search(files, "limits of a key").hits
    assert sorted(path for hit in hits for path in (hit.head.id, *hit.variants)) == [
        f"{path}#_preamble" for path in files
    ]
    assert len(hits) == 2


def test_an_answer_in_a_long_section_is_found(search: Search) -> None:
    answer = "Connections that idle too long are recycled by the pool."
    files = {"engine.md": f"# Engine\n\n{FILLER}\n\n{answer}\n\n{FILLER}\n"}
    files |= {f"{number}.md": f"# Idle {number}\n\nThe pool is closed today. Recycled paper.\n" for number in range(5)}
    page = search(files, "are idle connections recycled by the pool when they wait too long")
    assert page.hits[0].head.document_id == "engine.md"
    assert paths(page.hits).count("engine.md") == 1


def test_stretches_of_long_sections_are_not_counted_as_chunks(tmp_path: Path) -> None:
    (tmp_path / ".docs-mcp.json").write_text('{"version":"1","metadata":{"kind":"guide"}}')
    (tmp_path / "a.md").write_text(f"# A\n\n{FILLER}\n")
    build(tmp_path, tmp_path / "index")
    with closing(DocsCorpus(tmp_path / "index")) as corpus:
        corpus.verify()
        assert corpus.problem is None
        assert corpus.chunk_count == 1
        assert corpus.facets == {"kind": {"guide": 1}}
        assert corpus.count_facets("subject", {}) == {"kind": {"guide": 1}}
        assert len(corpus.search("subject of the page", {"kind": "guide"}).hits) == 1


def test_a_misspelt_identifier_is_corrected(search: Search) -> None:
    files = {
        "io.md": "# Files\n\nLoad a table with read_parquet(path).\n",
        "read.md": "# Reading\n\nRead this first.\n",
    }
    page = search(files, "read_parqet")
    assert page.hits[0].head.document_id == "io.md"
    assert page.hint is not None
    assert "'read_parqet'" in page.hint.message
    assert "'read_parquet'" in page.hint.message
    assert page.next_cursor is None


def test_an_identifier_that_the_corpus_has_is_not_corrected(search: Search) -> None:
    files = {"io.md": "# Files\n\nread_parquet and read_parquets differ, client.readTable too.\n"}
    assert search(files, "read_parquet").hint is None
    assert search({}, "readTable").hint is None
