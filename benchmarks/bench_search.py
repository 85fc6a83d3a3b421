"""Search: quality and cost over stdio, and the engine against its libraries as a corpus grows: `make bench-search`.

Uses the data folder next to the checkout (or $BEDSTONE_BENCH_DATA); without one, the demo content and our own docs.
Compare CPU times and ratios. The floor is tantivy and usearch, called directly in the same process on the same index.
"""

import argparse
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import tantivy

from bedstone.records import Chunk, Document, Passage, StoredChunk
from bedstone.search.embedders.minilm import MiniLm
from bedstone.search.embedding import QueryEmbedder
from bedstone.search.filters import OneOf, matches
from bedstone.search.hits import SearchRequest
from bedstone.search.index import IndexQuery
from bedstone.search.indexer import embed_missing
from bedstone.search.indexes.hybrid import HybridIndex
from bedstone.search.indexes.keyword import KeywordIndex
from bedstone.search.indexes.segments.nearest import products
from bedstone.search.indexes.vector import VectorIndex
from bedstone.search.retriever import Retriever
from bedstone.search.terms import stop_terms, terms
from bedstone.store.engine import Store
from bedstone.store.engines.sqlite import SqliteStore

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("BEDSTONE_BENCH_DATA", ROOT.parent / "shared" / "data"))
BEDSTONE = Path(sys.executable).with_name("bedstone")
QUERIES = 150
FUSION_MS = 0.3
TURNS = 3
CHANGES = 43  # the first three warm up
NOISE = 0.15  # added to resampled vectors, so that no two are equal
PROVIDERS = ("none", "minilm")
AnyStore = TypeVar("AnyStore", bound=Store)


@dataclass(frozen=True)
class Corpus:
    """Documents, and cases that expect chunks or files of them."""

    name: str
    source: Path
    cases: Path


@dataclass(frozen=True)
class BenchData:
    """What to measure with: corpora by the kind of their cases, one to grow from, and texts to embed."""

    known_items: Sequence[Corpus]
    questions: Sequence[Corpus]
    large_corpus: Path
    vector_corpus: str  # a corpus whose index with vectors is built before
    queries: Sequence[str]
    texts: Sequence[str]


def own_data(work: Path) -> BenchData:
    """Use the demo content and the docs of the project."""
    demo, docs = work / "demo", work / "docs"
    shutil.copytree(ROOT / "demo" / "docs", demo)
    shutil.copytree(ROOT / "docs", docs, ignore=shutil.ignore_patterns("reference", "images", "*.py", "__pycache__"))
    questions = Corpus("docs", docs, ROOT / "benchmarks" / "questions.json")
    queries = [case["query"] for case in json.loads(questions.cases.read_text())]
    texts = [path.read_text() for path in sorted(docs.rglob("*.md"))]
    known_items = [Corpus("demo", demo, ROOT / "demo" / "questions.json")]
    return BenchData(known_items, [questions], docs, "docs", queries, texts)


def shared_data(work: Path) -> BenchData:
    """Use the public corpora and labelled sets of the data folder."""
    known_items = [
        Corpus(name, unpack(DATA / "docs" / f"{name}.tar.xz", work / name), DATA / "docs" / f"{name}.cases.json")
        for name in ("python-sdk", "sdks")
    ]
    questions = [_labelled_corpus(work, name) for name in ("ray_docs", "k8s_docs_kubefix")]
    queries = [json.loads(line)["text"] for line in _read_lines(work, "ray_docs", "queries.jsonl")][:QUERIES]
    texts = [json.loads(line)["text"] for line in _read_lines(work, "scifact", "corpus.jsonl")][:200]
    large = unpack(DATA / "docs" / "mdn_content.tar.xz", work / "mdn")
    return BenchData(known_items, questions, large, "sdks", queries, texts)


def _labelled_corpus(work: Path, name: str) -> Corpus:
    """Write the documents of a labelled set as files, to chunk and search them like any corpus."""
    source, paths = work / f"{name}-files", {}
    for document in map(json.loads, _read_lines(work, name, "corpus.jsonl")):
        path = source / _file_name(document["_id"], document["text"])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(document["text"])
        paths[document["_id"]] = path.relative_to(source).as_posix()
    answers = dict(line.split("\t")[:2] for line in _read_lines(work, name, "qrels/test.tsv")[1:])
    cases = [
        {"query": question["text"], "expectedFiles": {paths[answers[question["_id"]]]: 1}}
        for question in map(json.loads, _read_lines(work, name, "queries.jsonl"))
        if question["_id"] in answers
    ]
    file = work / f"{name}.cases.json"
    file.write_text(json.dumps(cases))
    return Corpus(name, source, file)


