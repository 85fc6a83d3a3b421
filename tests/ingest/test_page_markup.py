"""Pages as people read them: markup of site generators is hidden, text that looks like it stays."""

import pytest

from bedstone.ingest.chunking.by_heading import Strategy, chunk_blocks
from bedstone.ingest.page_markup import page_blocks


def plain(source: str, *, is_mdx: bool = False) -> str:
    return "\n".join(block.plain for block in page_blocks(source, is_mdx=is_mdx) if block.plain)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("## Install {#install-it}", "Install"),
        ("## Install {/* #install */}", "Install"),
        ("## Install {/*install*/}", "Install"),
        ("## Install {: #install .no_toc }", "Install"),
        ("## Install { #install data-toc-label='x' } ##", "Install"),
        ("Install {#install}\n----------\n", "Install"),
        ('See [the guide]({{< relref "guide_one.md" >}}).', "See the guide."),
        ("See [the guide]({% link _docs/guide.md %}) and [more]({{ site.baseurl }}/more).", "See the guide and more."),
        ("[guide]: {{< ref a >}}\n\nSee [guide].", "See guide."),
        ('{{< youtube id="x" >}}\n\nText {{%expand%}}inside{{% /expand %}}.', "Text inside."),
        ("Text {{<tabs>}} and more.", "Text and more."),
        ('A {{< glossary_tooltip text="node" term_id="node" >}} runs.', "A node runs."),
        ('A {{< glossary_tooltip term_id="daemonset" >}} runs.', "A daemonset runs."),
        ('## {{% heading "whatsnext" %}}', "whatsnext"),
        ("{% ifversion ghes %}Only there.{% else %}Here.{% endif %}", "Only there.Here."),
        ('{% include note.html content="x" %}\n\nText.', "Text."),
        ("Use {% raw %}{{ name }}{% endraw %} here.", "Use {{ name }} here."),
        ("import Tabs from '@theme/Tabs';\nimport {\n  A,\n  B,\n} from './x';\n\n# Title", "Title"),
        (":::note\nText.\n:::", "note\nText."),
        (":::tip[A title]\nText.\n:::", "A title\nText."),
        ("::: details Click me\nText.\n:::", "Click me\nText."),
        (":::{warning}\nText.\n:::", "warning\nText."),
        ('!!! note "A title"\n    Text.', "A title\nText."),
        ("> [!NOTE]\n> Text.", "NOTE\nText."),
        ("(a-label)=\n# Title", "Title"),
        ("See {ref}`the text <a-label>` and {py:func}`os.walk`.", "See the text and os.walk."),
    ],
)
def test_markup_of_generators_is_not_shown(source: str, text: str) -> None:
    assert plain(source) == text


@pytest.mark.parametrize(
    "source",
    [
        "## {#if ...}",
        "## {#each expression as name}",
        "## {#key}",
        "## Logic with {#if}",
        "## Path segments as a list: {/name*}",
        "The tag {% if user %} tests a value, and {% include 'a.html' %} loads a template.",
        "{% for item in items %}\n{{ item }}\n{% endfor %}",
        "A set {a, b} and {braces}, f'{name}' and ${HOME}.",
        "import the module from the package 'x' as described",
        "export your data before Friday",
        "The value is :: and ::: is not a marker",
        "Was it !!! note or ??? note",
        "(see below)= is odd",
        "Liquid has {{ page.title }} and {{ 1 | plus: 2 }}.",
    ],
)
def test_text_that_looks_like_markup_stays(source: str) -> None:
    assert plain(source) == source.removeprefix("## ")


CODE = """:::note
import Tabs from '@theme/Tabs'
{{< relref "x" >}}
{% link x.md %}
# Title {#id}
{ref}`text <target>`
"""


@pytest.mark.parametrize("fence", ["```\n{}```\n", "~~~mdx\n{}~~~\n", "- item\n\n  ```\n  {}\n  ```\n"])
def test_code_is_never_touched(fence: str) -> None:
    source = fence.replace("{}", CODE if not fence.startswith("-") else CODE.strip().replace("\n", "\n  "))
    assert CODE.strip() in plain(source, is_mdx=True)


def test_inline_and_indented_code_is_never_touched() -> None:
    assert plain('`{{< relref "x" >}}` and `{% link x %}`') == '{{< relref "x" >}} and {% link x %}'
    assert plain("Text:\n\n    import x from 'y'\n    {{< a >}}") == "Text:\nimport x from 'y'\n{{< a >}}"
    assert plain("## `{#if ...}` {#if-block}") == "{#if ...}"


def test_code_of_mdx_pages_is_not_text() -> None:
    source = "export const meta = {\n  a: 1,\n};\n\n{/* a comment\nin two lines */}\n\n# Title\n\nexport your data\n"
    assert plain(source, is_mdx=True) == "Title\nexport your data"


def test_ids_and_source_stay_as_they_were() -> None:
    source = "import A from 'a';\n\n# Über {#top}\n\n## Set up {#set-up-id}\n\n:::tip\nText.\n:::\n"
    _, chunks = chunk_blocks("a.mdx", source, page_blocks(source), Strategy(), title="Page", facets={})
    assert [chunk.id for chunk in chunks] == ["a.mdx#_preamble", "a.mdx#ber-top/set-up-set-up-id"]
    assert [chunk.breadcrumb for chunk in chunks] == [("Page",), ("Page", "Über", "Set up")]
    assert "".join(chunk.text for chunk in chunks).replace("\n", "") == source.replace("\n", "")


@pytest.mark.parametrize(
    ("title", "breadcrumb"),
    [
        ("Guide", ("Guide", "Set up")),
        ("guide", ("Guide", "Set up")),
        ("Guide | Acme docs", ("Guide", "Set up")),
        ("Acme", ("Acme", "Guide", "Set up")),
        ("", ("Guide", "Set up")),
    ],
)
def test_the_title_of_a_page_leads_its_breadcrumbs(title: str, breadcrumb: tuple[str, ...]) -> None:
    source = "# Guide\n\n## Set up\n\nText.\n"
    _, chunks = chunk_blocks("a.md", source, page_blocks(source), Strategy(), title=title, facets={})
    assert (chunks[-1].id, chunks[-1].breadcrumb) == ("a.md#guide/set-up", breadcrumb)


def test_a_heading_is_only_above_its_own_sections() -> None:
    source = "# One\n\n## A\n\nText.\n\n# Two\n\n## B\n\nText.\n"
    _, chunks = chunk_blocks("a.md", source, page_blocks(source), Strategy(), title="", facets={})
    assert [chunk.breadcrumb for chunk in chunks] == [("One",), ("One", "A"), ("Two", "B")]


def test_a_long_page_of_markup_takes_no_time() -> None:
    hostile = [
        "{" * 20_000,
        "[x](" * 10_000,
        "## a" + " " * 50_000,
        "{{<" * 10_000,
        "import {" * 5_000,
        "```x\n" * 9_000,
    ]
    assert [len(page_blocks(f"{text}\n\n## A {{#b}}\n", is_mdx=True)) > 0 for text in hostile] == [True] * len(hostile)
