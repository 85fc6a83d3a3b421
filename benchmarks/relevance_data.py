"""Collect first hits with what speaks for them, from labelled sets: the material of `fit_relevance.py`."""

import json
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench_search import DATA, ROOT

import bedstone.search.retriever as pipeline
from bedstone.evaluation.beir import LabelledSet, evaluate
from bedstone.ingest.chunking.by_size import chunk_pages
from bedstone.ingest.chunking.pieces import SplitOptions
from bedstone.ingest.extraction import Page
from bedstone.records import Chunk, Document
from bedstone.search.embedder import Embedder
from bedstone.search.embedding import QueryEmbedder
from bedstone.search.hits import Hit, Mode, SearchRequest
from bedstone.search.indexer import embed_missing
from bedstone.search.indexes.opening import open_index
from bedstone.search.relevance import Evidence, Kind, QueryTerms, relevance
from bedstone.search.retriever import Profile, Retriever
from bedstone.search.terms import WORD, stop_terms, terms_of_word
from bedstone.services.docs.corpus import DocsCorpus
from bedstone.store.engines.memory import MemoryStore

SETS = ("scifact", "cranfield", "ray_docs", "feedbackqa", "k8s_docs_kubefix", "xquad_zh")
UNSPACED_SETS = ("xquad_zh",)
CORPORA = ("python-sdk", "sdks")
MODES: tuple[Mode, ...] = ("hybrid", "semantic", "keyword")
ORDER: tuple[Mode, ...] = ("keyword", "semantic", "hybrid")
SMALL_BASES = (5, 8, 12, 20, 30, 50, 5, 10, 25)  # documents
# The pages of these are long: only so many are embedded in addition to the answers, and small bases have half as many.
OTHER_DOCUMENTS = {"k8s_docs_kubefix": 300}
LONG_DOCUMENTS = ("k8s_docs_kubefix", "ray_docs")
MAX_CHARACTERS = 12_000
QUESTIONS = 300
FOREIGN_QUESTIONS = 80
# Questions that the whole sets do not answer: half of them are near the subject.
# Questions in other words than the documents that answer them.
VAGUE = json.loads((ROOT / "benchmarks" / "vague_questions.json").read_text())
UNANSWERABLE = json.loads((ROOT / "tests" / "fixtures" / "unanswerable.json").read_text())

Pairs = list[tuple[Document, list[Chunk]]]


@dataclass(frozen=True)
class Observation:
    """The first hit of a query: where it came from, what spoke for it, its score, and whether it is right."""

    source: str
    base: str  # "full" or "small"
    # "own", "absent" (the answer was left out of a small base), "foreign" (a question of another set), "near" or "far"
    # (a question that nothing in the set answers)
    asked: str
    style: str  # "question", "keywords" or "quotation"
    kind: Kind
    features: tuple[float, ...]
    evidence: Evidence
    query: QueryTerms
    language_share: float
    score: float
    is_right: bool

    def score_again(self) -> float:
        """Return the score by the models of now."""
        return relevance(self.query, self.evidence, self.kind, self.language_share)


@dataclass(frozen=True)
class FirstHit:
    """The first hit of a search, and what its score is made of."""

    hit: Hit
    query: QueryTerms
    evidence: Evidence
    kind: Kind
    language_share: float

    @property
    def features(self) -> tuple[float, ...]:
        """Return the evidence in the order of `Model`."""
        query, evidence = self.query, self.evidence
        nearness = evidence.nearness or 0.0
        given = (evidence.covered, evidence.strength, nearness, query.log_terms, query.log_chunks)
        return (1.0, *given, query.relative_strength(evidence))


class Recorder:
    """Searches like the product, and keeps what the score of the first hit is made of."""

    def __init__(self) -> None:
        self._seen: list[tuple[QueryTerms, Evidence, Kind, float]] = []
        pipeline.relevance = self._record  # type: ignore[assignment, attr-defined]

    def _record(self, query: QueryTerms, evidence: Evidence, kind: Kind, share: float = 1.0) -> float:
        self._seen.append((query, evidence, kind, share))
        return relevance(query, evidence, kind, share)

    def first_hit(self, retriever: Retriever, request: SearchRequest) -> "FirstHit | None":
        """Return the first hit with what its score is made of."""
        self._seen.clear()
        hits = retriever.search(replace(request, limit=1)).hits
        if not hits:
            return None
        return FirstHit(hits[0], *self._seen[0])