def row(*cells: object) -> None:
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def unpack(archive: Path, folder: Path) -> Path:
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    name = archive.name.removesuffix(".tar.xz")
    return folder / name if (folder / name).is_dir() else folder


def cpu_of(*command: str | Path) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def measure_known_items(work: Path, corpora: Sequence[Corpus]) -> None:
    """Measure known-item cases over stdio, and the cost of builds."""
    print("\n## Known-item cases over stdio\n")
    row(
        "corpus", "vectors", "MRR@5", "nDCG@5", "hit@5", "CPU ms", "p50 ms", "p95 ms", "peak MB", "start ms", "index MB"
    )
    row(*["---"] * 11)
    builds: list[tuple[str, str, float, float, float, float]] = []
    for corpus in corpora:
        for path in corpus.source.rglob("*.md"):
            os.utime(path, (1e9, 1e9))
        size = sum(path.stat().st_size for path in corpus.source.rglob("*.md")) / 1e6
        for provider in PROVIDERS:
            index = work / f"{corpus.name}-{provider}"
            cache = work / f"{index.name}-cache"  # empty, so that all vectors are made
            kind = ("--embedding-provider", provider, "--cache-dir", cache)
            build = (BEDSTONE, "docs", "build", corpus.source, "--out", index, *kind)
            cold = cpu_of(*build)
            report = evaluate(work, corpus.cases, index)
            quality, times = report["quality"], report["search_ms"]
            row(
                corpus.name,
                provider,
                *(quality[key] for key in ("mrr@5", "ndcg@5", "hit@5")),
                report["cpu_ms_per_search"],
                times["p50"],
                times["p95"],
                report["peak_rss_mb"],
                report["ready_ms"],
                f"{megabytes(index):.1f}",
            )
            unchanged = cpu_of(*build)
            page = next(corpus.source.rglob("README.md"), None) or next(corpus.source.rglob("*.md"))
            page.write_text(page.read_text() + "\nOne more sentence.\n")
            os.utime(page, (1.1e9, 1.1e9))
            builds.append((corpus.name, provider, cold, cold / size, cpu_of(*build), unchanged))
    print("\n## Builds, CPU seconds of the whole command\n")
    row("corpus", "vectors", "cold", "cold, per MB", "one file changed", "nothing changed")
    row(*["---"] * 6)
    for name, provider, *times in builds:
        row(name, provider, *(f"{item:.2f}" for item in times))


def measure_questions(work: Path, corpora: Sequence[Corpus]) -> None:
    """Measure questions over stdio that one file of a corpus answers."""
    print("\n## Questions over stdio, the right file among the first five\n")
    row("corpus", "files", "questions", "vectors", "MRR@5", "nDCG@5", "hit@5", "CPU ms")
    row(*["---"] * 8)
    for corpus in corpora:
        files = sum(path.is_file() for path in corpus.source.rglob("*"))
        for provider in PROVIDERS:
            index = work / f"{corpus.name}-{provider}"
            cpu_of(BEDSTONE, "docs", "build", corpus.source, "--out", index, "--embedding-provider", provider)
            report = evaluate(work, corpus.cases, index)
            quality = [report["quality"][key] for key in ("mrr@5", "ndcg@5", "hit@5")]
            row(corpus.name, files, report["cases"], provider, *quality, report["cpu_ms_per_search"])


def _file_name(identity: str, text: str) -> str:
    """Return the file name of a document; some sets leave out the suffix."""
    if identity.endswith(".md"):
        return identity
    is_rst = re.search(r"^(\.\. \w|([=~^-])\2{3,}$)", text, re.MULTILINE) and not re.search("^# ", text, re.MULTILINE)
    return f"{identity}.rst" if is_rst else f"{identity}.md"


def evaluate(work: Path, cases: Path, index: Path) -> Any:
    """Run `bedstone eval run` against a server of an index; return its report."""
    report = work / "report.json"
    command = (BEDSTONE, "eval", "run", "--cases", cases, "--json", report, "--data-dir", work)
    server = (BEDSTONE, "serve", "--toolsets", "docs", "--docs-index", index)
    subprocess.run((*command, "--", *server), check=True, capture_output=True)
    return json.loads(report.read_text())


