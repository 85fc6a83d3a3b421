"""The word index on tantivy: BM25 over one field in which headings count more, nearness, facets as filters."""

import json
import os
import shutil
import threading
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import lru_cache
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import tantivy

from bedstone.errors import InvalidInput
from bedstone.records import StoredChunk
from bedstone.search.hits import AllOf, AnyOf, Filter, Is, Without
from bedstone.search.index import Weights
from bedstone.search.terms import (
    CAMEL,
    WORD,
    analyzer,
    asked,
    bigrams,
    camel_parts,
    composed,
    compounds,
    segment,
    stop_terms,
    terms_of_word,
    whole,
)
from bedstone.store.engine import Store

VERSION = 6  # of schema and analysis: another one means the index is built again
ARENA_BYTES = 64_000_000
BATCH_CHANGES = 1_000
# Each commit leaves a segment that every search must visit; whoever is killed before one does the work again.
CHANGES_A_COMMIT = 20_000
SAME_BEGINNING = 2  # letters that a misspelt word is trusted with
LEAST_QUOTED, QUOTATION_SLOP = 4, 3  # shorter queries name a subject as often as they quote
MOST_WORDS = 100  # of a query
MOST_GLUED = 80
LEAST_GLUED = 6  # a shorter word that nobody has is a slip, not two words
MARKER = -1  # rowid of the document that remembers what was applied
MUST, MUST_NOT, SHOULD = tantivy.Occur.Must, tantivy.Occur.MustNot, tantivy.Occur.Should
Query = tantivy.Query

# How often title and heading are written into the field `all`: BM25 then weighs them as one longer text.
TITLE_TIMES, HEADING_TIMES = 2, 3
# A chunk that is nothing but its heading scores half; tantivy could weigh too, but would then look at every match.
LEAST_BODY, BARE_SHARE = 20, 0.5
MOST_BARE = 2_000  # hits to look through for one with a body
SPARE = 20  # hits to read beyond those wanted, in place of bare ones
BY_SCORE = itemgetter(0)
HEAD_WEIGHT = 0.3
HEADING_WEIGHT = 1.0  # the query is the heading, word for word
NAME_WEIGHT = 0.3
PHRASE_WEIGHT = 2.0
HEAD_PHRASE_WEIGHT = 1.0
PAIR_WEIGHT = 0.5


class OutdatedIndex(InvalidInput):
    """An index was made by another version and must be built again."""

    code = "outdated_index"


