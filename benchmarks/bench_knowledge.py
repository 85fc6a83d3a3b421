"""Cost of reading, embedding and searching files, compared with peers in the same run: `make bench-knowledge`.

Files come from the data folder next to the checkout (or $BEDSTONE_BENCH_DATA). The peers (markitdown; ChromaDB with
sentence-transformers) need their own environment: set BEDSTONE_PEERS_PYTHON to its interpreter and
BEDSTONE_TORCH_MODEL to the folder with the weights of the model, or only Bedstone is measured. One thread each.
"""

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from bedstone.evaluation.probe import PROTOCOL, StdioServer
from bedstone.ingest.chunking.by_size import chunk_pages
from bedstone.ingest.chunking.pieces import SplitOptions
from bedstone.ingest.detection import detect, find_format
from bedstone.ingest.extraction import ExtractionError, Notes, Page, ReadOptions
from bedstone.ingest.reader import read_whole
from bedstone.records import Task
from bedstone.search.embedders.minilm import MiniLm
from bedstone.services.knowledge.options import KnowledgeOptions
from bedstone.services.knowledge.searching import KnowledgeQuery
from bedstone.services.knowledge.service import KnowledgeBase
from bedstone.store.engines.sqlite import SqliteStore

DATA = Path(os.environ.get("BEDSTONE_BENCH_DATA", Path(__file__).parents[2] / "shared" / "data"))
BEDSTONE = Path(sys.executable).with_name("bedstone")
PEERS = os.environ.get("BEDSTONE_PEERS_PYTHON")
WEIGHTS = os.environ.get("BEDSTONE_TORCH_MODEL")
KINDS = ("pdf", "docx", "pptx", "xlsx", "html")
CHUNKS = 1_500
QUERIES = 100
DOCUMENTS = 1_000
MAX_SEARCHES = 600
QUESTIONS = [
    "How are mail names resolved?",
    "scan to email setup",
    "limits on the trustee's power",
    "metric spaces and continuity",
    "paper tray configuration",
    "who signs the contract",
    "programming languages in economics",
    "results by disability category",
    "magical items and weapons",
    "bankruptcy examination of the debtor",
]
MARKITDOWN = """
import json, logging, sys, time, warnings
warnings.simplefilter("ignore"); logging.disable(logging.CRITICAL)
from markitdown import MarkItDown
reader = MarkItDown()
seconds = {}
for kind, files in json.load(open(sys.argv[1])).items():
    started = time.process_time()
    for file in files:
        try:
            reader.convert(file)
        except Exception:
            pass
    seconds[kind] = time.process_time() - started
print(json.dumps(seconds))
"""
CHROMA = """
import json, sys, time, torch
torch.set_num_threads(1)
import chromadb
from sentence_transformers import SentenceTransformer
model = SentenceTransformer(sys.argv[1], device="cpu")
data = json.load(open(sys.argv[2]))
model.encode(data["texts"][:4])
collection = chromadb.PersistentClient(sys.argv[3]).create_collection("files", metadata={"hnsw:space": "cosine"})
started = time.process_time()
for start in range(0, len(data["texts"]), 500):
    part = data["texts"][start:start + 500]
    names = [str(start + number) for number in range(len(part))]
    collection.add(ids=names, documents=part, embeddings=model.encode(part, batch_size=32).tolist())
ingest = time.process_time() - started
collection.query(query_embeddings=model.encode(data["questions"][:1]).tolist(), n_results=10)
started = time.process_time()
for number in range(data["queries"]):
    question = data["questions"][number % len(data["questions"])] + f" {number}"
    collection.query(query_embeddings=model.encode([question]).tolist(), n_results=10)
print(json.dumps({"ingest": ingest, "query": (time.process_time() - started) / data["queries"]}))
"""


def row(*cells: object) -> None:
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def cpu() -> float:
    """Return the CPU seconds of this process and its ended children."""
    used = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    return sum(item.ru_utime + item.ru_stime for item in used)


def peer(script: str, *arguments: str | Path) -> dict[str, float] | None:
    if not PEERS:
        return None
    done = subprocess.run([PEERS, "-c", script, *arguments], capture_output=True, text=True, check=True)
    answer: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return answer


