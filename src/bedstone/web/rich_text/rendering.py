"""Show text that others wrote: Markdown and HTML as rich text that can do nothing but be read.

The source is read tag by tag and written anew: known tags only, never deeper than a limit, with the page's own
headings, links and tables. nh3 then parses the result as a browser does and removes everything that is not on its list.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from markupsafe import Markup

from bedstone.web.rich_text.markup import tokens
from bedstone.web.rich_text.writer import HEADINGS, OUTSIDE, TAGS, Finder, RichTextWriter

if TYPE_CHECKING:
    import nh3

MAX_CHARACTERS = 200_000  # of the source; pages show a window of longer texts
MAX_MARKUP = 600_000  # of what is written, which may be longer than the source
Link = Callable[[str], str | None]
CLASSES = {
    "a": {"anchor"},
    "button": {"btn", "tight", "only-icon"},
    "div": {"code", "footnote", "scroll"},
    "p": {"cut"},
    "span": {"image"},
    "table": {"table", "to-cards"},
    "td": {"right", "whole"},
    "th": {"right"},
}
DIRECTIONS = {"dir": {"ltr", "rtl", "auto"}}
VALUES: dict[str, dict[str, set[str]]] = {
    "a": {"rel": {OUTSIDE}},
    "button": {"type": {"button"}, "data-copy": {""}, "aria-label": {"Copy"}},
    "div": {"role": {"region"}, "tabindex": {"0"}, "aria-label": {"Table"}} | DIRECTIONS,
    "pre": {"tabindex": {"0"}},
    "span": {"role": {"img"}, "aria-label": {"Done", "To do"}} | DIRECTIONS,
    **dict.fromkeys(("p", "ul", "ol", "li", "blockquote", "td", "th", *HEADINGS), DIRECTIONS),
}
ATTRIBUTES = {
    "a": {"href", "aria-label"},
    "abbr": {"title"},
    "details": {"open"},
    "ol": {"start"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan"},
}


def render_markdown(
    text: str,
    *,
    marks: Finder | None = None,
    link: Link | None = None,
    min_level: int = 2,
    prefix: str = "",
    anchor: str = "",
) -> Markup:
    """Return Markdown as safe rich text; its front matter is left out.

    `marks` finds the words to mark. `link` turns a relative address into one of this server; a link without one becomes
    text. `min_level` is the highest level of a heading. `prefix` begins the ids of headings; without it they have none.
    `anchor` is the id of what the page shows the text in: the first heading has a link to it and no id of its own.
    """
    import pyromark  # noqa: PLC0415 - pages without rich text do not need it

    from bedstone.ingest.markdown import FRONT_MATTER, OPTIONS  # noqa: PLC0415

    body = FRONT_MATTER.sub("", _clean(text[:MAX_CHARACTERS]), count=1)
    html = pyromark.html(body, options=OPTIONS)
    return _render(html, RichTextWriter(marks, link, min_level, prefix, anchor), prefix, len(text))


def render_html(
    html: str, *, marks: Finder | None = None, link: Link | None = None, min_level: int = 2, prefix: str = ""
) -> Markup:
    """Return HTML as safe rich text; the arguments are those of `render_markdown`."""
    writer = RichTextWriter(marks, link, min_level, prefix)
    return _render(_clean(html[:MAX_CHARACTERS]), writer, prefix, len(html))


def _render(html: str, writer: RichTextWriter, prefix: str, length: int) -> Markup:
    is_cut = length > MAX_CHARACTERS or len(html) > MAX_MARKUP
    for token in tokens(html[:MAX_MARKUP]):
        if writer.size > MAX_MARKUP:
            is_cut = True
            break
        writer.write(token)
    writer.end_all()
    if is_cut:
        writer.write_note(f"Shown up to here: the text is too long to show whole ({length:,} characters).")
    return Markup(_cleaner(prefix).clean(writer.markup()))  # noqa: S704 - this is what nh3 is for


def _clean(text: str) -> str:
    """Replace what no parser accepts: halves of characters, and the character 0."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


@lru_cache(maxsize=64)
def _cleaner(prefix: str) -> "nh3.Cleaner":
    import nh3  # noqa: PLC0415 - pages without rich text do not need it

    ids = {tag: {"id"} for tag in ("div", *HEADINGS)} if prefix else {}
    attributes = {tag: ATTRIBUTES.get(tag, set()) | ids.get(tag, set()) for tag in (*ATTRIBUTES, *ids)}
    return nh3.Cleaner(
        tags=set(TAGS),
        attributes=attributes,
        tag_attribute_values=VALUES,
        allowed_classes=CLASSES,
        link_rel=None,
        url_schemes={"http", "https", "mailto"},
        id_prefix=prefix or None,
    )
