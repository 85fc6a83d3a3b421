"""Make questions from a corpus itself: from its headings, and from the texts of links between its documents."""

import posixpath
import random
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import unquote

from bedstone.records import StoredChunk
from bedstone.search.terms import WORD, stop_terms, terms_of_word
from bedstone.store.engine import Store

Origin = Literal["heading", "link"]

LINK = re.compile(r"(?<!!)\[([^\[\]\n]{3,120})\]\(([^()\s]+)\)")
MARKUP = re.compile(r"[`*_]+")
MIN_WORDS = 2  # that are not stop words: shorter texts name too many documents
MAX_WORDS = 12
PAGE_ENDINGS = ("", ".md", ".mdx", ".markdown", ".rst", ".html", "/index.md", "/README.md")
SEED = 7


@dataclass(frozen=True)
class MadeQuestion:
    """A question, the document that answers it, and the documents that merely repeat its words."""

    query: str
    document: str
    origin: Origin
    repeated_in: frozenset[str] = field(default_factory=frozenset)


def make_questions(
    store: Store, limit: int, is_quotation: Callable[[str], bool], on_progress: Callable[[int], None] = lambda _: None
) -> list[MadeQuestion]:
    """Return up to `limit` questions, of as many documents as possible, half of them from links.

    Texts that name several documents are left out, and those that search takes as quotations: no setting changes what
    it finds for them.
    """
    names = {document.id for document in store.documents(limit=2**31)}
    headings: dict[str, set[str]] = defaultdict(set)
    links: dict[str, set[str]] = defaultdict(set)
    linking: dict[str, set[str]] = defaultdict(set)
    for number, stored in enumerate(store.chunks_between(0, 2**62)):
        if text := _heading_question(stored):
            headings[text].add(stored.head.document_id)
        for text, target in _links(stored, names):
            links[text].add(target)
            linking[text].add(stored.head.document_id)
        if number % 100 == 0:
            on_progress(100)
    usable = [MadeQuestion(text, min(found), "heading") for text, found in headings.items() if len(found) == 1]
    linked = [
        MadeQuestion(text, min(found), "link", frozenset(linking[text]))
        for text, found in links.items()
        if len(found) == 1 and text not in headings
    ]
    chosen = _spread(linked, limit // 2, is_quotation)
    return chosen + _spread(usable, limit - len(chosen), is_quotation)


def _heading_question(stored: StoredChunk) -> str | None:
    """Return the heading of a section with the title of its page, as a person would ask for both."""
    head = stored.head
    heading, title = head.heading, head.breadcrumb[0] if head.breadcrumb else ""
    words = _words(heading)
    if not stored.plain.strip() or len(head.breadcrumb) < 2 or not words:  # noqa: PLR2004 - a title and a heading
        return None
    known = {word.lower() for word in words}
    return _question([*words, *(word for word in _words(title) if word.lower() not in known)])


def _links(stored: StoredChunk, names: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the texts of links to other documents, with the documents."""
    for text, address in LINK.findall(stored.text):
        target = _resolve(address, stored.head.document_id, names)
        if target and target != stored.head.document_id and (question := _question(_words(text))):
            yield question, target


def _resolve(address: str, source: str, names: Collection[str]) -> str | None:
    path = unquote(address.partition("#")[0].partition("?")[0])
    if not path or ":" in path:
        return None
    folder = "" if path.startswith("/") else posixpath.dirname(source)
    plain = posixpath.normpath(posixpath.join(folder, path.lstrip("/")))
    return next((plain + ending for ending in PAGE_ENDINGS if plain + ending in names), None)


def _words(text: str) -> list[str]:
    return WORD.findall(MARKUP.sub("", text))


def _question(words: Sequence[str]) -> str | None:
    telling = [word for word in words if not stop_terms().issuperset(terms_of_word(word))]
    return " ".join(words) if len(telling) >= MIN_WORDS and len(words) <= MAX_WORDS else None


def _spread(made: Sequence[MadeQuestion], count: int, is_quotation: Callable[[str], bool]) -> list[MadeQuestion]:
    """Return questions of as many documents as possible, in an order that does not depend on that of the store."""
    shuffled = sorted(made, key=lambda item: (item.query, item.document))
    random.Random(SEED).shuffle(shuffled)  # noqa: S311 - a sample, not a secret
    turns: dict[str, int] = defaultdict(int)
    order: list[tuple[int, int, MadeQuestion]] = []
    for item in shuffled:
        order.append((turns[item.document], len(order), item))
        turns[item.document] += 1
    chosen: list[MadeQuestion] = []
    for _, _, item in sorted(order, key=lambda entry: entry[:2]):
        if len(chosen) == count:
            break
        if not is_quotation(item.query):
            chosen.append(item)
    return chosen
