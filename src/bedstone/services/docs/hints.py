"""Hints for agents: ids and words that are similar to those that a corpus does not have."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import PurePosixPath

from bedstone.search.hits import SearchRequest
from bedstone.search.index import IndexQuery
from bedstone.search.matching import Matcher
from bedstone.search.retriever import Retriever
from bedstone.search.terms import WORD, extract_identifiers, normalize_query, stop_terms, terms
from bedstone.store.engine import Store

MAX_HASHES_IN_ID = 8  # a path may contain #
MAX_MISSPELT_WORDS = 5  # with suggestions
MAX_LISTED_IDS = 50  # of one file
MAX_SUGGESTED_IDS = 5
MAX_COMPARED_NAMES = 5_000
MIN_SIMILARITY = 0.7


@dataclass(frozen=True)
class Hint:
    """What to try when a search has no results."""

    message: str
    suggested_filters: Mapping[str, Sequence[str]] = field(default_factory=dict)


def nearest_ids(store: Store, paths: Sequence[str], chunk_id: str) -> list[str]:
    """Suggest ids: the most similar ones of the file, or those of files with a similar name."""
    hashes = [at for at, sign in enumerate(chunk_id) if sign == "#"]
    ends = (*hashes[-MAX_HASHES_IN_ID:], len(chunk_id))
    parts = [(chunk_id[:end], chunk_id[end + 1 :]) for end in ends]
    path, heading = next(((path, rest) for path, rest in parts if store.chunks_of(path)), parts[0])
    ids = [stored.head.id for stored in store.chunks_of(path)]
    if ids:
        by_heading = {identity[len(path) + 1 :]: identity for identity in ids}
        near = get_close_matches(heading, by_heading, MAX_SUGGESTED_IDS, MIN_SIMILARITY)
        return [by_heading[name] for name in near] or ids[:MAX_LISTED_IDS]
    same = [name for name in paths if PurePosixPath(name).name == PurePosixPath(path).name]
    near = same or get_close_matches(path, paths[:MAX_COMPARED_NAMES], MAX_SUGGESTED_IDS, MIN_SIMILARITY)
    return [stored.head.id for name in near[:MAX_SUGGESTED_IDS] for stored in store.chunks_of(name)[:1]]


def unknown_words(retriever: Retriever, query: str) -> list[str]:
    """Return the words of a query that no chunk has, not even as parts of an identifier."""
    index = retriever.index
    return [word for word in _unknown_words(retriever, query) if not index.search(IndexQuery(word, limit=1)).candidates]


def significant_words(query: str) -> list[str]:
    """Return the words of a query that are not stop words, each once."""
    words = dict.fromkeys(WORD.findall(normalize_query(query)))
    return [word for word in words if not stop_terms().issuperset(terms(word))]


def suggest_spellings(store: Store, retriever: Retriever, query: str) -> list[str]:
    """Return words with a similar spelling for those that the corpus does not have."""
    unknown = _unknown_words(retriever, query)
    similar = (term for word in unknown[:MAX_MISSPELT_WORDS] for term in retriever.index.suggest_terms(word))
    return [_restore_ending(store, retriever, term) for term in similar]


def correct_identifiers(store: Store, retriever: Retriever, query: str) -> str | None:
    """Return a query with its misspelt identifiers as the corpus has them; None if it has no such identifier."""
    corrected = query
    for name in extract_identifiers(normalize_query(query)):
        if all(map(retriever.index.document_frequency, terms(name))):
            continue
        if near := retriever.index.suggest_terms(name):
            corrected = corrected.replace(name, _as_written(store, retriever, near[0]))
    return corrected if corrected != query else None


def _as_written(store: Store, retriever: Retriever, name: str) -> str:
    """Return an identifier as a text has it: the index has identifiers in lower case."""
    rowids = [item.rowid for item in retriever.select(SearchRequest(name, mode="keyword"), 1).candidates]
    for plain in store.plain_texts(rowids).values():
        if (start := plain.lower().find(name)) >= 0:
            return plain[start : start + len(name)]
    return name


def _unknown_words(retriever: Retriever, query: str) -> list[str]:
    words = dict.fromkeys(WORD.findall(normalize_query(query)))
    return [word for word in words if not any(map(retriever.index.document_frequency, terms(word)))]


def _restore_ending(store: Store, retriever: Retriever, term: str) -> str:
    """Return a term as a text has it: the index has words without their endings."""
    for candidate in retriever.select(SearchRequest(term, mode="keyword"), 1).candidates:
        plain = store.plain_texts([candidate.rowid])[candidate.rowid]
        for start, end, _ in Matcher(term).find(plain):
            return plain[start:end].lower()
    return term
