"""A plain text, or a part of a long one: its sections to read, or its lines as they are stored."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from markupsafe import Markup

from bedstone.services.text_sections import Section, split_sections
from bedstone.web.frame import CHARACTERS_PER_TOKEN
from bedstone.web.knowledge_file.plain_text import MAX_FOUND, MarkedText, Span, find_spans, make_finder, render_plain
from bedstone.web.rich_text.writer import Finder

PAGE_CHARACTERS = 30_000  # with their markup they stay below 150 kB
MAX_OUTLINE = 60
MAX_LEVEL = 6
EMPTY = Markup("")
# Ids of the page itself, which sections must not have.
OWN_IDS = re.compile(r"content|menu|find|outline|text|answer|copy|palette|jump.*|nav-.*|found-.*")
MARKDOWN_SUFFIXES = (".md", ".markdown")


@dataclass(frozen=True)
class Place:
    """What to show of a long text: a page, the page of a section, or of a match; counted from 1, 0 for none."""

    page: int = 0
    section: str = ""
    match: int = 0


@dataclass(frozen=True)
class SectionView:
    """A section as the page shows it; `heading` is empty if its title is only its first words."""

    id: str
    title: str
    level: int
    tokens: int
    is_here: bool
    heading: Markup = EMPTY
    text: Markup = EMPTY


@dataclass(frozen=True)
class TextView:
    """The part of a text that a page shows, the matches in all of it, and where its sections are."""

    page: int
    pages: int
    sections: Sequence[SectionView]
    outline: Sequence[SectionView]
    section_count: int
    numbers: str  # of the lines that are shown, one per line
    stored: Markup
    lines: int
    found: int
    current: int  # number of the current match; 0 if nothing was found
    start: int
    end: int

    @property
    def has_more_found(self) -> bool:
        """Whether there are more matches than were counted."""
        return self.found >= MAX_FOUND


def read_text(name: str, text: str, query: str, place: Place, *, is_stored: bool) -> TextView:
    """Return the part of a text that was asked for; the words of the query are marked in it."""
    sections = split_sections(text)
    edges = _page_edges(text, sections)
    found = find_spans(text, query) if query else ()
    page, current = _choose(place, sections, edges, found)
    start, end = edges[page - 1], edges[page]
    shown = [section for section in sections if start <= section.start < end]
    marked = MarkedText(text, found, current)
    is_markdown = not is_stored and _is_markdown(name, text)
    views = [] if is_stored else _section_views(marked, shown, is_markdown=is_markdown, query=query)
    first_line = text.count("\n", 0, start) + 1
    return TextView(
        page=page,
        pages=len(edges) - 1,
        sections=views,
        outline=_outline(sections, shown),
        section_count=len(sections),
        numbers="\n".join(map(str, range(first_line, first_line + text.count("\n", start, end) + 1)))
        if is_stored
        else "",
        stored=_stored_lines(marked, shown, start, end) if is_stored else Markup(""),
        lines=text.count("\n") + (0 if text.endswith("\n") or not text else 1),
        found=len(found),
        current=current,
        start=start,
        end=end,
    )


def _page_edges(text: str, sections: Sequence[Section]) -> list[int]:
    """Return where the pages of a text begin, and where it ends; a page is cut between sections."""
    edges = [0]
    for section in sections:
        if section.end - edges[-1] > PAGE_CHARACTERS and section.start > edges[-1]:
            edges.append(section.start)
    return [*edges, len(text)]


def _choose(place: Place, sections: Sequence[Section], edges: Sequence[int], found: Sequence[Span]) -> tuple[int, int]:
    """Return the page to show and the number of the current match."""
    last = len(edges) - 1
    named = (
        next((section for section in sections if element_id(section) == place.section), None) if place.section else None
    )
    if 0 < place.match <= len(found):
        return _page_of(found[place.match - 1][0], edges), place.match
    if named is not None:
        page, start = _page_of(named.start, edges), named.start
    elif place.page:
        page = min(place.page, last)
        start = edges[page - 1]
    else:
        page, start = (_page_of(found[0][0], edges) if found else 1), 0
    after = next((number for number, (begin, _) in enumerate(found, start=1) if begin >= start), len(found))
    return page, after


def _page_of(position: int, edges: Sequence[int]) -> int:
    return max(1, min(bisect_right(edges, position), len(edges) - 1))


def element_id(section: Section) -> str:
    """Return the id of a section on the page."""
    return f"section-{section.anchor}" if OWN_IDS.fullmatch(section.anchor) else section.anchor


def _outline(sections: Sequence[Section], shown: Sequence[Section]) -> list[SectionView]:
    """Return the sections of a text, or of a long one those that are shown."""
    here = {section.anchor for section in shown}
    listed = sections if len(sections) <= MAX_OUTLINE else shown[:MAX_OUTLINE]
    return [
        SectionView(element_id(section), section.title, section.level, _tokens(section), is_here=section.anchor in here)
        for section in listed
    ]


def _tokens(section: Section) -> int:
    return -(-(section.end - section.start) // CHARACTERS_PER_TOKEN)


def _section_views(marked: MarkedText, shown: Sequence[Section], *, is_markdown: bool, query: str) -> list[SectionView]:
    levels: list[int] = []
    views = []
    finder = make_finder(marked.text, query) if query else None
    number = sum(start < shown[0].start for start, _ in marked.found) if shown else 0
    for section in shown:
        levels = [*(level for level in levels if level < section.level), section.level]
        level = min(MAX_LEVEL, 1 + len(levels))
        heading = EMPTY if is_markdown else _heading(marked, section)
        if is_markdown:
            rich = _markdown(marked.text[section.start : section.end], section, level, finder)
            text, number = _number_marks(rich, number, marked.current)
        else:
            text = render_plain(marked, section.body, section.end)
        views.append(SectionView(element_id(section), section.title, level, _tokens(section), True, heading, text))
    return views


def _heading(marked: MarkedText, section: Section) -> Markup:
    place = marked.text.find(section.title, section.start, section.body)
    return marked.write(place, place + len(section.title)) if place >= 0 else Markup("")


def _markdown(text: str, section: Section, level: int, finder: Finder | None) -> Markup:
    from bedstone.web.rich_text.rendering import render_markdown  # noqa: PLC0415 - loads the engine

    anchor = element_id(section)
    return render_markdown(text, marks=finder, min_level=level, prefix=f"{anchor}/", anchor=anchor)


def _number_marks(markup: Markup, before: int, current: int) -> tuple[Markup, int]:
    """Give each mark of sanitised rich text its number; no other text or attribute can look like a mark."""
    pieces = str(markup).split("<mark>")
    parts = [pieces[0]]
    for number, piece in enumerate(pieces[1:], start=before + 1):
        chosen = ' aria-current="true"' if number == current else ""
        parts.append(f'<mark id="found-{number}"{chosen}>{piece}')
    return Markup("".join(parts)), before + len(pieces) - 1  # noqa: S704 - it was safe before


@lru_cache(maxsize=1)
def _is_markdown(name: str, text: str) -> bool:
    from bedstone.ingest.text_markup import detect_markup  # noqa: PLC0415 - loads a parser

    return name.lower().endswith(MARKDOWN_SUFFIXES) or detect_markup(text) == "markdown"


def _stored_lines(marked: MarkedText, shown: Sequence[Section], start: int, end: int) -> Markup:
    """Return the lines as they are, with a place to jump to where each section begins."""
    parts: list[Markup] = []
    for section in shown:
        parts += [marked.write(start, section.start), Markup('<span id="{}"></span>').format(element_id(section))]
        start = section.start
    return Markup("").join([*parts, marked.write(start, end)])
