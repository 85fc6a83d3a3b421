"""The fields of a chunk in a keyword index, the same for every engine, and what is read of a hit."""

from collections.abc import Iterator
from typing import Any

from bedstone.records import ABOUT, Document, StoredChunk
from bedstone.search.indexes.languages import language_fields
from bedstone.search.terms import camel_parts, extract_identifiers, phrase_key, separate_scripts, unify_letters
from bedstone.search.versions import section_number

ANALYSIS = 7  # of fields and terms; an index with a different version is rebuilt
STRETCH = "stretch"  # kind of the documents that hold a part of a long chunk
# How often title and heading are written into the field `all`: BM25 then weighs them as one longer text.
TITLE_TIMES = 2
HEADING_TIMES = 3
# Chunks from this length on are also indexed in stretches.
MIN_LONG_CHARACTERS = 3_000
STRETCH_CHARACTERS = 1_500
STRETCH_OVERLAP = 100
MIN_BODY_CHARACTERS = 20
LABEL_BITS = 2
LABELS = 3
IS_BARE = 1
IS_STRETCH = 2

Fields = dict[str, Any]


def fields_of(stored: StoredChunk, document: Document | None) -> Iterator[Fields]:
    """Yield a chunk, and the stretches of a long one: a few sentences that answer would drown in its whole text."""
    chunk, plain = stored.head, unify_letters(stored.plain)
    title = document.title if document else ""
    about = unify_letters(document.attributes.get(ABOUT, "")) if document and not chunk.position else ""
    title, path, heading = (unify_letters(text) for text in (title, chunk.document_id, chunk.heading))
    above = [unify_letters(text) for text in chunk.breadcrumb[:-1]]
    head = [title, path, *above, heading, about]
    names = extract_identifiers(f"{path}\n{heading}\n{plain}")
    parts = " ".join(camel_parts(names))
    emphasized = [*[title] * TITLE_TIMES, path, about, *above, *[heading] * HEADING_TIMES]
    repeated_head = [*[title] * TITLE_TIMES, about, *above, *[heading] * HEADING_TIMES]
    shared = {
        "rowid": chunk.rowid,
        "section": section_number(chunk.document_id, chunk.id),
        "head": separate_scripts(" \n ".join(head)),
        "facets": [f"{key}={value}" for key, value in chunk.facets.items()],
        "facet_keys": [*chunk.facets],
    }
    yield {
        **shared,
        # What is read of every hit in one number: the rowid, and whether it is a bare heading or a stretch.
        "label": (chunk.rowid << LABEL_BITS) + IS_BARE * (len(plain) - len(heading) < MIN_BODY_CHARACTERS),
        "all": separate_scripts(" \n ".join([*emphasized, plain, parts])),
        "heading": phrase_key(heading),
        "trail": phrase_key(" ".join([*above[-1:], heading] if chunk.breadcrumb else [])),
        "names": " ".join(names).lower(),
        **language_fields(head, repeated_head, plain),
    }
    for stretch in _stretches_of(plain):
        yield {
            **shared,
            "label": (chunk.rowid << LABEL_BITS) + IS_STRETCH,
            "kind": STRETCH,
            "all": separate_scripts(" \n ".join([*emphasized, stretch])),
        }


def _stretches_of(plain: str) -> Iterator[str]:
    """Cut a long text into stretches of equal length that overlap a little."""
    if len(plain) < MIN_LONG_CHARACTERS:
        return
    step = -(-len(plain) // -(-len(plain) // STRETCH_CHARACTERS))
    for start in range(0, len(plain), step):
        yield plain[max(0, start - STRETCH_OVERLAP) : start + step + STRETCH_OVERLAP]
