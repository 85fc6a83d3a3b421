"""Describe a corpus in one line, from its README, its folders and the titles of its pages."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import PurePosixPath

from bedstone.ingest.markdown import markdown_blocks
from bedstone.services.docs.metadata import DEFAULT_DESCRIPTION
from bedstone.store.engine import Store

FIRST_PAGES = ("readme", "index", "_index")
# A title that says nothing about the subject.
GENERIC_TITLE = re.compile(
    r"(?:|readme|index|home|overview|introduction|welcome|documentation|docs|getting started|table of contents)",
    re.IGNORECASE,
)
NAMES_DOCUMENTATION = re.compile(
    r"\b(?:docs?|documentation|guides?|manual|handbook|reference|tutorial|wiki)\b", re.IGNORECASE
)
ORDER_PREFIX = re.compile(r"^\d+[-_. ]+")
SENTENCE = re.compile(r"(.+?[.!?])(?=\s|$)")
UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
MIN_SUMMARY_WORDS = 4
MAX_TOPICS = 6
MAX_NAME = 60  # characters
MAX_SUMMARY = 140  # characters
MAX_TOPIC = 40  # characters


def describe(store: Store) -> str:
    """Return what the documents are about: the same for the same documents."""
    titles = store.titles()
    folder = _common_folder(titles)
    first_page = _first_page(titles, folder)
    name = _shorten(titles.get(first_page, ""), MAX_NAME)
    if GENERIC_TITLE.fullmatch(name):
        name = ""
    summary = _shorten(_summary(store, first_page), MAX_SUMMARY) if first_page else ""
    topics = [_shorten(topic, MAX_TOPIC) for topic in islice(_topics(store, titles, folder, first_page), MAX_TOPICS)]
    if not (name or summary or topics):
        return DEFAULT_DESCRIPTION
    subject = name if NAMES_DOCUMENTATION.search(name) else f"{name} documentation".strip()
    listed = f" (topics: {', '.join(topics)})" if topics else ""
    return f"{subject}{f': {summary}' if summary else ''}{listed}"


def _common_folder(titles: Mapping[str, str]) -> str:
    """Return the folder that holds every page, with a slash at the end; empty for the documents folder."""
    folders = [path.split("/")[:-1] for path in titles]
    common = []
    for names in zip(*folders, strict=False):
        if len(set(names)) > 1:
            break
        common.append(names[0])
    return "".join(f"{name}/" for name in common)


def _first_page(titles: Mapping[str, str], folder: str) -> str:
    """Return the README of the corpus, or its index page; empty if it has neither."""
    own = {PurePosixPath(path).stem.lower(): path for path in titles if "/" not in path[len(folder) :]}
    return next((own[stem] for stem in FIRST_PAGES if stem in own), "")


def _summary(store: Store, path: str) -> str:
    """Return the first sentence of a page, without its full stop."""
    for stored in store.chunks_of(path)[:1]:
        for block in markdown_blocks(stored.text):
            text = " ".join(block.plain.split())
            if block.level or not text[:1].isalpha() or len(text.split()) < MIN_SUMMARY_WORDS:
                continue  # a heading, badges, a table
            found = SENTENCE.match(text)
            return (found[1] if found else text).rstrip(".:")
    return ""


def _topics(store: Store, titles: Mapping[str, str], folder: str, first_page: str) -> Iterator[str]:
    """Yield the folders with the most pages first; without folders, the titles of pages or the headings of one."""
    inside = {path: path[len(folder) :] for path in titles}
    folders = Counter(path.partition("/")[0] for path in inside.values() if "/" in path)
    if len(folders) > 1:
        ordered = sorted(folders, key=lambda name: (-folders[name], name))
        yield from dict.fromkeys(_humanize(name) for name in ordered)
        return
    pages = [path for path in titles if path != first_page]
    named = list(dict.fromkeys(title for path in pages if not GENERIC_TITLE.fullmatch(title := titles[path])))
    if len(named) > 1:
        yield from named
        return
    for path in titles:
        yield from dict.fromkeys(stored.head.heading for stored in store.chunks_of(path) if stored.head.level)


def _humanize(name: str) -> str:
    words = re.sub(r"[-_]+", " ", ORDER_PREFIX.sub("", name)).strip()
    return words[:1].upper() + words[1:]


def _shorten(text: str, limit: int) -> str:
    line = " ".join(UNPRINTABLE.sub(" ", text).split())
    return line if len(line) <= limit else f"{line[:limit].rsplit(' ', 1)[0]}..."