def real_files(work: Path) -> dict[str, list[Path]]:
    with tarfile.open(DATA / "files" / "corpus.tar.xz") as tar:
        tar.extractall(work, filter="data")
    root = next(path for path in (work / "corpus", work) if (path / "pdf").is_dir())
    return {kind: sorted(path for path in (root / kind).iterdir() if path.is_file()) for kind in KINDS}


def read_in_process(path: Path) -> list[Page]:
    """The reader itself, without the process it runs in for safety."""
    found = find_format(detect(path) or "")
    if found is None:
        return []
    module, _, name = found.reader.partition(":")
    try:
        return list(getattr(import_module(module), name)(path, ReadOptions(), Notes()))
    except ExtractionError:
        return []


def read_in_worker(path: Path) -> list[Page]:
    try:
        return read_whole(path)[0]
    except ExtractionError:
        return []


def extraction(files: dict[str, list[Path]], work: Path) -> None:
    print("\n## Extraction alone, CPU seconds\n")
    listing = work / "files.json"
    listing.write_text(json.dumps({kind: [str(path) for path in paths] for kind, paths in files.items()}))
    theirs = peer(MARKITDOWN, listing)
    row("format", "files", "reader", "reader in its own process each", "markitdown", "ratio", "ratio with process")
    row(*["---"] * 7)
    for kind, paths in files.items():
        read_in_process(paths[0])
        started = cpu()
        for path in paths:
            read_in_process(path)
        bare = cpu() - started
        started = cpu()
        for path in paths:
            read_in_worker(path)
        safe = cpu() - started
        peers = theirs[kind] if theirs else None
        ratios = [f"{bare / peers:.2f}", f"{safe / peers:.2f}"] if peers else ["", ""]
        row(kind, len(paths), f"{bare:.2f}", f"{safe:.2f}", f"{peers:.2f}" if peers else "", *ratios)


def open_base(folder: Path) -> KnowledgeBase:
    options = KnowledgeOptions(folder / "documents", folder / "index")
    base = KnowledgeBase(SqliteStore(options.index_path / "knowledge.sqlite", durable=True), options, MiniLm)
    base.open()
    return base


def to_searchable(files: dict[str, list[Path]], work: Path) -> None:
    print("\n## Seconds to searchable, all files of a format at once\n")
    row("format", "files", "documents", "chunks", "keyword search, wall s", "with vectors, wall s", "CPU s")
    row(*["---"] * 7)
    for kind, paths in files.items():
        base = open_base(work / f"base-{kind}")
        started, used = time.perf_counter(), cpu()
        tasks = [base.add(path) for path in paths]
        while _waiting(base, tasks):
            time.sleep(0.05)
        words = time.perf_counter() - started
        for task in tasks:
            base.wait(task.id)
        counts = base.status().counts
        taken = time.perf_counter() - started
        base.close()
        row(kind, len(paths), counts.documents, counts.chunks, f"{words:.1f}", f"{taken:.1f}", f"{cpu() - used:.1f}")


def _waiting(base: KnowledgeBase, tasks: Sequence[Task]) -> set[str]:
    """Documents that keyword search cannot find yet."""
    waiting = {str(task.payload["document_id"]) for task in tasks if base.task(task.id).finished_at is None}
    return waiting - {document.id for document in base.documents()}


def chunk_texts(files: dict[str, list[Path]]) -> Iterator[str]:
    for paths in files.values():
        for path in paths:
            yield from (chunk.plain for chunk in chunk_pages("x", read_in_worker(path), SplitOptions(), {}))


