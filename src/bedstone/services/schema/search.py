"""Objects and fields by what they are about: names, labels, help, picklist values, words people use, and meaning."""

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from math import log
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from bedstone.salesforce.graph.model import Field, ObjectSchema, SchemaGraph
from bedstone.salesforce.graph.names import squeeze, words_of
from bedstone.salesforce.graph.object_names import EXACT, NAMED, ObjectNames
from bedstone.salesforce.synonyms import FIELD_WORDS, OBJECT_WORDS, STOP_WORDS, plain_words, singular
from bedstone.search.embedding import QueryEmbedder
from bedstone.search.hits import Mode
from bedstone.search.terms import terms_of_word

if TYPE_CHECKING:
    import numpy as np

    from bedstone.search.embedder import Embedder

Kind = Literal["objects", "fields"]
KEYWORD_WEIGHT = 0.6
SEMANTIC_WEIGHT = 0.4
# Why an entry is found: how strong that is, and in a word.
BY_NAME = (1.0, "name")
BY_LABEL = (1.0, "label")
BY_OBJECT = (0.6, "object")
BY_HELP = (0.6, "help text")
BY_VALUE = (0.7, "picklist value")
NO_REASON = (0.0, "")
MIN_COSINE = 0.25  # counts as 0
MAX_COSINE = 0.75  # counts as 1
MAX_CANDIDATES = 400
MAX_TEXTS = 150
MAX_PLACES = 20
MAX_MATCHES = 200
COMMON = 0.1  # share of all entries from which a word tells nothing, where others do
FILE = "vectors.npz"


@dataclass(frozen=True)
class Match:
    """An object, or a field of one, and why; `cosine` says how near its label is in meaning."""

    object: ObjectSchema
    field: Field | None
    score: float
    why: str
    cosine: float | None = None


