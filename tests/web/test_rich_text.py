"""Rich text of others: safe whatever it contains, complete, and bounded."""

import subprocess
import sys
import time

import pytest

from bedstone.search.matching import Matcher
from bedstone.web.rich_text.rendering import MAX_CHARACTERS, render_html, render_markdown
from support.payloads import MARKDOWN_PAYLOADS, PAYLOADS, check_markup, visible_text

PREFIX = "text-"
SECONDS = 5  # many times what it takes; without its bounds each takes minutes or gigabytes


def own_pages(address: str) -> str | None:
    """Return the page of a file; nothing for what is no Markdown."""
    return f"/docs/corpora/guide/{address}" if address.partition("#")[0].endswith(".md") else None


def test_the_check_notices_what_it_is_for() -> None:
    assert check_markup("<img src=x onerror=alert(1)>") == ["<img>", "<img src>", "<img onerror>"]
    assert check_markup("<a href=javascript:x id=csrf>x</a><!-- x -->")
    assert sum(not check_markup(payload) for payload in PAYLOADS) < len(PAYLOADS) / 5, "few are harmless as they are"


@pytest.mark.parametrize("payload", PAYLOADS)
def test_html_of_others_can_only_be_read(payload: str) -> None:
    for text in (payload, f"<p>before {payload} after", f"<table><tr><td>{payload}</table>", f"<ul>{payload}</ul>"):
        markup = render_html(text, prefix=PREFIX, link=own_pages, marks=Matcher("alert click evil"))
        assert check_markup(markup, PREFIX) == [], markup
        assert check_markup(render_html(text)) == []


@pytest.mark.parametrize("payload", [*PAYLOADS, *MARKDOWN_PAYLOADS])
def test_markdown_of_others_can_only_be_read(payload: str) -> None:
    for text in (payload, f"before {payload} after", f"- {payload}", f"> {payload}", f"# {payload}", f"```\n{payload}"):
        markup = render_markdown(text, prefix=PREFIX, link=own_pages, marks=Matcher("alert click evil"))
        assert check_markup(markup, PREFIX) == [], markup
        assert check_markup(render_markdown(text)) == []


@pytest.mark.parametrize("payload", PAYLOADS)
def test_what_is_safe_stays_the_same_when_it_is_read_again(payload: str) -> None:
    """A browser must not find other tags than we did: that is how scripts get past sanitisers."""
    once = visible_text(render_html(payload))
    assert visible_text(render_html(f"{render_html(payload)}")) == once


def test_a_resolver_cannot_lead_elsewhere() -> None:
    for address in ("javascript:alert(1)", "//evil.example", "/\\evil.example", "data:text/html,x", "guide.md"):
        assert "href" not in render_markdown("[x](page.md)", link={"page.md": address}.get)


def test_every_word_of_a_markdown_text_is_shown() -> None:
    markup = render_markdown(
        """# Title one

Setext two
==========

Para *three* **four** ~~five~~ `six` <kbd>seven</kbd>[^1] and [eight](https://example.org).

> nine
> > ten

1. eleven
   - twelve
     - [x] thirteen

| fourteen | fifteen |
|---|--:|
| sixteen | seventeen |

```python
eighteen < 19
```

    twenty

<details><summary>twentyone</summary>twentytwo</details>

Unknown <Tabs><Tab label="dropped">twentythree</Tab></Tabs> &amp; twentyfour 2 < 3

[^1]: twentyfive
"""
    )
    words = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
    text = visible_text(markup)
    for word in (
        *words.split(),
        "eighteen < 19",
        "twenty",
        "twentyone",
        "twentytwo",
        "twentythree",
        "& twentyfour 2 < 3",
    ):
        assert word in text, word
    assert "twentyfive" in text