def read_chunks(work: Path, source: Path) -> list[StoredChunk]:
    """Build an index without vectors; return its chunks."""
    index = work / "large-index"
    seconds = cpu_of(BEDSTONE, "docs", "build", source, "--out", index, "--embedding-provider", "none")
    with closing(open_index(index)) as store:
        chunks = list(store.chunks_between(0, 2**62))
    name, size = source.name, megabytes(index)
    print(f"\n{name}: {len(chunks)} chunks, keyword index built in {seconds:.1f} s of CPU, {size:.0f} MB.")
    return chunks


def read_vectors(index: Path) -> np.ndarray[Any, Any]:
    """Return the vectors of an index, to resample from."""
    with closing(open_index(index)) as store:
        ids = [item.id for item in store.passages_between(0, 2**62)]
        vectors = store.vectors(ids)
    return np.frombuffer(b"".join(vectors[number] for number in ids), np.float16).reshape(-1, 384).astype(np.float32)


def open_index(index: Path) -> SqliteStore:
    generation = index / json.loads((index / "metadata.json").read_text())["index"]["generation"]
    return SqliteStore(generation / "store.sqlite", read_only=True)


def fill_store(store: AnyStore, size: int, chunks: Sequence[StoredChunk], vectors: np.ndarray[Any, Any]) -> AnyStore:
    """Put `size` chunks of one passage each into an empty store."""
    random = np.random.default_rng(size)

    def documents() -> Iterator[tuple[Document, list[Chunk]]]:
        for number in range(size):
            stored = chunks[number % len(chunks)]
            head, facets = stored.head, {"part": str(number % 10)}
            chunk = Chunk(str(number), "", stored.plain, head.heading, head.level, head.breadcrumb, facets, head.page)
            yield Document(str(number), "", ""), [chunk]

    store.put(documents())
    for start in range(0, size, 10_000):
        count = min(10_000, size - start)
        picked = vectors[random.integers(0, len(vectors), count)]
        noisy = picked + random.normal(size=picked.shape).astype(np.float32) * NOISE / np.sqrt(picked.shape[1])
        noisy /= np.linalg.norm(noisy, axis=1, keepdims=True)
        halves = noisy.astype(np.float16)
        store.put_passages([(Passage(start + row_ + 1, 0, 1), halves[row_].tobytes()) for row_ in range(count)])
    return store


def cpu_ms(work: Callable[[Any], object], items: Sequence[Any]) -> float:
    for item in items[:10]:
        work(item)
    started = time.process_time()
    for item in items:
        work(item)
    return (time.process_time() - started) / len(items) * 1000


def floor_words(words: KeywordIndex, text: str) -> object:
    """Run the cheapest tantivy query: the terms as an OR, the best hundred hits with their row ids."""
    schema, searcher = words._schema, words._searcher  # noqa: SLF001
    wanted = [term for term in dict.fromkeys(terms(text)) if term not in stop_terms()] or terms(text)
    clauses = [(tantivy.Occur.Should, tantivy.Query.term_query(schema, "all", term)) for term in wanted]
    hits = searcher.search(tantivy.Query.boolean_query(clauses), 100, count=False).hits
    return searcher.fast_field_values("rowid", [address for _, address in hits])


def measure_growth(work: Path, data: BenchData, sizes: Sequence[int]) -> None:
    """Compare the engine with its libraries at several sizes."""
    model = MiniLm()
    chunks, vectors = read_chunks(work, data.large_corpus), read_vectors(work / f"{data.vector_corpus}-minilm")
    embedding = cpu_ms(model.embed_query, data.queries)
    questions = [(text, model.embed_query(text)) for text in data.queries]
    print(f"\n## Growth, CPU ms per query ({len(questions)} questions; embedding one takes {embedding:.2f} ms)\n")
    head = ("chunks", "tantivy alone", "usearch alone", "keyword", "vectors", "hybrid", "filtered", "hybrid / floor")
    row(*head, "filtered / floor", "recall@10", "filtered recall@10", "index s", "peak MB")
    row(*["---"] * 13)
    changes = []
    for size in sizes:
        folder = work / f"growth-{size}"
        folder.mkdir()
        with closing(fill_store(SqliteStore(folder / "store.sqlite"), size, chunks, vectors)) as store:
            measure_size(store, folder, model, questions)
            changes.append(measure_changes(store, folder, model, size))
        shutil.rmtree(folder)
    print("\n## One more document of one chunk, CPU ms until keywords and vectors find it\n")
    row(
        "chunks", "store", "keywords", "embed", "vectors", "search", "sum", "sum / first", "open s, wall", "open s, CPU"
    )
    row(*["---"] * 10)
    for cost in changes:
        row(*cost.cells(changes[0]))