def compare_with_chroma(files: dict[str, list[Path]], work: Path) -> None:
    texts = list(chunk_texts(files))
    texts = texts[:: max(1, len(texts) // CHUNKS)][:CHUNKS]
    folder = work / "texts"
    folder.mkdir()
    # One document of many chunks: each text stays one paragraph.
    (folder / "all.txt").write_text("\n\n".join(" ".join(text.split()) for text in texts))
    data = work / "texts.json"
    base = open_base(work / "base-texts")
    base.check_health()  # loads the model
    used = cpu()
    base.wait(base.add(folder / "all.txt").id)
    base.search(KnowledgeQuery("first"))
    ingest = cpu() - used
    chunks = [stored.plain for document in base.documents() for stored in base.chunks(document.id)]
    data.write_text(json.dumps({"texts": chunks, "questions": QUESTIONS, "queries": QUERIES}))
    used = cpu()
    for number in range(QUERIES):
        base.search(KnowledgeQuery(f"{QUESTIONS[number % len(QUESTIONS)]} {number}"))
    query = (cpu() - used) / QUERIES
    base.close()
    theirs = peer(CHROMA, WEIGHTS or "", data, work / "chroma")
    print(f"\n## Compared with ChromaDB with sentence-transformers, {len(chunks)} chunks\n")
    row("measurement", "Bedstone", "peer", "ratio", "limit")
    row(*["---"] * 5)
    for what, ours, key, scale in (("ingest, CPU s", ingest, "ingest", 1), ("query, CPU ms", query, "query", 1000)):
        other = theirs[key] if theirs else 0.0
        row(what, f"{ours * scale:.2f}", f"{other * scale:.2f}", f"{ours / other:.2f}" if other else "", 0.5)


class Server:
    """A server over stdio, called from this thread only."""

    def __init__(self, data: Path) -> None:
        self.pipes = StdioServer([str(BEDSTONE), "serve", "--toolsets", "knowledge", "--data-dir", str(data)])
        hello = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self.pipes.request("initialize", hello)
        self.pipes.notify("notifications/initialized")

    def call(self, name: str, **arguments: Any) -> Any:
        answer = self.pipes.request("tools/call", {"name": f"knowledge-{name}", "arguments": arguments})
        return json.loads(answer["result"]["content"][0]["text"])

    def latencies(self, count: int) -> list[float]:
        times = []
        for number in range(count):
            started = time.perf_counter()
            self.call("search", query=f"{QUESTIONS[number % len(QUESTIONS)]} {number}")
            times.append((time.perf_counter() - started) * 1000)
        return times

    @property
    def memory(self) -> float:
        status = Path(f"/proc/{self.pipes.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1024


def measure_many_documents(files: dict[str, list[Path]], work: Path) -> None:
    """Measure memory with many documents, and searches while files are read."""
    texts = list(chunk_texts({kind: files[kind] for kind in ("docx", "html", "pdf")}))
    folder, data = work / "many", work / "many-data"
    folder.mkdir()
    for number in range(DOCUMENTS):
        part = "\n\n".join(texts[(number * 10 + place) % len(texts)] for place in range(10))
        (folder / f"{number:04}.txt").write_text(f"Document {number}\n\n{part}")
    used, started = cpu(), time.perf_counter()
    subprocess.run([BEDSTONE, "knowledge", "add", folder, "--data-dir", data], check=True, capture_output=True)
    print(
        f"\n## {DOCUMENTS} documents\n\nAdded in {time.perf_counter() - started:.0f} s, {cpu() - used:.0f} s of CPU "
        f"({sum(path.stat().st_size for path in folder.iterdir()) / 1e6:.1f} MB of text)."
    )
    server = Server(data)
    server.latencies(20)
    idle = statistics.median(server.latencies(150))
    print(f"Memory after 170 searches: {server.memory:.0f} MB. Search, median of 150 over stdio: {idle:.1f} ms idle,")
    large = sorted(files["pdf"], key=lambda path: path.stat().st_size)[-6:]
    for path in large:
        server.call("add", file_path=str(path))
    time.sleep(1)
    busy: list[float] = []
    while len(busy) < MAX_SEARCHES:
        busy += server.latencies(10)
        rows = server.call("show", limit=20)["documents"]
        if not any(item["processing_status"] in ("pending", "processing") for item in rows):
            break
    during = statistics.median(busy)
    print(f"{during:.1f} ms while large PDFs are read ({len(busy)} searches): ratio {during / idle:.2f}, limit 2.")
    server.pipes.close()


def main() -> None:
    if not DATA.is_dir():
        sys.exit(f"No data folder in {DATA}. Set BEDSTONE_BENCH_DATA.")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    work = Path(tempfile.mkdtemp(prefix="bedstone-bench-"))
    try:
        os.environ["BEDSTONE_STORAGE__MODEL_CACHE_PATH"] = str(work / "cache")
        files = real_files(work)
        compare_with_chroma(files, work)
        extraction(files, work)
        to_searchable(files, work)
        measure_many_documents(files, work)
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