class WordIndex:
    """Finds chunks by their words; derived from a store, and thrown away when it no longer fits it."""

    def __init__(self, folder: Path | None = None, *, read_only: bool = False) -> None:
        self._folder = folder
        self._private: TemporaryDirectory[str] | None = None
        self._lock = threading.Lock()
        self._schema = _schema()
        self._index = self._open(read_only)
        self._writer: Any = None if read_only else self._index.writer(ARENA_BYTES, 1)
        self._reload()

    @property
    def is_read_only(self) -> bool:
        """Whether somebody else writes it."""
        return self._writer is None

    @property
    def applied(self) -> tuple[int, int]:
        """Sequence number and stamp of the last change that is in the index."""
        searcher = self._searcher  # another thread may replace it
        found = searcher.search(Query.term_query(self._schema, "rowid", MARKER), 1, count=False).hits
        if not found:
            return 0, 0
        address = [found[0][1]]
        (seq,), (stamp,) = (searcher.fast_field_values(name, address) for name in ("seq", "stamp"))
        return int(seq or 0), int(stamp or 0)

    def catch_up(self, store: Store, progress: Callable[[int], None] | None = None) -> None:
        """Apply what happened in the store since; from the beginning if the index followed another history."""
        with self._lock:
            last = store.last_change()  # whoever writes goes on writing: what comes later is for the next time
            seq, stamp = self.applied
            committed = seq
            if seq and [change.stamp for change in store.changes(seq - 1, 1)] != [stamp]:
                self._writer.delete_all_documents()
                seq, stamp, committed = 0, 0, -1
            title = lru_cache(maxsize=16)(lambda document: getattr(store.document(document), "title", ""))
            try:
                while last and seq < last.seq and (changes := store.changes(seq, BATCH_CHANGES)):
                    for change in changes:
                        self._remove(change.gone_first, change.gone_last)
                        if change.kind == "put":
                            for stored in store.chunks_between(change.first, change.last):
                                self._writer.add_document(_fields(stored, title(stored.head.document_id)))
                    seq, stamp = changes[-1].seq, changes[-1].stamp
                    if seq - committed >= CHANGES_A_COMMIT:
                        self._commit(seq, stamp)
                        committed = seq
                    if progress:
                        progress(seq)
                if seq != committed:
                    self._commit(seq, stamp)
            except BaseException:
                self._writer.rollback()  # else the half batch would be committed with the next one
                raise

    def reload(self) -> None:
        """See what another process has written since."""
        with self._lock:
            self._reload()

    def finish(self) -> None:
        """Wait for merges and let go of the writer: the index is read only from now on."""
        with self._lock:
            if self._writer is not None:
                self._writer.wait_merging_threads()
                self._writer = None

    def close(self) -> None:
        """Let go of the writer as it is, and of what was made to read the index."""
        self._writer = None
        if self._private is not None:
            self._private.cleanup()

    def clear(self) -> None:
        """Forget everything; the next catch-up starts from the beginning."""
        with self._lock:
            self._writer.delete_all_documents()
            self._commit(0, 0)

    def search(
        self, text: str, condition: Filter | None, limit: int, weights: Weights | None = None
    ) -> dict[int, float]:
        """The best chunks by their words, best first."""
        query = self._query(text, weights or Weights())
        if query is None or limit < 1:
            return {}
        searcher, restricted = self._searcher, self._restricted(query, condition)
        depth = limit + SPARE
        while True:
            found = searcher.search(restricted, depth, count=False).hits
            labels: Any = searcher.fast_field_values("label", [address for _, address in found])
            weighed = [
                (score * BARE_SHARE if label & 1 else score, label >> 1)
                for (score, _), label in zip(found, labels, strict=True)
            ]
            best = sorted(weighed, key=BY_SCORE, reverse=True)[:limit]
            # What was not looked at scores less than the last of those that were.
            if len(found) < depth or best[-1][0] >= found[-1][0] or depth > MOST_BARE:
                return {rowid: score for score, rowid in best}
            depth *= 4

    def quotes(self, text: str) -> bool:
        """Whether the query is a heading, perhaps with the one above, a name in code, a number, or a piece of text."""
        if any(self._searcher.doc_freq(field, whole(text)) for field in ("heading", "trail")):
            return True
        every = self._terms(text)
        if len(text.split()) == 1:
            is_number = any(sign.isdigit() for sign in text) and any(self.frequency(term) for term in every)
            return bool(compounds(text)) or len(every) > 1 or is_number
        if len(every) < LEAST_QUOTED:
            return False
        phrase = Query.phrase_query(self._schema, "all", [*every], slop=QUOTATION_SLOP)
        return bool(self._searcher.search(phrase, 1, count=False).hits)

    def facet_counts(self, text: str | None, condition: Filter | None) -> dict[str, dict[str, int]]:
        """How many chunks have each value of each facet, among those that match."""
        query = self._query(asked(text), Weights()) if text else self._everything()
        if query is None:
            return {}
        request = {"facets": {"terms": {"field": "facets", "size": 10_000}}}
        buckets = self._searcher.aggregate(self._restricted(query, condition), request)["facets"]["buckets"]
        counts: dict[str, dict[str, int]] = {}
        for bucket in buckets:
            key, _, value = bucket["key"].partition("=")
            counts.setdefault(key, {})[value] = int(bucket["doc_count"])
        return counts

    def frequency(self, term: str) -> int:
        """How many chunks have a term."""
        return self._frequency(term)

    def similar_words(self, word: str) -> list[str]:
        """Indexed words that begin alike and are spelt almost like this one, the nearest first."""
        alike = self._searcher.terms_with_prefix("all", word.lower()[:SAME_BEGINNING])
        near = get_close_matches(word.lower(), [term for term, _ in alike], n=3, cutoff=0.75)
        return [term for term in near if term != word.lower()]

    def _query(self, text: str, weights: Weights) -> Query | None:
        every = self._terms(text)
        telling = list(dict.fromkeys(term for term in every if term not in stop_terms())) or list(dict.fromkeys(every))
        clauses = [(SHOULD, Query.term_query(self._schema, "all", term)) for term in telling]
        clauses += [(SHOULD, self._weighted("head", term, HEAD_WEIGHT)) for term in telling]
        clauses += [(SHOULD, self._weighted("heading", whole(text), HEADING_WEIGHT))]
        clauses += [(SHOULD, self._weighted("names", name.lower(), NAME_WEIGHT)) for name in compounds(text)]
        clauses += [(SHOULD, Query.term_query(self._schema, "grams", gram)) for gram in bigrams(text)]
        clauses += [(SHOULD, query) for query in self._nearness(every, weights)]
        return Query.boolean_query(clauses) if every or len(clauses) > 1 else None

    def _cut(self, text: str) -> list[str]:
        """The query's terms, as many as count."""
        words = WORD.findall(text)[:MOST_WORDS]
        return [piece for word in words for term in terms_of_word(word) for piece in self._known(term, word)]

    def _known(self, term: str, raw: str) -> list[str]:
        """A term the index has, or the words it is glued together from: `RateLimitError`, `serviceNamestring`."""
        if self.frequency(term) or not LEAST_GLUED <= len(term) <= MOST_GLUED:
            return [term]
        pieces = segment(raw.lower(), self._is_word)
        if len(pieces) == 1:
            pieces = [piece for part in CAMEL.findall(raw) for piece in segment(part.lower(), self._is_word)]
        return [stem for piece in pieces for stem in terms_of_word(piece)] or [term]

    def _is_word(self, word: str) -> bool:
        return any(self.frequency(stem) for stem in terms_of_word(word))

    def _nearness(self, every: list[str], weights: Weights) -> list[Query]:
        """The whole query as a phrase, and each pair of neighbours; a phrase of one word would panic."""
        if not weights.nearness:
            return []
        # Pairs with a stop word say little, and cost more than everything else together.
        pairs = [pair for pair in pairwise(every) if stop_terms().isdisjoint(pair)]
        phrases: dict[tuple[str, tuple[str, ...]], float] = {}
        if len(every) > 1:
            phrases = {("all", tuple(every)): PHRASE_WEIGHT, ("head", tuple(every)): HEAD_PHRASE_WEIGHT}
        for pair in pairs:  # one may be the whole query, or come twice
            phrases["all", pair] = phrases.get(("all", pair), 0.0) + PAIR_WEIGHT
        return [
            Query.boost_query(
                Query.phrase_query(self._schema, field, [*words], slop=weights.phrase_slop), weight * weights.nearness
            )
            for (field, words), weight in phrases.items()
        ]

    def _weighted(self, field: str, term: str, weight: float) -> Query:
        return Query.boost_query(Query.term_query(self._schema, field, term), weight)

    def _everything(self) -> Query:
        return Query.range_query(self._schema, "rowid", tantivy.FieldType.Integer, 0, 2**62)

    def _restricted(self, query: Query, condition: Filter | None) -> Query:
        if condition is None:
            return query
        # A filter must not score.
        passes = Query.const_score_query(self._condition(condition), 0.0)
        return Query.boolean_query([(MUST, query), (MUST, passes)])

    def _condition(self, condition: Filter) -> Query:
        match condition:
            case Is(key, values):
                return Query.term_set_query(self._schema, "facets", [f"{key}={value}" for value in values])
            case Without(key):
                has = Query.term_query(self._schema, "facet_keys", key)
                return Query.boolean_query([(MUST, self._everything()), (MUST_NOT, has)])
            case AllOf(filters):
                return Query.boolean_query([(MUST, self._condition(item)) for item in filters])
            case AnyOf(filters):
                return Query.boolean_query([(SHOULD, self._condition(item)) for item in filters])

    def _remove(self, first: int, last: int) -> None:
        if first <= last:
            gone = Query.range_query(self._schema, "rowid", tantivy.FieldType.Integer, first, last)
            self._writer.delete_documents_by_query(gone)

    def _commit(self, seq: int, stamp: int) -> None:
        self._writer.delete_documents_by_term("rowid", MARKER)
        self._writer.add_document(tantivy.Document(rowid=MARKER, seq=seq, stamp=stamp))
        self._writer.commit()
        self._reload()

    def _reload(self) -> None:
        self._index.reload()
        self._searcher = searcher = self._index.searcher()
        # A query's terms are looked up again and again: to cut it into words, to see whether it quotes, to weigh it.
        self._terms = lru_cache(maxsize=64)(self._cut)
        self._frequency = lru_cache(maxsize=8192)(lambda term: int(searcher.doc_freq("all", term)))

    def _open(self, read_only: bool) -> tantivy.Index:
        folder = self._folder
        index = tantivy.Index(self._schema) if folder is None else self._open_folder(folder, read_only)
        index.register_tokenizer("words", analyzer())  # an index does not remember it
        index.config_reader("manual")
        return index

    def _open_folder(self, folder: Path, read_only: bool) -> tantivy.Index:
        version = folder / "version.json"
        if not read_only and (not version.exists() or json.loads(version.read_text()) != VERSION):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            index = tantivy.Index(self._schema, path=str(folder))
            version.write_text(json.dumps(VERSION))  # the last file: a folder without it is made again
            return index
        if read_only and json.loads(version.read_text()) != VERSION:
            raise OutdatedIndex(f"The index in {folder} is of another version of Bedstone: build it again.")
        if not read_only:
            _drop_unfinished(folder)
        if read_only and not os.access(folder, os.W_OK):
            self._private = TemporaryDirectory(prefix="bedstone-index-")
            folder = _private_view(folder, Path(self._private.name))
        return tantivy.Index.open(str(folder))


