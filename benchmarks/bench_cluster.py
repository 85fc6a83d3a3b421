"""The search cluster against the embedded index, in turns on the same store: `make bench-cluster`.

Starts three nodes on loopback. CPU times are those of the client and of all nodes together; compare them, not waits.
"""

import argparse
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from bench_search import DATA, ROOT, fill_store, read_chunks, row, shared_data, unpack

from bedstone.records import Chunk, Document, Passage
from bedstone.search.embedders.minilm import MiniLm
from bedstone.search.filters import OneOf
from bedstone.search.index import IndexQuery, SearchIndex
from bedstone.search.indexes.hybrid import HybridIndex
from bedstone.search.indexes.opensearch.index import OpenSearchIndex
from bedstone.settings.sections import OpenSearchSettings
from bedstone.store.engines.sqlite import SqliteStore
from support.opensearch import LONG_RUN, SearchCluster, search_cluster

TURNS = 3
SAMPLE = 1_200  # real vectors, which the others are made of
CHANGES = 40
NARROW = OneOf("part", ("3",))
Times = tuple[float, float, float]  # client, nodes, wait
Work = Callable[[SearchIndex, str, Any], object]
WORKS: dict[str, Work] = {
    "keyword": lambda index, text, _: index.search(IndexQuery(text)),
    "vectors": lambda index, _, vector: index.search(IndexQuery(vector=vector)),
    "hybrid": lambda index, text, vector: index.search(IndexQuery(text, vector)),
    "hybrid, filter of 10 %": lambda index, text, vector: index.search(IndexQuery(text, vector, filter=NARROW)),
    "facet counts": lambda index, text, _: index.count_facets(text, None),
}


class Meter:
    """CPU time of this process and of the nodes, and the wait, since it was made."""

    def __init__(self, cluster: SearchCluster) -> None:
        self._cluster = cluster
        self._client, self._server, self._wall = time.process_time(), cluster.cpu_seconds, time.perf_counter()

    def read(self, count: int) -> Times:
        """Return milliseconds for each of `count` things."""
        client, wall = time.process_time() - self._client, time.perf_counter() - self._wall
        server = self._cluster.cpu_seconds - self._server
        return 1000 * client / count, 1000 * server / count, 1000 * wall / count