class SchemaSearch:
    """Searches one graph. What it needs of the graph is made when it is first asked for."""

    def __init__(
        self, graph: SchemaGraph, folder: Path | None = None, embedder: "Callable[[], Embedder | None] | None" = None
    ) -> None:
        self.names = ObjectNames(graph)
        self._graph = graph
        self._file = folder / FILE if folder is not None else None
        self._get_embedder = embedder or (lambda: None)
        self._embedding = QueryEmbedder(self._get_embedder)
        self._cached_vectors = cache(self._read_vectors)
        self._nearest: tuple[str, object, Mapping[str, float]] = ("", None, {})  # to the last query, and in what
        self._count_words = cache(lambda label: max(1, len(plain_words(label))))

    def search(
        self, query: str, kind: Kind, *, target: ObjectSchema | None = None, limit: int = 10, mode: Mode = "hybrid"
    ) -> list[Match]:
        """The best matches, best first."""
        terms = _terms(query)
        scores = self._by_words(terms, kind, target) if mode != "semantic" else {}
        meaning = self._by_meaning(query, kind) if mode != "keyword" else {}
        candidates = dict(scores)
        cosines: dict[int, float] = {}
        entries = self._entries(kind)
        for text, cosine in meaning.items():
            places = self._places(kind).get(text, [])
            near = places[:MAX_PLACES] if target is None else [at for at in places if entries[at][0] is target]
            shown = min(1.0, max(0.0, (cosine - MIN_COSINE) / (MAX_COSINE - MIN_COSINE)))
            for place in near:
                cosines[place] = cosine
                lexical, why = scores.get(place, (0.0, "meaning"))
                blended = KEYWORD_WEIGHT * lexical + SEMANTIC_WEIGHT * shown
                candidates[place] = (max(lexical * 0.8, blended), why)
        if kind == "objects" and mode != "semantic":
            for item, score, why in self.names.find(query):
                candidates[self._object_numbers[item.name]] = (score, why)
        best = heapq.nlargest(max(MAX_MATCHES, limit), candidates, key=lambda place: candidates[place][0])
        matches = [self._match(query, kind, place, candidates[place], cosines.get(place)) for place in best]
        matches.sort(key=lambda match: (-match.score, -len(self._graph.children(match.object.name)), _name(match)))
        return matches[:limit]

    @property
    def min_similarity(self) -> float:
        """The cosine below which nothing is related."""
        return self._embedding.min_similarity

    @cached_property
    def entry_count(self) -> int:
        """How many objects and fields there are."""
        return len(self._object_entries) + len(self._field_entries)

    def document_frequency(self, term: str) -> int:
        """Return how many objects and fields have a term of the text analyzer in their names, help or values."""
        return self._term_counts[term]

    @cached_property
    def _term_counts(self) -> Counter[str]:
        counts: Counter[str] = Counter()
        for index in (self._object_index, self._field_index):
            for word, places in index.items():
                for term in terms_of_word(word):
                    counts[term] += places.count
        return counts

    # Words

    def _by_words(
        self, terms: Mapping[str, str], kind: Kind, target: ObjectSchema | None
    ) -> dict[int, tuple[float, str]]:
        """The share of a query's weight that stands in an entry, and where."""
        index, entries = self._index(kind), self._entries(kind)
        total_entries = len(entries)
        counts = {term: index[term].count if term in index else 0 for term in terms}
        weights = {term: log(1 + total_entries / (1 + count)) for term, count in counts.items()}
        asked = sum(weights[term] for term in terms if terms[term] == "") or 1.0
        found: dict[int, dict[str, tuple[float, str]]] = {}
        rare = {term for term, count in counts.items() if count < COMMON * total_entries}
        for term, said in terms.items():
            if term not in index or (term not in rare and rare and target is None):
                continue
            share = NAMED / len(FIELD_WORDS[said]) if said else 1.0  # a word that stands for several needs them all
            for place, reason in index[term].reasons.items():
                if target is not None and entries[place][0] is not target:
                    continue
                parts = found.setdefault(place, {})
                if said:
                    strength = parts.get(said, NO_REASON)[0] + reason[0] * share
                    parts[said] = (strength, f"synonym '{said}'")
                else:
                    parts[term] = reason
        scores: dict[int, float] = {}
        for place, parts in found.items():
            score = 0.0
            for term, (strength, _) in parts.items():
                score += strength * weights.get(term, 1.0)
            item, field = entries[place]
            length = self._count_words(field.label if field is not None else item.label)
            scores[place] = min(1.0, score / asked) * (0.75 + 0.25 / length)
        best_places = heapq.nlargest(MAX_CANDIDATES, scores, key=scores.__getitem__)
        return {
            place: (scores[place], ", ".join(dict.fromkeys(why for _, why in found[place].values())))
            for place in best_places
        }

    def _index(self, kind: Kind) -> Mapping[str, "_Places"]:
        return self._object_index if kind == "objects" else self._field_index

    @cached_property
    def _object_index(self) -> Mapping[str, "_Places"]:
        index: dict[str, _Places] = {}
        for place, (item, _) in enumerate(self._entries("objects")):
            _add(index, place, words_of(item.name), BY_NAME)
            _add(index, place, plain_words(item.label), BY_LABEL)
            for words in OBJECT_WORDS.get(item.name, ()):
                _add(index, place, plain_words(words), (NAMED, f"synonym '{words}'"))
        return index

    @cached_property
    def _field_index(self) -> Mapping[str, "_Places"]:
        index: dict[str, _Places] = {}
        for place, (item, field) in enumerate(self._entries("fields")):
            assert field is not None
            _add(index, place, plain_words(field.label), BY_LABEL)
            _add(index, place, words_of(field.name), BY_NAME)
            _add(index, place, words_of(item.name), BY_OBJECT)
            if field.help:
                _add(index, place, plain_words(field.help), BY_HELP)
            for choice in field.choices[:50]:
                _add(index, place, plain_words(choice.label), BY_VALUE)
        return index

    def _entries(self, kind: Kind) -> list[tuple[ObjectSchema, Field | None]]:
        return self._object_entries if kind == "objects" else self._field_entries

    @cached_property
    def _object_entries(self) -> list[tuple[ObjectSchema, Field | None]]:
        return [(item, None) for item in self._graph.objects.values()]

    @cached_property
    def _object_numbers(self) -> Mapping[str, int]:
        return {item.name: place for place, (item, _) in enumerate(self._object_entries)}

    @cached_property
    def _field_entries(self) -> list[tuple[ObjectSchema, Field | None]]:
        return [(item, field) for item in self._graph.objects.values() for field in item.fields]

    # Meaning

    def _by_meaning(self, query: str, kind: Kind) -> dict[str, float]:
        """Return the cosines of the nearest texts of a kind; none without vectors, or while the embedder fails."""
        vectors = self._vectors
        if vectors is None:
            return {}
        asked, known, nearest = self._nearest
        if asked != query or known is not vectors:  # else it was asked for objects, and now for fields
            vector = self._embedding.embed(query)
            if vector is None:
                return {}
            nearest = _find_nearest(*vectors, vector)
            self._nearest = (query, vectors, nearest)
        places = self._places(kind)
        return {text: cosine for text, cosine in nearest.items() if text in places}

    def make_vectors(self, tell: Callable[[int, int], None] = lambda done, total: None) -> int:
        """Vectors for every name there is, kept beside the schema; how many."""
        embedder = self._get_embedder()
        if embedder is None or self._file is None:
            return 0
        import numpy as np  # noqa: PLC0415

        wanted = sorted({*self._places("objects"), *self._places("fields")})
        if self._vectors is not None and self._vectors[0] == wanted:
            return len(wanted)
        parts = []
        for start in range(0, len(wanted), 256):
            parts.append(embedder.embed(wanted[start : start + 256]).astype(np.float16))
            tell(min(start + 256, len(wanted)), len(wanted))
        draft = self._file.with_suffix(".tmp.npz")
        made = np.concatenate(parts) if parts else np.zeros((0, embedder.dimensions), np.float16)
        np.savez(draft, texts=np.array(wanted), vectors=made, model=np.array([embedder.fingerprint]))
        draft.replace(self._file)
        self._cached_vectors.cache_clear()
        return len(wanted)

    @property
    def _vectors(self) -> "tuple[list[str], np.ndarray] | None":
        embedder = self._embedding.embedder  # one that failed may work again
        return None if embedder is None else self._cached_vectors(embedder.fingerprint)

    def _read_vectors(self, fingerprint: str) -> "tuple[list[str], np.ndarray] | None":
        if self._file is None or not self._file.exists():
            return None
        import numpy as np  # noqa: PLC0415

        try:
            with np.load(self._file, allow_pickle=False) as kept:
                if str(kept["model"][0]) != fingerprint:
                    return None
                return [str(text) for text in kept["texts"]], kept["vectors"].astype(np.float32)
        except (OSError, ValueError, KeyError):
            return None  # corrupt: keyword search alone until the next sync

    def _places(self, kind: Kind) -> Mapping[str, list[int]]:
        return self._object_places if kind == "objects" else self._field_places

    @cached_property
    def _object_places(self) -> Mapping[str, list[int]]:
        return self._by_text((place, item.label) for place, (item, _) in enumerate(self._entries("objects")))

    @cached_property
    def _field_places(self) -> Mapping[str, list[int]]:
        return self._by_text((place, field.label) for place, (_, field) in enumerate(self._entries("fields")) if field)

    def _by_text(self, labels: Iterable[tuple[int, str]]) -> dict[str, list[int]]:
        """Entries by what they are called; of many, those of well-connected objects first."""
        places: dict[str, list[int]] = {}
        for place, label in labels:
            places.setdefault(label.lower(), []).append(place)
        entries = self._entries("fields")
        for found in places.values():
            if len(found) > MAX_PLACES:
                found.sort(key=lambda place: -len(self._graph.children(entries[place][0].name)))
        return places

    def _match(self, query: str, kind: Kind, place: int, scored: tuple[float, str], cosine: float | None) -> Match:
        item, field = self._entries(kind)[place]
        score, why = scored
        given = squeeze(query)
        name, label = (field.name, field.label) if field is not None else (item.name, item.label)
        if given in (squeeze(name), squeeze(label), squeeze(name.removesuffix("__c"))):
            score, why = EXACT, "name" if given == squeeze(name) else "label"
        elif singular(given) == singular(squeeze(label)) or given == squeeze(item.plural if field is None else label):
            score, why = max(score, NAMED), "plural label"
        else:
            score = min(score, NAMED)
        weight = self.names.weight(item)
        return Match(item, field, round(score * (0.7 + 0.3 * weight), 4), why, cosine)


