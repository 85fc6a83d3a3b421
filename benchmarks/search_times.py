"""Measure how the CPU times of hybrid searches are spread, for `scale_model.py`: `benchmarks/search_times.py`."""

import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
from bench_search import DATA, fill_store, own_data, read_chunks, shared_data

from bedstone.search.embedders.minilm import MiniLm
from bedstone.search.index import IndexQuery
from bedstone.search.indexes.hybrid import HybridIndex
from bedstone.search.indexes.keyword import KeywordIndex
from bedstone.search.indexes.vector import VectorIndex
from bedstone.store.engines.sqlite import SqliteStore

SIZES = (1_000, 10_000, 100_000)
SAMPLE = 1_200  # passages whose vectors are resampled
TURNS = 3  # the first is not counted


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="bedstone-bench-") as folder:
        work = Path(folder)
        data = shared_data(work) if DATA.is_dir() else own_data(work)
        model, chunks = MiniLm(), read_chunks(work, data.large_corpus)
        picked = [item.plain[:400] for item in random.Random(1).choices(chunks, k=SAMPLE)]
        vectors = np.concatenate([np.asarray(model.embed(picked[at : at + 64])) for at in range(0, SAMPLE, 64)])
        questions = [(text, model.embed_query(text)) for text in data.queries]
        show("embedding a query", [milliseconds(partial(model.embed_query, text)) for text in data.queries])
        for size in SIZES:
            store = SqliteStore(work / f"{size}.sqlite")
            with closing(fill_store(store, size, chunks, vectors.astype(np.float32))):
                words, near = KeywordIndex(work / f"{size}.words"), VectorIndex(store, 384, model.max_component)
                words.catch_up(store)
                near.catch_up()
                index = HybridIndex(store, words, near)
                searches = [partial(index.search, IndexQuery(text, vector)) for text, vector in questions]
                turns = [list(map(milliseconds, searches)) for _ in range(TURNS)]
                show(f"hybrid search in {size:,} chunks", [item for turn in turns[1:] for item in turn])
                words.finish()


def milliseconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return (time.process_time() - started) * 1000


def show(name: str, times: Sequence[float]) -> None:
    known, mean = sorted(times), statistics.fmean(times)
    marks = ", ".join(f"p{share} {known[len(known) * share // 100]:.2f}" for share in (50, 95, 99))
    print(f"{name}: mean {mean:.2f} ms, {marks}, spread {statistics.pstdev(times) / mean:.2f}", flush=True)


if __name__ == "__main__":
    main()
