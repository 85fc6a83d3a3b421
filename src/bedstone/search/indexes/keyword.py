"""The keyword index on tantivy: BM25 over one field in which headings count more, proximity, facets as filters."""

import json
import os
import shutil
import threading
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache, partial
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import tantivy

from bedstone.permissions import FOLDER_MODE, make_private_folder
from bedstone.records import Change
from bedstone.search.filters import AllOf, AnyOf, Filter, Missing, OneOf
from bedstone.search.index import IndexVersionMismatch, OnProgress, Weights
from bedstone.search.indexes.clauses import QUOTATION_SLOP, Clause, QueryReader
from bedstone.search.indexes.damage import find_damage
from bedstone.search.indexes.fields import ANALYSIS, STRETCH, fields_of
from bedstone.search.indexes.languages import ENDINGS, GRAMS, STEMS
from bedstone.search.indexes.selection import Hits, select
from bedstone.search.terms import analyzer, extract_identifiers, normalize_query
from bedstone.store.engine import Store

ARENA_BYTES = 64_000_000
SMALL_ARENA_BYTES = 15_000_000  # the least that is allowed: a commit of one document takes half as long with it
SMALL_CHUNKS = 500  # in the changes that it is used for
BATCH_CHANGES = 1_000
SMALL_BATCH = 50  # where others wait for the index, or for its end
# Each commit leaves a segment that every search must visit; a process killed before one repeats the work.
CHANGES_PER_COMMIT = 20_000
SUGGESTION_PREFIX = 2  # letters at the beginning of a misspelt word that are taken as correct
MIN_LIKENESS = 0.75  # of a suggestion, as difflib measures it
MIN_LENGTH_SHARE = MIN_LIKENESS / (2 - MIN_LIKENESS)  # of two texts that are so alike
MARKER = -1  # rowid of the document that records the last applied change
MUST = tantivy.Occur.Must
MUST_NOT = tantivy.Occur.MustNot
SHOULD = tantivy.Occur.Should
Query = tantivy.Query