def _drop_unfinished(folder: Path) -> None:
    """Remove deletions a killed process wrote down but never committed: the next commit would trip over its file."""
    segments = json.loads((folder / "meta.json").read_text())["segments"]
    known = {
        f"{segment['segment_id'].replace('-', '')}.{segment['deletes']['opstamp']}.del"
        for segment in segments
        if segment.get("deletes")
    }
    for path in folder.glob("*.del"):
        if path.name not in known:
            path.unlink()


def _private_view(folder: Path, view: Path) -> Path:
    """A folder of ours with the same files: to open an index tantivy must write a lock beside it."""
    for path in folder.iterdir():
        if path.suffix == ".json":
            shutil.copyfile(path, view / path.name)
        elif path.suffix != ".lock":
            (view / path.name).symlink_to(path.resolve())
    return view


def _schema() -> Any:
    builder = tantivy.SchemaBuilder()
    for name in ("rowid", "label", "seq", "stamp"):
        builder.add_integer_field(name, indexed=name == "rowid", fast=True)
    builder.add_text_field("facets", tokenizer_name="raw", index_option="basic", fast=True)
    builder.add_text_field("facet_keys", tokenizer_name="raw", index_option="basic")
    for name in ("all", "head"):
        builder.add_text_field(name, tokenizer_name="words")
    for name in ("heading", "trail"):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    for name in ("names", "grams"):
        builder.add_text_field(name, tokenizer_name="whitespace", index_option="freq")
    return builder.build()