@dataclass(frozen=True)
class ChangeCost:
    """What one change costs at a size, and opening the index."""

    size: int
    parts: Sequence[float]
    open_wall: float
    open_cpu: float

    def cells(self, first: "ChangeCost") -> list[str]:
        """Return a row of the table."""
        total = sum(self.parts)
        figures = [f"{item:.2f}" for item in (*self.parts, total, total / sum(first.parts))]
        return [f"{self.size:,}", *figures, f"{self.open_wall:.2f}", f"{self.open_cpu:.2f}"]


def measure_changes(store: SqliteStore, folder: Path, model: MiniLm, size: int) -> ChangeCost:
    """Open an index that is kept in a folder, and add documents one by one, like a server does."""
    wall, cpu = time.perf_counter(), time.process_time()
    index = HybridIndex.open(store, folder, model)
    index.catch_up()
    index.search(IndexQuery("open", model.embed_query("open")))
    opened = time.perf_counter() - wall, time.process_time() - cpu
    rounds: list[list[float]] = []
    for number in range(CHANGES):
        name = f"added-{number}"
        text = f"Zebra number {number} crosses the savannah at dawn, and river {name} is wide."
        chunk = Chunk(name, text, text, facets={"part": str(number % 10)})
        steps: list[Callable[[], object]] = [
            lambda name=name, chunk=chunk: store.put([(Document(name, "", ""), [chunk])]),  # type: ignore[misc]
            index.catch_up,
            lambda name=name: embed_missing(store, model, document_id=name),  # type: ignore[misc]
            index.catch_up,
            lambda text=text: index.search(IndexQuery(text, model.embed_query(text))),  # type: ignore[misc]
        ]
        marks = [time.process_time()]
        for step in steps:
            step()
            marks.append(time.process_time())
        rounds.append([(end - start) * 1000 for start, end in pairwise(marks)])
    index.close()
    return ChangeCost(size, [statistics.mean(values) for values in zip(*rounds[3:], strict=True)], *opened)


def measure_size(store: SqliteStore, folder: Path, model: MiniLm, questions: Sequence[Any]) -> None:
    words = KeywordIndex(folder / "words")
    near = VectorIndex(store, 384, model.max_component, folder / "vectors")
    started = time.process_time()
    words.catch_up(store)
    near.catch_up()
    near.finish()
    indexed = time.process_time() - started
    index = HybridIndex(store, words, near)
    retriever = Retriever(store, index, QueryEmbedder(lambda: model))
    narrow = OneOf("part", ("3",))
    floor_w = cpu_ms(lambda item: floor_words(words, item[0]), questions)
    floor_v = cpu_ms(lambda item: _floor_vectors(near, item[1]), questions)
    just_words = cpu_ms(lambda item: index.search(IndexQuery(item[0])), questions)
    just_vectors = cpu_ms(lambda item: near.search(item[1], 100), questions)
    hybrid = cpu_ms(lambda item: index.search(IndexQuery(item[0], item[1])), questions)
    filtered = cpu_ms(lambda item: index.search(IndexQuery(item[0], item[1], filter=narrow)), questions)
    floor = floor_w + floor_v + FUSION_MS
    size = store.counts().chunks
    row(
        f"{size:,}",
        *(f"{item:.2f}" for item in (floor_w, floor_v, just_words, just_vectors, hybrid, filtered)),
        f"{hybrid / floor:.2f}",
        f"{filtered / floor:.2f}",
        f"{recall(store, near, questions, None):.3f}",
        f"{recall(store, near, questions, narrow):.3f}",
        f"{indexed:.1f}",
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}",
    )
    # Measured in turns, with the model in the same loop, because it evicts the processor's cache.
    pairs = [
        (
            cpu_ms(lambda item: retriever.select(SearchRequest(item[0]), 10), questions),
            cpu_ms(lambda item: floor_whole(words, near, model, item[0]), questions) + FUSION_MS,
        )
        for _ in range(TURNS)
    ]
    whole, floor = (statistics.median(values) for values in zip(*pairs, strict=True))
    ratio = statistics.median(ours / theirs for ours, theirs in pairs)
    print(
        f"\nEnd to end at {size:,}, with embedding: {whole:.2f} ms, the libraries {floor:.2f} ms, ratio {ratio:.2f}\n",
        flush=True,
    )
    near.save()
    words.finish()
    words.close()