class KeywordIndex:
    """Finds chunks by their terms; derived from a store, and rebuilt when it no longer fits it."""

    def __init__(self, folder: Path | None = None, *, read_only: bool = False) -> None:
        self._folder = folder
        self._private: TemporaryDirectory[str] | None = None
        self._lock = threading.Lock()
        self._schema = _schema()
        self._index = self._open(read_only)
        self.is_read_only = read_only  # another process writes it
        self._writer: Any = None  # opened for the first change, and again after a failure that ends its threads
        self._beyond: tuple[int, int] | None = None  # the last change, if none since the marker concerns chunks
        self._signature: tuple[int, int, int] | None = None  # of the files that were loaded last
        self._reload()

    @property
    def last_applied(self) -> tuple[int, int]:
        """Sequence number and stamp of the last change that is in the index."""
        return self._beyond or self._marker

    @property
    def _marker(self) -> tuple[int, int]:
        searcher = self._searcher  # another thread may replace it
        found = searcher.search(Query.term_query(self._schema, "rowid", MARKER), 1, count=False).hits
        if not found:
            return 0, 0
        address = [found[0][1]]
        (seq,), (stamp,) = (searcher.fast_field_values(name, address) for name in ("seq", "stamp"))
        return int(seq or 0), int(stamp or 0)

    @property
    def chunk_count(self) -> int:
        """Number of chunks in the index."""
        return max(0, self._searcher.num_docs - 1 - self._stretch_count)  # without the marker

    def find_damage(self, *, reads_all: bool = True) -> str | None:
        """Return what is wrong with the files; None if they are whole, or if the index is in memory."""
        return find_damage(self._folder, reads_all=reads_all) if self._folder is not None else None

    def catch_up(self, store: Store, on_progress: OnProgress | None = None, *, in_batches: bool = False) -> None:
        """Apply the changes of the store; from the beginning if the index followed another history."""
        batch, changes_per_commit = (SMALL_BATCH, BATCH_CHANGES) if in_batches else (BATCH_CHANGES, CHANGES_PER_COMMIT)
        with self._lock:
            last = store.last_change()  # later changes are for the next call, or this one might never end
            seq, stamp = self.last_applied
            committed, is_dirty = seq, False
            if seq and [change.stamp for change in store.changes(seq - 1, 1)] != [stamp]:
                self._ensure_writer()
                self._writer.delete_all_documents()
                seq, stamp, committed, is_dirty = 0, 0, -1, True
            document_of = lru_cache(maxsize=16)(store.document)
            is_large = False
            try:
                while last and seq < last.seq and (changes := store.changes(seq, batch)):
                    concerned = [change for change in changes if _concerns_chunks(change)]
                    if concerned:
                        chunks = sum(_chunks_of(change) for change in concerned)
                        is_large = self._ensure_writer(chunks, may_replace=not is_dirty) or is_large
                    for change in concerned:
                        self._remove(change.gone_first, change.gone_last)
                        if change.kind == "put":
                            for stored in store.chunks_between(change.first, change.last):
                                for fields in fields_of(stored, document_of(stored.head.document_id)):
                                    self._writer.add_document(tantivy.Document(**fields))
                    is_dirty = is_dirty or bool(concerned)
                    seq, stamp = changes[-1].seq, changes[-1].stamp
                    if is_dirty and seq - committed >= changes_per_commit:
                        self._commit(seq, stamp)
                        committed, is_dirty = seq, False
                    if on_progress:
                        on_progress(seq)
                self._complete((seq, stamp), is_dirty=is_dirty, is_large=is_large)
            except BaseException:
                self._roll_back()
                raise

    def _complete(self, position: tuple[int, int], *, is_dirty: bool, is_large: bool) -> None:
        """Commit what is left. Changes that are not about chunks do not need it: to read them again costs less."""
        if is_dirty:
            self._commit(*position)
        elif position != self.last_applied:
            self._beyond = position
        if is_large:  # the next change is probably a small one
            self._writer.wait_merging_threads()
            self._writer = None

    def _ensure_writer(self, chunks: int = 0, *, may_replace: bool = False) -> bool:
        """Open a writer for a number of chunks; return whether they are many."""
        is_large = chunks > SMALL_CHUNKS
        if is_large and may_replace and self._writer is not None:
            self._writer.wait_merging_threads()
            self._writer = None
        if self._writer is None:
            self._writer = self._index.writer(ARENA_BYTES if is_large else SMALL_ARENA_BYTES, 1)
        return is_large

    def _roll_back(self) -> None:
        """Drop the incomplete batch, which the next commit would include otherwise."""
        if self._writer is None:
            return
        try:
            self._writer.rollback()
        except ValueError:  # its threads have ended
            self._writer = None

    def reload(self, store: Store) -> None:
        """Load what another process wrote."""
        with self._lock:
            signature = self._sign()
            if signature is None or signature != self._signature:
                self._reload()
                self._signature = signature
            seq, stamp = self._marker
            changes = takewhile(lambda change: not _concerns_chunks(change), store.changes(seq, BATCH_CHANGES))
            for change in changes:
                seq, stamp = change.seq, change.stamp
            self._beyond = seq, stamp

    def _sign(self) -> tuple[int, int, int] | None:
        """Return what tells one commit of another process from the next."""
        try:
            status = (self._folder / "meta.json").stat() if self._folder else None
        except OSError:
            return None
        return (status.st_ino, status.st_size, status.st_mtime_ns) if status else None

    def finish(self) -> None:
        """Wait for merges and release the writer: the index is read-only from now on."""
        with self._lock:
            if self._beyond is not None and not self.is_read_only:
                self._ensure_writer()
                self._commit(*self._beyond)
            if self._writer is not None:
                self._writer.wait_merging_threads()
            self._writer, self.is_read_only = None, True

    def close(self) -> None:
        """Release the writer at once, and delete the private copy of a read-only folder."""
        self._writer = None
        if self._private is not None:
            self._private.cleanup()

    def search(self, text: str, filter: Filter | None, limit: int, weights: Weights | None = None) -> dict[int, float]:
        """Return the scores of the best chunks, best first."""
        query = self._query(text, weights or Weights())
        if query is None or limit < 1:
            return {}
        weights = weights or Weights()
        searcher, restricted = self._searcher, self._restrict(query, filter)

        def read(depth: int) -> Hits:
            found = searcher.search(restricted, depth, count=False).hits
            addresses = [address for _, address in found]
            labels: Any = searcher.fast_field_values("label", addresses)
            sections: Any = partial(searcher.fast_field_values, "section", addresses)
            return Hits([score for score, _ in found], labels, sections)

        return select(read, limit, weights, has_stretches=self._stretch_count > 0)

    def is_quotation(self, text: str) -> bool:
        """Return whether a query is a heading (perhaps with its parent), an identifier, a number, or quoted text."""
        return self._reader.is_quotation(text, self._has_phrase)

    def _has_phrase(self, terms: Sequence[str]) -> bool:
        phrase = Query.phrase_query(self._schema, "all", [*terms], slop=QUOTATION_SLOP)
        return bool(self._searcher.search(phrase, 1, count=False).hits)

    def count_facets(self, text: str | None, filter: Filter | None) -> dict[str, dict[str, int]]:
        """Count the chunks with each value of each facet, among those that match."""
        query = self._query(normalize_query(text), Weights()) if text else self._all_chunks()
        if query is None:
            return {}
        request = {"facets": {"terms": {"field": "facets", "size": 10_000}}}
        chunks = Query.boolean_query([(MUST, self._restrict(query, filter)), (MUST_NOT, self._stretches())])
        buckets = self._searcher.aggregate(chunks, request)["facets"]["buckets"]
        counts: dict[str, dict[str, int]] = {}
        for bucket in buckets:
            key, _, value = bucket["key"].partition("=")
            counts.setdefault(key, {})[value] = int(bucket["doc_count"])
        return counts

    def document_frequency(self, term: str) -> int:
        """Return how many chunks have a term."""
        return self._reader.document_frequency(term)

    @property
    def languages(self) -> Mapping[str, float]:
        """The share of the chunks in each language that is stemmed by rules of its own."""
        return self._reader.languages

    def suggest_terms(self, word: str) -> list[str]:
        """Return indexed terms with the same first letters and a similar spelling, the nearest first.

        Like an identifier are identifiers: `read_parqet` is not near `read`.
        """
        field = "names" if extract_identifiers(word) else "all"
        alike = self._searcher.terms_with_prefix(field, word.lower()[:SUGGESTION_PREFIX])
        # The others are not alike, and the comparison would find that out in ten times the time.
        shortest, longest = len(word) * MIN_LENGTH_SHARE, len(word) / MIN_LENGTH_SHARE
        terms = [term for term, _ in alike if shortest <= len(term) <= longest]
        near = get_close_matches(word.lower(), terms, n=3, cutoff=MIN_LIKENESS)
        return [term for term in near if term != word.lower()]

    def _query(self, text: str, weights: Weights) -> Query | None:
        clauses = [(SHOULD, self._to_clause(clause)) for clause in self._reader.clauses(text, weights)]
        return Query.boolean_query(clauses) if clauses else None

    def _to_clause(self, clause: Clause) -> Query:
        if len(clause.terms) == 1:  # as a phrase it would panic
            query = Query.term_query(self._schema, clause.field, clause.terms[0])
        else:
            query = Query.phrase_query(self._schema, clause.field, [*clause.terms], slop=clause.slop)
        return query if clause.weight == 1 else Query.boost_query(query, clause.weight)

    def _stretches(self) -> Query:
        return Query.term_query(self._schema, "kind", STRETCH)

    def _all_chunks(self) -> Query:
        return Query.range_query(self._schema, "rowid", tantivy.FieldType.Integer, 0, 2**62)

    def _restrict(self, query: Query, filter: Filter | None) -> Query:
        if filter is None:
            return query
        # A filter must not score.
        passes = Query.const_score_query(self._to_query(filter), 0.0)
        return Query.boolean_query([(MUST, query), (MUST, passes)])

    def _to_query(self, filter: Filter) -> Query:
        match filter:
            case OneOf(key, values):
                return Query.term_set_query(self._schema, "facets", [f"{key}={value}" for value in values])
            case Missing(key):
                has = Query.term_query(self._schema, "facet_keys", key)
                return Query.boolean_query([(MUST, self._all_chunks()), (MUST_NOT, has)])
            case AllOf(filters):
                return Query.boolean_query([(MUST, self._to_query(item)) for item in filters])
            case AnyOf(filters):
                return Query.boolean_query([(SHOULD, self._to_query(item)) for item in filters])

    def _remove(self, first: int, last: int) -> None:
        if first <= last:
            deleted = Query.range_query(self._schema, "rowid", tantivy.FieldType.Integer, first, last)
            self._writer.delete_documents_by_query(deleted)

    def _commit(self, seq: int, stamp: int) -> None:
        self._writer.delete_documents_by_term("rowid", MARKER)
        self._writer.add_document(tantivy.Document(rowid=MARKER, seq=seq, stamp=stamp))
        self._writer.commit()
        self._beyond = None
        self._reload()

    def _reload(self) -> None:
        self._index.reload()
        self._searcher = searcher = self._index.searcher()
        stretches: Any = searcher.search(self._stretches(), 1)
        self._stretch_count = int(stretches.count)
        self._reader = QueryReader(searcher)

    def _open(self, read_only: bool) -> tantivy.Index:
        folder = self._folder
        index = tantivy.Index(self._schema) if folder is None else self._open_folder(folder, read_only)
        index.register_tokenizer("words", analyzer())  # an index does not record it
        index.config_reader("manual")
        return index

    def _open_folder(self, folder: Path, read_only: bool) -> tantivy.Index:
        version = folder / "version.json"
        if not read_only and (not version.exists() or json.loads(version.read_text()) != ANALYSIS):
            shutil.rmtree(folder, ignore_errors=True)
            make_private_folder(folder.parent)
            folder.mkdir(mode=FOLDER_MODE)
            index = tantivy.Index(self._schema, path=str(folder))
            version.write_text(json.dumps(ANALYSIS))  # the last file: a folder without it is rebuilt
            return index
        if read_only and json.loads(version.read_text()) != ANALYSIS:
            raise IndexVersionMismatch(f"Another version of Bedstone built the index in {folder}. Rebuild it.")
        if not read_only:
            _delete_uncommitted(folder)
        if read_only and not os.access(folder, os.W_OK):
            self._private = TemporaryDirectory(prefix="bedstone-index-")
            folder = _private_view(folder, Path(self._private.name))
        return tantivy.Index.open(str(folder))


