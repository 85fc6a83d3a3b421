"""Search quality on labelled sets in BEIR layout, through the engine the product uses."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bedstone.errors import InvalidInput
from bedstone.evaluation.metrics import ndcg, recall, reciprocal_rank
from bedstone.records import Chunk, Document
from bedstone.search.embedder import Embedder
from bedstone.search.hits import Mode
from bedstone.search.indexer import embed_missing
from bedstone.search.indexes.hybrid import HybridIndex
from bedstone.search.indexes.keyword import WordIndex
from bedstone.search.indexes.vector import VectorIndex
from bedstone.search.retriever import SearchEngine
from bedstone.store.engines.memory import MemoryStore

DEPTH = 10
Grades = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class LabelledSet:
    """A corpus, queries, and which documents answer each."""

    documents: Mapping[str, tuple[str, str]]
    queries: Mapping[str, str]
    grades: Grades

    @classmethod
    def read(cls, folder: Path) -> "LabelledSet":
        """Read corpus.jsonl, queries.jsonl and qrels/test.tsv."""
        try:
            documents = {row["_id"]: (row.get("title", ""), row["text"]) for row in _rows(folder / "corpus.jsonl")}
            grades = _grades(folder / "qrels" / "test.tsv")
            queries = {row["_id"]: row["text"] for row in _rows(folder / "queries.jsonl") if row["_id"] in grades}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise InvalidInput(f"{folder} is not a set in BEIR layout: {error}") from error
        if not queries:
            raise InvalidInput(f"{folder} has no query with a grade in qrels/test.tsv.")
        return cls(documents, queries, grades)


def build_engine(labelled: LabelledSet, embedder: Embedder | None, progress: Callable[[int], None]) -> SearchEngine:
    """Everything the set holds, indexed; a document is one chunk."""
    store = MemoryStore()
    store.put(
        (
            Document(name, title, ""),
            [Chunk(id=name, text=text, plain=text, heading=title, breadcrumb=(title,) if title else ())],
        )
        for name, (title, text) in labelled.documents.items()
    )
    if embedder is not None:
        embed_missing(store, embedder, on_progress=progress)
    index = HybridIndex(
        store, WordIndex(), VectorIndex(store, embedder.dimensions, embedder.reach) if embedder else None
    )
    index.catch_up()
    return SearchEngine(index, embedder)


def evaluate(labelled: LabelledSet, engine: SearchEngine, mode: Mode) -> dict[str, float]:
    """Mean nDCG, recall and reciprocal rank at ten."""
    names = list(labelled.documents)
    totals = {"ndcg@10": 0.0, "recall@10": 0.0, "mrr@10": 0.0}
    for query, text in labelled.queries.items():
        found = [names[hit.rowid - 1] for hit in engine.search(text, limit=DEPTH, mode=mode).hits]
        grades = labelled.grades[query]
        totals["ndcg@10"] += ndcg(found, grades, DEPTH)
        totals["recall@10"] += recall(found, grades, DEPTH)
        totals["mrr@10"] += reciprocal_rank(found, grades, DEPTH)
    count = len(labelled.queries)
    return {name: total / count for name, total in totals.items()} | {"queries": count}


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        yield from (json.loads(line) for line in file)


def _grades(path: Path) -> Grades:
    grades: dict[str, dict[str, float]] = {}
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        query, document, grade = line.split("\t")
        grades.setdefault(query, {})[document] = float(grade)
    return grades