class Collector:
    """Asks the questions of all sets."""

    def __init__(self, sets: Mapping[str, LabelledSet], embedder: Embedder) -> None:
        self._sets = sets
        self._embedder = embedder
        self._recorder = Recorder()
        self._random = random.Random(7)
        self.observations: list[Observation] = []
        self.quality: dict[str, dict[str, float]] = {}  # nDCG@10 of whole sets, by kind of search

    def observe_set(self, name: str) -> None:
        """Search a whole set, and small bases made of a few of its documents."""
        labelled = self._sets[name]
        documents = _documents(name, labelled)
        answers: dict[str, list[str]] = defaultdict(list)
        for query in labelled.queries:
            for document in self._right(name, query):
                if document in documents:
                    answers[document].append(query)
        own = self._random.sample(list(labelled.queries), min(QUESTIONS, len(labelled.queries)))
        whole = self._index(name, _whole(documents))
        self._ask(name, "full", whole, own, [], FOREIGN_QUESTIONS)
        if name not in UNSPACED_SETS:
            self._measure(name, whole, documents)
        for number, size in enumerate(SMALL_BASES):
            size = size // 2 + 2 if name in LONG_DOCUMENTS else size  # noqa: PLW2901
            picked = self._random.sample(list(answers), size // 2 + 1) + self._random.sample(list(documents), size // 2)
            small = {item: (documents[item][0], documents[item][1][:MAX_CHARACTERS]) for item in dict.fromkeys(picked)}
            here = list(dict.fromkeys(query for item in small for query in answers.get(item, [])))
            absent = [query for query in labelled.queries if small.keys().isdisjoint(self._right(name, query))]
            base = self._index(name, _cut(small) if number % 3 else _whole(small))
            self._ask(name, "small", base, self._some(here, 25), self._some(absent, 15), FOREIGN_QUESTIONS // 5)

    def _measure(self, name: str, retriever: Retriever, documents: Mapping[str, tuple[str, str]]) -> None:
        """Measure the questions of a set, and those in other words than the documents."""
        labelled = self._sets[name]
        asked = self._some(labelled.queries, QUESTIONS)
        known = replace(labelled, documents=documents, queries={query: labelled.queries[query] for query in asked})
        self.quality[name] = {mode: evaluate(known, retriever, mode)["ndcg@10"] for mode in ORDER}
        if vague := VAGUE.get(name):
            queries = {text: text for text, answers in vague.items() if not documents.keys().isdisjoint(answers)}
            grades = {text: dict.fromkeys(vague[text], 1.0) for text in queries}
            other = LabelledSet(known.documents, queries, grades)
            self.quality[f"{name}, vague"] = {mode: evaluate(other, retriever, mode)["ndcg@10"] for mode in ORDER}

    def observe_corpora(self, folder: Path) -> None:
        """Look up headings, identifiers and quotations in documentation, of their own corpus and of the other."""
        cases = {name: json.loads((DATA / "docs" / f"{name}.cases.json").read_text()) for name in CORPORA}
        for name in CORPORA:
            corpus = DocsCorpus(folder / name)
            for origin, items in cases.items():
                for case in items:
                    self._look_up(name, corpus, case, "own" if origin == name else "foreign")
            corpus.close()

    def _look_up(self, name: str, corpus: DocsCorpus, case: Mapping[str, Any], asked: str) -> None:
        request = corpus.make_request(case["query"], {})
        found = self._recorder.first_hit(corpus.retriever, request)
        if found is None:
            return
        hit = found.hit
        (chunk,) = corpus.read(hit.head.id)[0]
        text = _letters(" ".join([hit.head.document_id, *hit.head.breadcrumb, chunk.plain]))
        # The cases expect one of several chunks that have the words, some of them glued together.
        is_right = (asked == "own" and hit.head.id == case["expectedChunkId"]) or _letters(case["query"]) in text
        if is_right and not found.evidence.covered:
            return  # words glued together in the case: no term of them is in the text
        self._keep(name, "full", asked, "quotation", found, is_right=is_right)

    def _ask(  # noqa: PLR0917
        self, name: str, base: str, retriever: Retriever, own: list[str], absent: list[str], foreign: int
    ) -> None:
        others = [other for other in SETS if other != name and (other in UNSPACED_SETS) == (name in UNSPACED_SETS)]
        strange = [
            text for other in others for text in self._some(self._sets[other].queries.values(), foreign // len(others))
        ]
        queries = self._sets[name].queries
        asked = [(queries[query], "own", self._right(name, query)) for query in own]
        asked += [(queries[query], "absent", []) for query in absent]
        asked += [(text, "foreign", []) for text in strange]
        if base == "full":
            asked += [(text, kind, []) for kind, texts in UNANSWERABLE.get(name, {}).items() for text in texts]
        for text, origin, right in asked:
            is_unspaced = name in UNSPACED_SETS  # only keyword search finds anything
            styles = {"question": text} | ({} if is_unspaced else {"keywords": self._keywords(text)})
            for style, query in styles.items():
                for mode in MODES[-1:] if is_unspaced else MODES:
                    if (found := self._recorder.first_hit(retriever, SearchRequest(query, mode=mode))) is not None:
                        if found.kind == "quotation":
                            continue  # the labels do not say whose words these are
                        is_right = found.hit.head.document_id in right
                        self._keep(name, base, origin, style, found, is_right=is_right)

    def _keywords(self, text: str) -> str:
        """Return two to four words of a question, in its order, as people type them."""
        words = [word for word in dict.fromkeys(WORD.findall(text)) if not stop_terms() & set(terms_of_word(word))]
        kept = self._some(words, self._random.choice((2, 3, 4)))
        return " ".join(word for word in words if word in kept)

    def _right(self, name: str, query: str) -> list[str]:
        # In cranfield one document of each question has grade 0, from -1 in the original: probably the source of the
        # question, so it counts as right.
        lowest = 0 if name == "cranfield" else 1
        return [document for document, grade in self._sets[name].grades[query].items() if grade >= lowest]

    def _some(self, items: Iterable[str], count: int) -> list[str]:
        every = list(items)
        return self._random.sample(every, min(count, len(every)))

    def _index(self, name: str, pairs: Pairs) -> Retriever:
        store = MemoryStore()
        store.put(pairs)
        embedder = None if name in UNSPACED_SETS else self._embedder  # the model does not know the language
        if embedder is not None:
            embed_missing(store, embedder)
        index = open_index(store, None, embedder)
        index.catch_up()
        return Retriever(store, index, QueryEmbedder(lambda: embedder), Profile(has_snippets=False, has_documents=True))

    def _keep(self, name: str, base: str, asked: str, style: str, found: FirstHit, *, is_right: bool) -> None:
        score, features = found.hit.score, found.features
        made_of = (found.kind, features, found.evidence, found.query, found.language_share)
        self.observations.append(Observation(name, base, asked, style, *made_of, score, is_right))


def _documents(name: str, labelled: LabelledSet) -> dict[str, tuple[str, str]]:
    if name not in OTHER_DOCUMENTS:
        return dict(labelled.documents)
    wanted = {document for grades in labelled.grades.values() for document in grades}
    wanted.update(document for answers in VAGUE.get(name, {}).values() for document in answers)
    others = [document for document in labelled.documents if document not in wanted]
    random.Random(1).shuffle(others)
    wanted.update(others[: OTHER_DOCUMENTS[name]])
    return {document: text for document, text in labelled.documents.items() if document in wanted}


def _whole(documents: Mapping[str, tuple[str, str]]) -> Pairs:
    return [
        (Document(name, title, ""), [Chunk(name, text, text, title, breadcrumb=(title,) if title else ())])
        for name, (title, text) in documents.items()
    ]


def _cut(documents: Mapping[str, tuple[str, str]]) -> Pairs:
    """Cut documents into chunks, as the knowledge base does."""
    return [
        (Document(name, title or name, ""), chunk_pages(name, [Page(f"# {title}\n\n{text}")], SplitOptions(), {}))
        for name, (title, text) in documents.items()
    ]


def _letters(text: str) -> str:
    return "".join(sign for sign in text.lower() if sign.isalnum())