def test_every_word_of_an_html_text_is_shown_but_scripts_styles_and_comments() -> None:
    markup = render_html(
        "<title>one</title><body><center>two<font color=red>three</font></center><p>four<p>five<ul><li>six<li>seven"
        "</ul><dl><dt>eight<dd>nine</dl><table><caption>ten<tr><th>eleven<td>twelve<tr><td>thirteen</table>fourteen"
        "<form><label>fifteen<input value=dropped></label><button>sixteen</button><select><option>seventeen</select>"
        "</form><textarea>eighteen</textarea><svg><text>nineteen</text></svg><math><mi>twenty</mi></math>"
        "<b>1 < 2 & 3 &amp; 4</b>"
        "<script>no</script><style>no</style><!-- no --><object>twentyone</object><noscript>twentytwo</noscript>"
        "<section><article>twentythree</article></section><a name=x>twentyfour</a><unknown>twentyfive</unknown>"
    )
    text = visible_text(markup)
    found = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
    later = "eighteen nineteen twenty twentyone twentytwo twentythree twentyfour twentyfive"
    assert [word for word in (*found.split(), *later.split()) if word not in text] == []
    assert "1 < 2 & 3 & 4" in text
    assert "no " not in f"{text} "


def test_headings_begin_below_the_page_title_and_skip_no_level() -> None:
    markup = render_html("<h3>a</h3><h6>b</h6><h1>c</h1><h4>d</h4><h4>e</h4><h5>f</h5><h2>g</h2>", prefix=PREFIX)
    order = [markup[markup.index(f' id="text-{name}"') - 1] for name in "abcdefg"]
    assert order == ["2", "3", "2", "3", "3", "4", "3"]
    assert '<h4 id="text-x">' in render_markdown("# x", min_level=4, prefix=PREFIX)
    assert "<h6>" in render_markdown("# a\n## b\n### c\n#### d", min_level=6)


def test_headings_have_ids_with_the_prefix_and_a_link_to_themselves() -> None:
    markup = render_markdown("# Rate limits\n\n# Rate *limits*\n\n# \u65e5\u672c\n\n# <b></b>\n", prefix=PREFIX)
    assert '<h2 id="text-rate-limits">Rate limits <a class="anchor" href="#text-rate-limits"' in markup
    assert 'id="text-rate-limits-2"' in markup
    assert 'aria-label="Link to Rate limits"' in markup
    assert 'id="text-\u65e5\u672c"' in markup
    assert markup.count("<h2") == 3, "a heading without a text is none"
    assert " id=" not in render_markdown("# Rate limits\n\n[^1]\n\n[^1]: x")


def test_links_lead_outside_without_a_trace_and_inside_through_the_resolver() -> None:
    markup = render_markdown(
        "[a](https://example.org/?a=1&b=2) [b](mailto:x@example.org) [c](other.md#part) [d](image.png) [e](#part)"
        " [f](//example.org) <https://example.com> [g](page.md)",
        link=own_pages,
    )
    outside = ' rel="noopener noreferrer nofollow"'
    for address in (
        "https://example.org/?a=1&amp;b=2",
        "mailto:x@example.org",
        "https://example.org",
        "https://example.com",
    ):
        assert f'<a href="{address}"{outside}>' in markup
    assert '<a href="/docs/corpora/guide/other.md#part">c</a>' in markup
    assert "d e" in visible_text(markup)
    assert markup.count("<a ") == 6
    assert "<a" not in render_markdown("[c](other.md) [](https://example.org)"), "no resolver, or nothing to read"


def test_footnotes_lead_to_their_notes() -> None:
    markup = render_markdown("text[^a]\n\n[^a]: the note", prefix=PREFIX)
    assert '<sup><a href="#text-note-a">1</a></sup>' in markup
    assert '<div class="footnote" id="text-note-a">' in markup


def test_images_are_named_and_not_loaded() -> None:
    markup = render_markdown("![a bike](https://example.org/bike.png) ![](pictures/wheel%20one.png?x=1) ![](data:x)")
    assert visible_text(markup) == "Image: a bike Image: wheel one.png Image"
    assert "example.org" not in markup


