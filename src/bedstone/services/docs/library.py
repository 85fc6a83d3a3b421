"""Search several docs corpora at once; with more than one, ids and paths begin with the name of the corpus."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bedstone.records import ChunkHead, Document, StoredChunk
from bedstone.search.cursor import make_cursor, read_cursor
from bedstone.search.hits import Hit, Mode
from bedstone.search.relevance import GOOD_SCORE, STRONG_SCORE
from bedstone.services.docs.corpus import ChunkNotFound, DocsCorpus, FileFacts
from bedstone.services.docs.hints import Hint, significant_words
from bedstone.services.docs.metadata import CORPUS, CorpusMetadata, Facet

MAX_PAGED_HITS = 5_000
MAX_CORRECTED_WORDS = 3  # of a query whose identifiers are corrected: a longer one has enough other words
MAX_NAMED_WORDS = 5  # that no page has


@dataclass(frozen=True)
class DocPage:
    """A page of hits."""

    hits: Sequence[Hit]
    next_cursor: str | None
    hint: Hint | None
    notice: str | None = None  # why results may be incomplete


class DocsLibrary:
    """The open corpora by name."""

    def __init__(
        self,
        corpora: Mapping[str, DocsCorpus],
        unavailable: Mapping[str, str] | None = None,
        *,
        get_secret: Callable[[], str | None] = lambda: None,
    ) -> None:
        """Serve corpora; `unavailable` are those that cannot be opened, with the reasons.

        Cursors are signed with the secret; without one with the keys of the indexes, which every copy of them has.
        """
        self._corpora = corpora
        self.unavailable = unavailable or {}
        self._is_single = len(corpora) + len(self.unavailable) == 1
        self._get_secret = get_secret
        self._own_key = "".join(sorted(corpus.metadata.cursor_key for corpus in corpora.values()))
        self._state = ",".join(corpora[name].state for name in sorted(corpora))
        for corpus in corpora.values():
            corpus.shared_facets = self.facets

    @property
    def _cursor_key(self) -> str:
        return self._get_secret() or self._own_key

    @property
    def problems(self) -> list[str]:
        """What is wrong with corpora: those that cannot be opened, and those that answer from memory."""
        return [*self.unavailable.values(), *(item.problem for item in self._corpora.values() if item.problem)]

    def verify(self) -> None:
        """Read all files of the indexes."""
        for corpus in self._corpora.values():
            corpus.verify()

    @property
    def metadata(self) -> dict[str, CorpusMetadata]:
        """The metadata of each corpus."""
        return {name: corpus.metadata for name, corpus in self._corpora.items()}

    @property
    def is_fast(self) -> bool:
        """Whether a search costs less than handing it to a thread: keyword search, and not too many chunks."""
        return all(corpus.is_fast for corpus in self._corpora.values())

    def compare(self, query: str, filters: Mapping[str, str], limit: int, mode: Mode) -> list[Hit]:
        """Return the best chunks by keyword, semantic or hybrid search."""
        return self._hits(query, filters, 0, limit, mode)[0]

    def count_facets(self, query: str, filters: Mapping[str, str]) -> dict[str, dict[str, int]]:
        """Count the chunks with each value of each facet, among those with a term of the query."""
        counts: dict[str, dict[str, int]] = {}
        for _, corpus, inside in self._select_corpora(filters):
            for key, values in corpus.count_facets(query, inside).items():
                for value, count in values.items():
                    counts.setdefault(key, {})[value] = counts.get(key, {}).get(value, 0) + count
        return counts

    def search(self, query: str, filters: Mapping[str, str], limit: int, cursor: str | None = None) -> DocPage:
        """Return a page of the best chunks, or a hint if no chunk matches."""
        offset, highest = 0, 1.0
        if cursor is not None:
            offset, highest = read_cursor(cursor, self._cursor_key, self._state, query, filters)
        hits, more = self._hits(query, filters, offset, limit)
        if not offset and (page := self._search_corrected(query, filters, limit, hits)):
            return page
        hits = [hit if hit.score <= highest else replace(hit, score=highest) for hit in hits]
        end = offset + limit
        more = more and end < MAX_PAGED_HITS
        lowest = hits[-1].score if hits else highest
        return DocPage(
            hits=hits,
            next_cursor=make_cursor(self._cursor_key, self._state, (end, lowest), query, filters) if more else None,
            hint=None if offset else self._doubt(query, hits) if hits else self._hint(query, filters),
            notice=self.search_notice(query),
        )

    def search_notice(self, query: str, mode: Mode = "hybrid") -> str | None:
        """Return why a search may miss something: corpora that cannot be opened, a language the model does not know."""
        corpora = self._corpora.values() if mode == "hybrid" else ()
        languages = (corpus.language_notice(query) for corpus in corpora)
        return " ".join(dict.fromkeys([*self.unavailable.values(), *filter(None, languages)])) or None

    def _search_corrected(
        self, query: str, filters: Mapping[str, str], limit: int, hits: Sequence[Hit]
    ) -> DocPage | None:
        """Return the hits for a query with its misspelt identifiers corrected, if they answer it better."""
        if (hits and hits[0].score >= STRONG_SCORE) or len(significant_words(query)) > MAX_CORRECTED_WORDS:
            return None
        corrections = [corpus.correct_identifiers(query) for corpus in self._corpora.values()]
        if not corrections or None in corrections:  # a corpus has them
            return None
        corrected = str(corrections[0])
        better, _ = self._hits(corrected, filters, 0, limit)
        if not better or (hits and better[0].score <= hits[0].score):
            return None
        hint = Hint(f"No page has {query!r} as it is written. These are the results for {corrected!r}.")
        return DocPage(better, None, hint, self.search_notice(corrected))

    def read(self, chunk_id: str, context: int = 0) -> tuple[list[StoredChunk], int, int]:
        """Return a chunk with its neighbours, its position among them, and the number of chunks in the file."""
        for name, corpus in self._corpora.items():
            inside = self._to_local(name, chunk_id)
            try:
                chunks, target, total = corpus.read(inside, context) if inside else ([], 0, 0)
            except ChunkNotFound:
                continue
            if chunks:
                return [replace(item, head=self._with_public_ids(name, item.head)) for item in chunks], target, total
        near = self.nearest_ids(chunk_id)
        listed = f"\nNearest IDs: {', '.join(near)}" if near else ""
        raise ChunkNotFound(f"Chunk ID '{chunk_id}' not found. Use search_docs to discover valid chunk IDs.{listed}")

    def nearest_ids(self, chunk_id: str) -> list[str]:
        """Return ids that are similar to one that no corpus has."""
        return [self._to_public(name, item) for name, item in self._nearest(chunk_id)]

    def overview(self) -> list[dict[str, Any]]:
        """Describe each corpus, with its counts."""
        return [
            {
                "name": name,
                "description": corpus.metadata.description,
                "files": len(corpus.metadata.files),
                "chunks": corpus.chunk_count,
                "indexed_at": corpus.metadata.stats.indexed_at,
                "taxonomy": {key: corpus.facets.get(key, {}) for key in corpus.taxonomy},
            }
            for name, corpus in self._corpora.items()
        ]

    def files(self, name: str) -> Sequence[FileFacts] | None:
        """Return the files of a corpus; None if the corpus does not exist."""
        corpus = self._corpora.get(name)
        return corpus.files if corpus else None

    @property
    def corpora(self) -> Mapping[str, DocsCorpus]:
        """The open corpora by name."""
        return self._corpora

    @property
    def facets(self) -> set[str]:
        """The facets to filter by."""
        named = {key for corpus in self._corpora.values() for key in corpus.taxonomy}
        return named if self._is_single else named | {CORPUS}

    def locate(self, path: str) -> tuple[str, str]:
        """Return the corpus of a public path, and the path in that corpus."""
        name = next(iter(self._corpora)) if self._is_single else path.partition("/")[0]
        return name, self._to_local(name, path) or path

    def chunks_of(self, name: str, path: str) -> list[StoredChunk]:
        """Return the chunks of a file in order, with public ids."""
        corpus = self._corpora.get(name)
        chunks = corpus.chunks_of(path) if corpus else []
        return [replace(stored, head=self._with_public_ids(name, stored.head)) for stored in chunks]

    def documents(self) -> list[Document]:
        """Return every file that is offered as a resource, by path."""
        return [
            replace(document, id=self._to_public(name, document.id))
            for name, corpus in self._corpora.items()
            for document in corpus.documents()
            if _is_resource(document, corpus.taxonomy)
        ]

    def text(self, path: str) -> str | None:
        """Return the text of a resource."""
        for name, corpus in self._corpora.items():
            inside = self._to_local(name, path)
            document = corpus.document(inside) if inside else None
            if document is not None and _is_resource(document, corpus.taxonomy):
                return corpus.text(document.id) or ""  # an empty file has no chunk
        return None

    def close(self) -> None:
        """Release the files."""
        for corpus in self._corpora.values():
            corpus.close()

    def _hits(
        self, query: str, filters: Mapping[str, str], offset: int, limit: int, mode: Mode = "hybrid"
    ) -> tuple[list[Hit], bool]:
        if self._is_single:
            (corpus,) = self._corpora.values()
            response = corpus.search(query, filters, offset, limit, mode)
            return list(response.hits), response.has_more
        count = offset + limit + 1
        found = []
        for name, corpus, inside in self._select_corpora(filters):
            hits = corpus.search(query, inside, 0, count, mode).hits
            found += [self._to_public_hit(name, hit) for hit in hits]
        # Relevance means the same everywhere, unlike the scores by which a corpus ranks its candidates.
        found.sort(key=lambda hit: -hit.score)
        return found[offset : offset + limit], len(found) >= count

    def _select_corpora(self, filters: Mapping[str, str]) -> list[tuple[str, DocsCorpus, dict[str, str]]]:
        """Return the corpora to search, each with the filters within it."""
        if self._is_single:  # where `corpus` may be a facet like any other
            return [(name, corpus, dict(filters)) for name, corpus in self._corpora.items()]
        inside = {key: value for key, value in filters.items() if key != CORPUS}
        return [(name, corpus, inside) for name, corpus in self._corpora.items() if filters.get(CORPUS, name) == name]

    def _doubt(self, query: str, hits: Sequence[Hit]) -> Hint | None:
        """Return a hint where hits share a word with the query by chance."""
        best = hits[0]
        if best.score >= (GOOD_SCORE if "semantic" in best.matched_by else STRONG_SCORE):
            return None
        words = significant_words(query)
        if len(words) == 1:
            return None
        missing = [corpus.unknown_words(query) for corpus in self._corpora.values()]
        unknown = [word for word in missing[0] if all(word in others for others in missing)]
        if best.score >= GOOD_SCORE and 2 * len(unknown) <= len(words):
            return None
        named = f" No page has: {', '.join(unknown[:MAX_NAMED_WORDS])}." if unknown else ""
        return Hint(f"Probably nothing fits this query: the best score is {best.score:.2f}.{named} Try other words.")

    def _hint(self, query: str, filters: Mapping[str, str]) -> Hint:
        """Suggest other values for the filters, and other spellings."""
        similar = dict.fromkeys(word for corpus in self._corpora.values() for word in corpus.suggest_spellings(query))
        spelling = f" Did you mean: {', '.join(similar)}?" if similar else ""
        if not filters or not any(corpus.has_results(query, {}) for corpus in self._corpora.values()):
            return Hint(f"0 results found. No matches were found for this query in the indexed corpus.{spelling}")
        chosen = ", ".join(f"{key}='{value}'" for key, value in filters.items())
        suggestions = {}
        for key, value in filters.items():
            selected = self._select_corpora({name: kept for name, kept in filters.items() if name != key})
            if key == CORPUS and not self._is_single:
                found = {name for name, corpus, inside in selected if corpus.has_results(query, inside)}
            else:
                found = {item for _, corpus, inside in selected for item in corpus.facet_values(query, inside, key)}
            if values := sorted(found - {value}):
                suggestions[key] = values
        wider = "" if suggestions else f" There are results without {' and '.join(filters)}."
        return Hint(f"0 results found for query '{query}' with filters {chosen}.{wider}{spelling}", suggestions)

    def _nearest(self, chunk_id: str) -> list[tuple[str, str]]:
        return [
            (name, near)
            for name, corpus in self._corpora.items()
            for near in corpus.nearest_ids(self._to_local(name, chunk_id) or chunk_id)
        ]

    def _to_local(self, corpus: str, path: str) -> str | None:
        """Return a path or id within a corpus; None if it belongs to another one."""
        if self._is_single:
            return path
        return path.removeprefix(f"{corpus}/") if path.startswith(f"{corpus}/") else None

    def _to_public(self, corpus: str, path: str) -> str:
        return path if self._is_single else f"{corpus}/{path}"

    def _to_public_hit(self, corpus: str, hit: Hit) -> Hit:
        variants = tuple(self._to_public(corpus, item) for item in hit.variants)
        return replace(hit, head=self._with_public_ids(corpus, hit.head), variants=variants)

    def _with_public_ids(self, corpus: str, head: ChunkHead) -> ChunkHead:
        if self._is_single:
            return head
        facets = {**head.facets, CORPUS: corpus}
        return replace(head, id=f"{corpus}/{head.id}", document_id=f"{corpus}/{head.document_id}", facets=facets)


def _is_resource(document: Document, taxonomy: Mapping[str, Facet]) -> bool:
    return any(document.attributes.get(f"facet:{key}") in facet.resource_values for key, facet in taxonomy.items())