def floor_whole(words: KeywordIndex, near: VectorIndex, model: MiniLm, text: str) -> None:
    """Run a query with the libraries only."""
    query = model.embed_query(text)
    floor_words(words, text)
    _floor_vectors(near, query)


def _floor_vectors(near: VectorIndex, query: np.ndarray[Any, Any]) -> None:
    """Ask the libraries for the nearest, in every segment."""
    code = near._reader.quantize(query)  # noqa: SLF001
    for part in near._state.snapshot.parts:  # noqa: SLF001
        if part.segment.graph is not None:
            part.segment.graph.index.search(code, 100, threads=1)
        else:
            products(code, part.segment.codes)


def recall(store: SqliteStore, near: VectorIndex, questions: Sequence[Any], condition: OneOf | None) -> float:
    """Return the share of the ten nearest chunks that the index finds, compared with exact search."""
    items = list(store.passages_between(0, 2**62))
    ids, rowids = [item.id for item in items], np.array([item.passage.chunk_rowid for item in items])
    inside = np.array([condition is None or matches(condition, item.facets) for item in items])
    best = [np.empty((0, 2)) for _ in questions]
    for start in range(0, len(ids), 20_000):  # never all in memory
        part = ids[start : start + 20_000]
        vectors = store.vectors(part)
        exact = np.frombuffer(b"".join(vectors[number] for number in part), np.float16).reshape(-1, 384)
        rows, chunks = exact.astype(np.float32), rowids[start : start + 20_000]
        for at, (_, query) in enumerate(questions):
            scores = np.where(inside[start : start + 20_000], rows @ query, -2.0)
            top = np.argsort(-scores)[:10]
            both = np.vstack([best[at], np.column_stack([scores[top], chunks[top]])])
            best[at] = both[np.argsort(-both[:, 0])[:10]]
    hits = 0
    for (_, query), known in zip(questions, best, strict=True):
        cosines = near.search(query, 100, condition).cosines
        found = sorted(cosines, key=lambda rowid: -cosines[rowid])[:10]
        hits += len(set(found) & set(known[:, 1].astype(int).tolist()))
    return hits / (10 * len(questions))


def _read_lines(work: Path, name: str, file: str) -> list[str]:
    folder = unpack(DATA / "retrieval" / f"{name}.tar.xz", work / name)
    return (folder / file).read_text().splitlines()


def measure_embedding(work: Path, texts: Sequence[str]) -> None:
    """Measure passages per CPU second, also of sentence-transformers if BEDSTONE_TORCH_PYTHON has it."""
    model = MiniLm()
    passages = [text[start:end] for text in texts for start, end in model.split("", text)]
    model.embed(passages[:5])
    started = time.process_time()
    model.embed(passages)
    speed = len(passages) / (time.process_time() - started)
    print(f"\n## Embedding\n\n{speed:.1f} passages per CPU second, one thread.")
    peer, weights = os.environ.get("BEDSTONE_TORCH_PYTHON"), os.environ.get("BEDSTONE_TORCH_MODEL")
    if peer and weights:
        (work / "passages.json").write_text(json.dumps(passages))
        script = (
            "import json,sys,time,torch;torch.set_num_threads(1);"
            "from sentence_transformers import SentenceTransformer as S;m=S(sys.argv[1],device='cpu');"
            "t=json.load(open(sys.argv[2]));m.encode(t[:5]);s=time.process_time();m.encode(t,batch_size=32);"
            "print(len(t)/(time.process_time()-s))"
        )
        done = subprocess.run(
            [peer, "-c", script, weights, work / "passages.json"], capture_output=True, text=True, check=True
        )
        theirs = float(done.stdout.split()[-1])
        print(f"sentence-transformers on torch: {theirs:.1f}; ratio {speed / theirs:.2f}.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="1000,10000,100000", help="numbers of chunks; 1000000 takes half an hour")
    options = parser.parse_args()
    has_data = DATA.is_dir()
    if not has_data:
        print(f"No data folder in {DATA}: measuring with the demo content and our own docs.")
    with tempfile.TemporaryDirectory(prefix="bedstone-bench-") as folder:
        work = Path(folder)
        data = shared_data(work) if has_data else own_data(work)
        measure_known_items(work, data.known_items)
        measure_questions(work, data.questions)
        measure_growth(work, data, [int(size) for size in options.sizes.split(",")])
        measure_embedding(work, data.texts)


if __name__ == "__main__":
    main()