def _fields(stored: StoredChunk, title: str) -> tantivy.Document:
    chunk = stored.head
    title, place, heading, plain = (composed(text) for text in (title, chunk.document_id, chunk.heading, stored.plain))
    above = [composed(text) for text in chunk.breadcrumb[:-1]]
    head = [title, place, *above, heading]
    names = compounds(f"{place}\n{heading}\n{plain}")
    parts = " ".join(camel_parts(names))
    everything = [*[title] * TITLE_TIMES, place, *above, *[heading] * HEADING_TIMES, plain, parts]
    document = tantivy.Document(
        rowid=chunk.rowid,
        # What is read of every hit in one number: twice the rowid, and one more for a chunk without a body.
        label=2 * chunk.rowid + (len(stored.plain) - len(chunk.heading) < LEAST_BODY),
        all=" \n ".join(everything),
        head=" \n ".join(head),
        heading=whole(heading),
        trail=whole(" ".join([*above[-1:], heading] if chunk.breadcrumb else [])),
        names=" ".join(names).lower(),
        grams=" ".join(bigrams("\n".join([*head, plain]))),
    )
    _add_all(document, "facets", (f"{key}={value}" for key, value in chunk.facets.items()))
    _add_all(document, "facet_keys", chunk.facets)
    return document


def _add_all(document: tantivy.Document, field: str, values: Iterable[str]) -> None:
    for value in values:
        document.add_text(field, value)
