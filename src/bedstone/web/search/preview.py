"""The chosen search result in its source: a picture of its page, or its text with the words marked."""

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from markupsafe import Markup

from bedstone.errors import BedstoneError
from bedstone.search.hits import Snippet
from bedstone.web.formatting import highlight
from bedstone.web.frame import Pages

if TYPE_CHECKING:
    from bedstone.services.catalog import FetchedText
    from bedstone.services.everything.folding import Hit
    from bedstone.services.everything.service import Everything

MAX_CHARACTERS = 6_000  # of the text that is shown
CONTEXT_CHARACTERS = 300  # before the passage


@dataclass(frozen=True)
class Preview:
    """What is shown beside the list; `text` is rich text, `problem` says why it is missing."""

    text: str = ""
    picture: str = ""
    marks: str = ""
    problem: str = ""
    agent_address: str = ""


async def render_preview(pages: Pages, hit: "Hit", query: str) -> Preview:
    """Return the passage of a hit with what stands around it."""
    item = hit.item
    agent_address = f"/tools/fetch?{urlencode({'id': item.id})}" if "everything" in pages.toolsets else ""
    if item.picture:
        return Preview(picture=item.picture, marks=item.marks, agent_address=agent_address)
    everything: Everything = await pages.services["everything"].open()
    try:
        fetched = await everything.fetch(item.id)
    except BedstoneError as error:  # removed meanwhile, or a source of another package that cannot be read
        return Preview(problem=error.message if not item.text else "", text=_mark(item.text, query))
    show = _render if fetched.is_markdown else _mark
    return Preview(show(_around_passage(fetched, hit), query), agent_address=agent_address)


def _around_passage(fetched: "FetchedText", hit: "Hit") -> str:
    """Return the part of a text with the passage, from the beginning of a line."""
    span = hit.item.span or (fetched.start, fetched.start)
    start = max(0, span[0] - fetched.start - CONTEXT_CHARACTERS)
    start = fetched.text.find("\n", start) + 1 if start else 0
    return fetched.text[start : start + MAX_CHARACTERS]


def _mark(text: str, query: str) -> Markup:
    """Return plain text with the words of a query marked, its lines kept."""
    from bedstone.search.matching import Matcher  # noqa: PLC0415 - with the engine

    spans = tuple((start, end) for start, end, _ in Matcher(query).find(text))
    return Markup('<div class="plain">{}</div>').format(highlight(Snippet(text, spans)))


def _render(text: str, query: str) -> Markup:
    from bedstone.search.matching import Matcher  # noqa: PLC0415 - with the engine
    from bedstone.web.rich_text.rendering import render_markdown  # noqa: PLC0415

    return render_markdown(text, marks=Matcher(query), min_level=3)