def measure_queries(
    indexes: dict[str, SearchIndex], questions: Sequence[tuple[str, Any]], cluster: SearchCluster
) -> None:
    print("\n| query | index | client CPU ms | nodes CPU ms | together | wait ms |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, work in WORKS.items():
        times: dict[str, list[Times]] = {kind: [] for kind in indexes}
        for turn in range(TURNS + 1):
            for kind, index in indexes.items():
                meter = Meter(cluster)
                for text, vector in questions:
                    work(index, text, vector)
                if turn:  # the first one warms up
                    times[kind].append(meter.read(len(questions)))
        for kind, values in times.items():
            client, server, wall = _medians(values)
            server = 0.0 if kind == "embedded" else server  # what nodes do for themselves meanwhile
            row(name, kind, f"{client:.2f}", f"{server:.2f}", f"{client + server:.2f}", f"{wall:.1f}")


def _medians(values: Sequence[Times]) -> Times:
    client, server, wall = (statistics.median(part) for part in zip(*values, strict=True))
    return client, server, wall


def measure_recall(indexes: dict[str, SearchIndex], store: SqliteStore, questions: Sequence[tuple[str, Any]]) -> None:
    chunks = [item.passage.chunk_rowid for item in store.passages_between(0, 2**62)]
    matrix: list[Any] = []
    for start in range(0, len(chunks), 10_000):
        found = store.vectors(range(start + 1, min(start + 10_000, len(chunks)) + 1))
        matrix += [np.frombuffer(found[number], np.float16) for number in sorted(found)]
    exact, rowids = np.array(matrix), np.array(chunks)
    best = [set(rowids[np.argsort(-(exact @ vector.astype(np.float32)))[:10]].tolist()) for _, vector in questions]
    firsts: dict[str, list[list[int]]] = {}
    for kind, index in indexes.items():
        hits = 0
        for (_, vector), wanted in zip(questions, best, strict=True):
            found_now = index.search(IndexQuery(vector=vector, limit=10)).candidates
            hits += len(wanted & {item.rowid for item in found_now})
        firsts[kind] = [
            [item.rowid for item in index.search(IndexQuery(text, vector, limit=10)).candidates]
            for text, vector in questions
        ]
        print(f"\nrecall@10 of vectors, {kind}: {hits / (10 * len(questions)):.3f}")
    ours, theirs = firsts.values()
    same = sum(len(set(a) & set(b)) for a, b in zip(ours, theirs, strict=True)) / (10 * len(questions))
    first = sum(a[:1] == b[:1] for a, b in zip(ours, theirs, strict=True)) / len(questions)
    print(f"\nhybrid: {same:.3f} of the first ten hits are the same in both, {first:.3f} of the first ones")


def measure_changes(indexes: dict[str, SearchIndex], store: SqliteStore, vector: Any, cluster: SearchCluster) -> None:
    print("\n| one new chunk until it is found | client CPU ms | nodes CPU ms | together | wait ms |")
    print("| --- | --- | --- | --- | --- |")
    times: dict[str, list[Times]] = {kind: [] for kind in indexes}
    for number in range(CHANGES):
        word = f"novelty{number:06}x"
        chunk = Chunk(word, "", f"A sentence about {word}.", "", 0, (), {"part": "new"}, None)
        store.put([(Document(word, "", ""), [chunk])])
        rowid = max(store.first_chunks())
        store.put_passages([(Passage(rowid, 0, 5), vector.astype(np.float16).tobytes())])
        for kind, index in indexes.items():
            meter = Meter(cluster)
            index.catch_up()
            found = index.search(IndexQuery(word, vector)).candidates
            times[kind].append(meter.read(1))
            assert rowid in {item.rowid for item in found}, (kind, word)
    for kind, values in times.items():
        client, server, wall = _medians(values[CHANGES // 2 :])
        server = 0.0 if kind == "embedded" else server
        row(kind, f"{client:.1f}", f"{server:.1f}", f"{client + server:.1f}", f"{wall:.1f}")


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and the nodes end too
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=100_000, help="number of chunks")
    parser.add_argument("--shards", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bedstone-bench-") as folder:
        work, model = Path(folder), MiniLm()
        if DATA.is_dir():
            source, queries = unpack(DATA / "docs" / "mdn_content.tar.xz", work / "mdn"), shared_data(work).queries
        else:
            source, queries = ROOT / "docs", ["how are changes followed", "where is the password kept"]
        chunks = read_chunks(work, source)
        sample = chunks[:: max(1, len(chunks) // SAMPLE)][:SAMPLE]
        vectors = model.embed([stored.plain[:600] for stored in sample])
        questions = [(text, model.embed_query(text)) for text in queries]
        with (
            closing(fill_store(work / "store.sqlite", options.size, chunks, vectors)) as store,
            search_cluster(java_options=LONG_RUN) as cluster,
        ):
            settings = OpenSearchSettings(hosts=cluster.addresses, shards=options.shards)
            indexes: dict[str, SearchIndex] = {
                "embedded": HybridIndex.open(store, work / "index", model),
                "cluster": OpenSearchIndex.open(store, None, model, settings=settings),
            }
            for kind, index in indexes.items():
                meter = Meter(cluster)
                index.catch_up()
                client, server, wall = (item / 1000 for item in meter.read(1))
                count = f"{index.chunk_count:,} chunks"
                print(f"\n{kind}: {count}, {client:.0f} + {server:.0f} s of CPU, {wall:.0f} s", flush=True)
            measure_queries(indexes, questions, cluster)
            measure_recall(indexes, store, questions)
            measure_changes(indexes, store, questions[0][1], cluster)
            for index in indexes.values():
                index.close()


if __name__ == "__main__":
    main()