def _find_nearest(texts: list[str], matrix: "np.ndarray", vector: "np.ndarray") -> dict[str, float]:
    """Return the cosines of the texts that are nearest to a vector."""
    import numpy as np  # noqa: PLC0415 - only with vectors

    near = matrix @ vector.astype(np.float32)
    most = min(MAX_TEXTS, len(texts))
    order = np.argpartition(-near, most - 1)[:most] if most else ()
    return {texts[place]: float(near[place]) for place in order if near[place] >= MIN_COSINE}


def _terms(query: str) -> dict[str, str]:
    """The words that count, and the words they stand for: a word that stands for another names it."""
    words = [word for word in plain_words(query) if word not in STOP_WORDS] or plain_words(query)
    terms = dict.fromkeys(words, "")
    for word in words:
        for other in FIELD_WORDS.get(word, ()):
            terms.setdefault(singular(other), word)
    return terms


class _Places:
    """Where a word stands: the best reason of each entry, as strength and text, and how many reasons there are."""

    __slots__ = ("count", "reasons")

    def __init__(self) -> None:
        self.count = 0
        self.reasons: dict[int, tuple[float, str]] = {}


def _add(index: dict[str, _Places], place: int, words: Iterable[str], reason: tuple[float, str]) -> None:
    for word in {singular(word) for word in words}:
        places = index.get(word)
        if places is None:
            places = index[word] = _Places()
        places.count += 1
        if reason[0] > places.reasons.get(place, NO_REASON)[0]:
            places.reasons[place] = reason


def _name(match: Match) -> str:
    return f"{match.object.name}.{match.field.name}" if match.field else match.object.name
