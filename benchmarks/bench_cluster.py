"""One machine against PostgreSQL and a search cluster, on the same chunks, in turns: `make bench-cluster`.

Starts PostgreSQL and three search nodes on loopback. CPU times are those of this process and of the programs that work
for it; compare them, not waits.
"""

import argparse
import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import numpy as np
from bench_search import DATA, ROOT, fill_store, read_chunks, row, shared_data, unpack

from bedstone.records import Chunk, Document, Passage, StoredChunk
from bedstone.search.embedders.minilm import MiniLm
from bedstone.search.embedding import QueryEmbedder
from bedstone.search.filters import OneOf
from bedstone.search.hits import SearchRequest
from bedstone.search.index import IndexQuery, SearchIndex
from bedstone.search.indexes.hybrid import HybridIndex
from bedstone.search.indexes.opensearch.index import OpenSearchIndex
from bedstone.search.retriever import Retriever
from bedstone.settings.sections import OpenSearchSettings
from bedstone.store.engine import Store
from bedstone.store.engines.postgres import PostgresStore
from bedstone.store.engines.sqlite import SqliteStore
from support.opensearch import LONG_RUN, search_cluster
from support.postgres import DURABLE, postgres_server

TURNS = 3
SAMPLE = 1_200  # real vectors, which the others are made of
CHANGES = 40
NARROW = OneOf("part", ("3",))
Times = tuple[float, float, float]  # this process, the other programs, wait
Question = tuple[str, Any]


@dataclass(frozen=True)
class Deployment:
    """A store and the index that follows it."""

    store: Store
    index: SearchIndex
    retriever: Retriever


Work = Callable[[Deployment, str, Any], object]
WORKS: dict[str, Work] = {
    "keyword": lambda place, text, _: place.index.search(IndexQuery(text)),
    "vectors": lambda place, _, vector: place.index.search(IndexQuery(vector=vector)),
    "hybrid": lambda place, text, vector: place.index.search(IndexQuery(text, vector)),
    "hybrid, filter of 10 %": lambda place, text, vector: place.index.search(IndexQuery(text, vector, filter=NARROW)),
    "facet counts": lambda place, text, _: place.index.count_facets(text, None),
    "ten hits with snippets": lambda place, text, _: place.retriever.search(SearchRequest(text, limit=10)),
}


class Meter:
    """CPU time of this process and of the programs that work for it, and the wait, since it was made."""

    def __init__(self, programs: Iterable[int]) -> None:
        self._programs = list(programs)
        self._own, self._others, self._wall = time.process_time(), self._read_others(), time.perf_counter()

    def read(self, count: int) -> Times:
        """Return milliseconds for each of `count` things."""
        own, wall = time.process_time() - self._own, time.perf_counter() - self._wall
        others = sum(max(0.0, now - self._others.get(key, 0.0)) for key, now in self._read_others().items())
        return 1000 * own / count, 1000 * others / count, 1000 * wall / count

    def _read_others(self) -> Mapping[int, float]:
        """Return the CPU time of each program so far, and of the processes that it started."""
        started = [Path(f"/proc/{number}/task/{number}/children").read_text().split() for number in self._programs]
        return {number: cpu_seconds(number) for number in (*self._programs, *map(int, chain(*started)))}