def test_tables_and_code_scroll_in_themselves_and_code_can_be_copied() -> None:
    markup = render_markdown("| a | b |\n|---|--:|\n| 1 | 2 |\n\n```sh\nbedstone serve\n```\n")
    assert '<div class="scroll" role="region" tabindex="0" aria-label="Table"><table class="table to-cards">' in markup
    assert '<td class="right whole">2</td>' in markup
    wide = render_markdown("| a | b | c | d |\n|---|---|---|---|\n| 1 | 2 | 3 | 4 |\n")
    assert '<table class="table">' in wide, "cards of many cells without their heads say nothing"
    assert '<div class="code"><pre tabindex="0"><code>bedstone serve' in markup
    assert (
        '</pre><button class="btn tight only-icon" type="button" data-copy="" aria-label="Copy"></button></div>'
        in markup
    )
    nested = render_html("<table><tr><td><table><tr><td>x</table></table>")
    assert nested.count("scroll") == 1


def test_lists_hold_items_only_and_items_stand_in_lists() -> None:
    markup = render_html("<ul>loose<ul><li>inner</ul></ul><li>stray</li><dl><p>loose</p></dl><dt>stray</dt>")
    assert "<ul><li>loose<ul><li>inner</li></ul></li></ul>" in markup
    assert "<div>stray</div>" in markup
    assert "<dl><dd><p>loose</p></dd></dl>" in markup


def test_words_are_marked_in_texts_only() -> None:
    markup = render_markdown(
        "Retry the **retries** of `retry` [retries](https://retry.example/retry).", marks=Matcher("retry")
    )
    assert visible_text(markup) == "Retry the retries of retry retries."
    assert "<mark>Retry</mark>" in markup
    assert 'href="https://retry.example/retry"' in markup
    assert "<code><mark>retry</mark></code>" in markup
    assert "<mark>&lt;script&gt;" not in render_html("&lt;script&gt;", marks=Matcher("script"))
    assert "&lt;<mark>script</mark>&gt;" in render_html("&lt;script&gt;", marks=Matcher("script"))
    assert "<mark>\u691c\u7d22</mark>" in render_html(
        "\u5168\u6587\u691c\u7d22\u3067\u3059", marks=Matcher("\u691c\u7d22")
    )
    assert "<mark>" not in render_html("<mark>mine</mark>"), "only words that were looked for are marked"


def test_front_matter_is_left_out() -> None:
    assert visible_text(render_markdown("---\ntitle: Hidden\n---\n\nShown.")) == "Shown."


@pytest.mark.parametrize(
    "html",
    [
        "<div>" * 100_000 + "deep",
        "<p>" + "".join(f"<font x={number}>" for number in range(5_000)) + "<p>x" * 5_000,
        "<b><i><u><s><em><strong><small><code>" + "<p>x" * 50_000,
        "<table><tr><td>" * 30_000,
        "<ul><li>" * 30_000,
        "<h2>a" * 50_000,
        "<" * 200_000,
        "<a " * 100_000,
        '<a "' * 50_000,
        "<!--" * 50_000,
        "<title>" * 50_000,
        "&#x" * 70_000,
        "<a href=x>" * 20_000 + "</a>" * 20_000,
        "x " * 5_000_000,
    ],
    ids=lambda text: text[:12],
)
def test_hostile_sizes_cost_little(html: str) -> None:
    for render in (render_html, render_markdown):
        started = time.process_time()
        markup = render(html, prefix=PREFIX, marks=Matcher("x"))
        assert time.process_time() - started < SECONDS
        assert len(markup) < 3_000_000


def test_nested_quotations_keep_their_text() -> None:
    assert "deep" in visible_text(render_markdown(">" * 3_000 + "deep"))
    assert "deep" in visible_text(render_html("<div>" * 20_000 + "deep"))


def test_a_text_that_is_too_long_says_where_it_ends() -> None:
    markup = render_markdown("word " * MAX_CHARACTERS)
    assert "Shown up to here: the text is too long to show whole (1,000,000 characters)." in markup
    assert "Shown up to here" not in render_markdown("word")


def test_pages_do_not_load_the_sanitiser_before_they_need_it() -> None:
    check = "import sys, bedstone.web.rich_text.rendering; print({'nh3', 'lxml', 'pyromark'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