def _concerns_chunks(change: Change) -> bool:
    return change.kind == "put" or change.gone_first <= change.gone_last


def _chunks_of(change: Change) -> int:
    return change.last - change.first + 1 if change.kind == "put" else 0


def _delete_uncommitted(folder: Path) -> None:
    """Delete files of deletions that a killed process never committed: the next commit would fail on them."""
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
    """Fill a folder with the same files: to open an index, tantivy must write a lock beside it."""
    for path in folder.iterdir():
        if path.suffix == ".json":
            shutil.copyfile(path, view / path.name)
        elif path.suffix != ".lock":
            (view / path.name).symlink_to(path.resolve())
    return view


def _schema() -> Any:
    builder = tantivy.SchemaBuilder()
    for name in ("rowid", "label", "section", "seq", "stamp"):
        builder.add_integer_field(name, indexed=name == "rowid", fast=True)
    builder.add_text_field("facets", tokenizer_name="raw", index_option="basic", fast=True)
    builder.add_text_field("facet_keys", tokenizer_name="raw", index_option="basic")
    for name in ("all", "head"):
        builder.add_text_field(name, tokenizer_name="words")
    for name in ("heading", "trail"):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("kind", tokenizer_name="raw", index_option="basic")
    for name in ("names", GRAMS, STEMS, ENDINGS):
        builder.add_text_field(name, tokenizer_name="whitespace", index_option="freq")
    return builder.build()
