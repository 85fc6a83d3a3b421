"""Measure search quality on labelled sets in BEIR layout, through the retriever of the product."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bedstone.errors import InvalidInput
from bedstone.evaluation.metrics import ndcg, recall, reciprocal_rank
from bedstone.records import Chunk, Document
from bedstone.search.embedder import Embedder
from bedstone.search.embedding import QueryEmbedder
from bedstone.search.hits import Mode, SearchRequest
from bedstone.search.indexer import embed_missing
from bedstone.search.indexes.opening import open_index
from bedstone.search.retriever import Retriever
from bedstone.store.engines.memory import MemoryStore

DEPTH = 10
METRICS = {"ndcg@10": ndcg, "recall@10": recall, "mrr@10": reciprocal_rank}
Grades = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class LabelledSet:
    """A corpus, queries, and the grade of each relevant document."""

    documents: Mapping[str, tuple[str, str]]
    queries: Mapping[str, str]
    grades: Grades

    @classmethod
    def read(cls, folder: Path) -> "LabelledSet":
        """Read corpus.jsonl, queries.jsonl and qrels/test.tsv."""
        try:
            documents = {row["_id"]: (row.get("title", ""), row["text"]) for row in _read_rows(folder / "corpus.jsonl")}
            grades = _read_grades(folder / "qrels" / "test.tsv")
            queries = {row["_id"]: row["text"] for row in _read_rows(folder / "queries.jsonl") if row["_id"] in grades}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise InvalidInput(f"Cannot read {folder} as a labelled set in BEIR layout: {error}") from error
        if not queries:
            raise InvalidInput(f"{folder}: no query has a grade in qrels/test.tsv.")
        return cls(documents, queries, grades)


def build_retriever(labelled: LabelledSet, embedder: Embedder | None, on_progress: Callable[[int], None]) -> Retriever:
    """Index the documents of a set, each as one chunk."""
    store = MemoryStore()
    store.put(
        (
            Document(name, title, ""),
            [Chunk(id=name, text=text, plain=text, heading=title, breadcrumb=(title,) if title else ())],
        )
        for name, (title, text) in labelled.documents.items()
    )
    if embedder is not None:
        embed_missing(store, embedder, on_progress=on_progress)
    index = open_index(store, None, embedder)
    index.catch_up()
    return Retriever(store, index, QueryEmbedder(lambda: embedder))


def evaluate(labelled: LabelledSet, retriever: Retriever, mode: Mode) -> dict[str, float]:
    """Return mean nDCG, recall and reciprocal rank at ten."""
    names = list(labelled.documents)
    totals = dict.fromkeys(METRICS, 0.0)
    for query, text in labelled.queries.items():
        candidates = retriever.select(SearchRequest(text, mode=mode), DEPTH).candidates
        ranked = [names[candidate.rowid - 1] for candidate in candidates]
        for name, metric in METRICS.items():
            totals[name] += metric(ranked, labelled.grades[query], DEPTH)
    count = len(labelled.queries)
    return {name: total / count for name, total in totals.items()} | {"queries": count}


def _read_rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        yield from (json.loads(line) for line in file)


def _read_grades(path: Path) -> Grades:
    grades: dict[str, dict[str, float]] = {}
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        query, document, grade = line.split("\t")
        grades.setdefault(query, {})[document] = float(grade)
    return grades