def cpu_seconds(process: int) -> float:
    """Return the CPU time of a process so far, on Linux; none once it has ended."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    except FileNotFoundError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Bench:
    """What is compared, by name; `programs` are the numbers of the processes that work for each."""

    places: Mapping[str, Deployment]
    programs: Mapping[str, Sequence[int]]
    questions: Sequence[Question]
    model: MiniLm

    def meter(self, name: str) -> Meter:
        """Start to measure one of them."""
        return Meter(self.programs[name])

    def measure_indexing(self) -> None:
        heading("", "chunks", "own CPU s", "other CPU s", "wait s")
        for name, place in self.places.items():
            meter = self.meter(name)
            place.index.catch_up()
            row(name, f"{place.index.chunk_count:,}", *(f"{part / 1000:.1f}" for part in meter.read(1)))

    def measure_queries(self) -> None:
        heading("query", "", "own CPU ms", "other CPU ms", "together", "wait ms")
        for kind, work in WORKS.items():
            times: dict[str, list[Times]] = {name: [] for name in self.places}
            for turn in range(TURNS + 1):
                for name, place in self.places.items():
                    meter = self.meter(name)
                    for text, vector in self.questions:
                        work(place, text, vector)
                    if turn:  # the first one warms up
                        times[name].append(meter.read(len(self.questions)))
            for name, values in times.items():
                own, others, wall = medians(values)
                row(kind, name, *(f"{part:.2f}" for part in (own, others, own + others)), f"{wall:.1f}")

    def measure_recall(self) -> None:
        store = self.places["embedded"].store
        exact, rowids = read_vectors(store)
        best = [set(rowids[np.argpartition(-(exact @ vector), 10)[:10]].tolist()) for _, vector in self.questions]
        del exact
        firsts: dict[str, list[list[int]]] = {}
        count = len(self.questions)
        heading("", "recall@10 of vectors")
        for name, place in self.places.items():
            hits = 0
            for (_, vector), wanted in zip(self.questions, best, strict=True):
                found = place.index.search(IndexQuery(vector=vector, limit=10)).candidates
                hits += len(wanted & {item.rowid for item in found})
            row(name, f"{hits / (10 * count):.3f}")
            firsts[name] = [
                [item.rowid for item in place.index.search(IndexQuery(text, vector, limit=10)).candidates]
                for text, vector in self.questions
            ]
        heading("", "the same among the first ten hybrid hits", "the same first hit")
        for (name, ours), (other, theirs) in combinations(firsts.items(), 2):
            same = sum(len(set(a) & set(b)) for a, b in zip(ours, theirs, strict=True)) / (10 * count)
            first = sum(a[:1] == b[:1] for a, b in zip(ours, theirs, strict=True)) / count
            row(f"{name}, {other}", f"{same:.3f}", f"{first:.3f}")

    def measure_changes(self) -> None:
        """Add documents of one chunk; measure until each is found by a word and by its vector."""
        heading("one new chunk until it is found", "own CPU ms", "other CPU ms", "together", "wait ms")
        times: dict[str, list[Times]] = {name: [] for name in self.places}
        for number in range(CHANGES):
            for name, place in self.places.items():
                word = f"novelty{number:06}x{'abc'[list(self.places).index(name)]}"
                meter = self.meter(name)
                rowid = put_chunk(place.store, word, self.model)
                place.index.catch_up()
                found = place.index.search(IndexQuery(word, self.model.embed_query(word))).candidates
                times[name].append(meter.read(1))
                assert rowid in {item.rowid for item in found}, (name, word)
        for name, values in times.items():
            own, others, wall = medians(values[CHANGES // 2 :])
            row(name, *(f"{part:.1f}" for part in (own, others, own + others, wall)))


def heading(*cells: str) -> None:
    print()
    row(*cells)
    row(*["---"] * len(cells))


def medians(values: Sequence[Times]) -> Times:
    own, others, wall = (statistics.median(part) for part in zip(*values, strict=True))
    return own, others, wall


def read_vectors(store: Store) -> tuple[Any, Any]:
    """Return the vectors of a store, and the numbers of their chunks."""
    passages = list(store.passages_between(0, 2**62))
    matrix = np.empty((len(passages), 384), np.float32)
    for start in range(0, len(passages), 10_000):
        batch = [item.id for item in passages[start : start + 10_000]]
        vectors = store.vectors(batch)
        matrix[start : start + len(batch)] = [np.frombuffer(vectors[number], np.float16) for number in batch]
    return matrix, np.array([item.passage.chunk_rowid for item in passages])


def put_chunk(store: Store, word: str, model: MiniLm) -> int:
    """Add a document of one chunk and its vector; return the number of the chunk."""
    text = f"A sentence about {word}."
    store.put([(Document(word, "", ""), [Chunk(word, "", text, "", 0, (), {"part": "new"}, None)])])
    (stored,) = store.chunks_of(word)
    vector = model.embed([text])[0].astype(np.float16).tobytes()
    store.put_passages([(Passage(stored.head.rowid, 0, len(text)), vector)])
    return stored.head.rowid


def read_material(work: Path, model: MiniLm) -> tuple[list[StoredChunk], Any, list[Question]]:
    """Return chunks, vectors of some of them, and questions."""
    if DATA.is_dir():
        source, queries = unpack(DATA / "docs" / "mdn_content.tar.xz", work / "mdn"), shared_data(work).queries
    else:
        source, queries = ROOT / "docs", ["how are changes followed", "where is the password kept"]
    chunks = read_chunks(work, source)
    sample = chunks[:: max(1, len(chunks) // SAMPLE)][:SAMPLE]
    vectors = model.embed([stored.plain[:600] for stored in sample])
    return chunks, vectors, [(text, model.embed_query(text)) for text in queries]


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and the programs end too
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=100_000, help="number of chunks")
    parser.add_argument("--shards", type=int, default=1)
    parser.add_argument("--without-cluster", action="store_true", help="leave out the search cluster")
    options = parser.parse_args()
    model = MiniLm()
    with tempfile.TemporaryDirectory(prefix="bedstone-bench-") as folder, ExitStack() as stack:
        work = Path(folder)
        chunks, vectors, questions = read_material(work, model)
        postgres = stack.enter_context(postgres_server(DURABLE))
        heading("store", "own CPU s", "PostgreSQL, CPU s", "wait s")
        stores: dict[str, Store] = {}
        for name in ("SQLite", "PostgreSQL"):
            meter = Meter([postgres.process_id])
            new = SqliteStore(work / "store.sqlite") if name == "SQLite" else PostgresStore.open(postgres.address())
            stores[name] = stack.enter_context(closing(fill_store(new, options.size, chunks, vectors)))
            row(name, *(f"{part / 1000:.1f}" for part in meter.read(1)))
        sqlite, shared = stores["SQLite"], stores["PostgreSQL"]
        own = "PostgreSQL, own index"
        indexes: dict[str, tuple[Store, SearchIndex]] = {
            "embedded": (sqlite, HybridIndex.open(sqlite, work / "embedded", model)),
            own: (shared, HybridIndex.open(shared, work / "local", model)),
        }
        programs = {"embedded": [], own: [postgres.process_id]}
        if not options.without_cluster:
            name = "PostgreSQL, search cluster"
            nodes = stack.enter_context(search_cluster(java_options=LONG_RUN))
            settings = OpenSearchSettings(hosts=nodes.addresses, shards=options.shards)
            indexes[name] = (shared, OpenSearchIndex.open(shared, None, model, settings=settings))
            programs[name] = [postgres.process_id, *(node.process.pid for node in nodes.nodes if node.process)]
        places = {
            name: Deployment(
                store, stack.enter_context(closing(index)), Retriever(store, index, QueryEmbedder(lambda: model))
            )
            for name, (store, index) in indexes.items()
        }
        bench = Bench(places, programs, questions, model)
        bench.measure_indexing()
        bench.measure_queries()
        bench.measure_changes()
        bench.measure_recall()


if __name__ == "__main__":
    main()
