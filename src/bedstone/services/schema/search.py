"""Objects and fields by what they are about: names, labels, help, picklist values, words people use, and meaning."""

import heapq
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

if TYPE_CHECKING:
    import numpy as np

    from bedstone.search.embedder import Embedder

Kind = Literal["objects", "fields"]
KEYWORD_WEIGHT = 0.6
SEMANTIC_WEIGHT = 0.4
NAME_WEIGHT = 1.0
HELP_WEIGHT = 0.6
VALUE_WEIGHT = 0.7
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
    """An object, or a field of one, and why."""

    object: ObjectSchema
    field: Field | None
    score: float
    why: str


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

    def search(self, query: str, kind: Kind, *, target: ObjectSchema | None = None, limit: int = 10) -> list[Match]:
        """The best matches, best first."""
        terms = _terms(query)
        scores = self._by_words(terms, kind, target)
        meaning = self._by_meaning(query, kind)
        candidates = dict(scores)
        entries = self._entries(kind)
        for text, cosine in meaning.items():
            places = self._places(kind).get(text, [])
            near = places[:MAX_PLACES] if target is None else [at for at in places if entries[at][0] is target]
            shown = min(1.0, max(0.0, (cosine - MIN_COSINE) / (MAX_COSINE - MIN_COSINE)))
            for place in near:
                lexical, why = scores.get(place, (0.0, "meaning"))
                blended = KEYWORD_WEIGHT * lexical + SEMANTIC_WEIGHT * shown
                candidates[place] = (max(lexical * 0.8, blended), why)
        if kind == "objects":
            for item, score, why in self.names.find(query):
                candidates[self._object_numbers[item.name]] = (score, why)
        best = heapq.nlargest(max(MAX_MATCHES, limit), candidates, key=lambda place: candidates[place][0])
        matches = [self._match(query, kind, place, candidates[place]) for place in best]
        matches.sort(key=lambda match: (-match.score, -len(self._graph.children(match.object.name)), _name(match)))
        return matches[:limit]

    # Words

    def _by_words(
        self, terms: Mapping[str, str], kind: Kind, target: ObjectSchema | None
    ) -> dict[int, tuple[float, str]]:
        """The share of a query's weight that stands in an entry, and where."""
        index = self._index(kind)
        total_entries = len(self._entries(kind))
        weights = {term: log(1 + total_entries / (1 + len(index.get(term, ())))) for term in terms}
        asked = sum(weights[term] for term in terms if terms[term] == "") or 1.0
        entries = self._entries(kind)
        found: dict[int, dict[str, tuple[float, str]]] = {}
        rare = {term for term in terms if len(index.get(term, ())) < COMMON * total_entries}
        for term, said in terms.items():
            if term not in rare and rare and target is None:
                continue
            share = NAMED / len(FIELD_WORDS[said]) if said else 1.0  # a word that stands for several needs them all
            best: dict[int, tuple[float, str]] = {}
            for place, strength, why in index.get(term, ()):
                if (target is None or entries[place][0] is target) and strength > best.get(place, (0.0, ""))[0]:
                    best[place] = (strength, f"synonym '{said}'" if said else why)
            for place, (strength, why) in best.items():
                parts = found.setdefault(place, {})
                before = parts.get(said, (0.0, ""))[0] if said else 0.0
                parts[said or term] = (before + strength * share, why)
        scored: dict[int, tuple[float, str]] = {}
        for place, parts in found.items():
            score = sum(strength * weights.get(term, 1.0) for term, (strength, _) in parts.items()) / asked
            item, field = entries[place]
            length = max(1, len(plain_words(field.label if field is not None else item.label)))
            reasons = dict.fromkeys(why for _, why in parts.values())
            scored[place] = (min(1.0, score) * (0.75 + 0.25 / length), ", ".join(reasons))
        best_places = sorted(scored, key=lambda place: -scored[place][0])[:MAX_CANDIDATES]
        return {place: scored[place] for place in best_places}

    def _index(self, kind: Kind) -> Mapping[str, list[tuple[int, float, str]]]:
        return self._object_index if kind == "objects" else self._field_index

    @cached_property
    def _object_index(self) -> Mapping[str, list[tuple[int, float, str]]]:
        index: dict[str, list[tuple[int, float, str]]] = {}
        for place, (item, _) in enumerate(self._entries("objects")):
            _add(index, place, words_of(item.name), NAME_WEIGHT, "name")
            _add(index, place, plain_words(item.label), NAME_WEIGHT, "label")
            for words in OBJECT_WORDS.get(item.name, ()):
                _add(index, place, plain_words(words), NAMED, f"synonym '{words}'")
        return index

    @cached_property
    def _field_index(self) -> Mapping[str, list[tuple[int, float, str]]]:
        index: dict[str, list[tuple[int, float, str]]] = {}
        for place, (item, field) in enumerate(self._entries("fields")):
            assert field is not None
            _add(index, place, plain_words(field.label), NAME_WEIGHT, "label")
            _add(index, place, words_of(field.name), NAME_WEIGHT, "name")
            _add(index, place, words_of(item.name), HELP_WEIGHT, "object")
            if field.help:
                _add(index, place, plain_words(field.help), HELP_WEIGHT, "help text")
            for choice in field.choices[:50]:
                _add(index, place, plain_words(choice.label), VALUE_WEIGHT, "picklist value")
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
        vector = self._embedding.embed(query) if vectors is not None else None
        if vectors is None or vector is None:
            return {}
        texts, matrix = vectors
        import numpy as np  # noqa: PLC0415 - only with vectors

        near = matrix @ vector.astype(np.float32)
        places = self._places(kind)
        most = min(MAX_TEXTS, len(texts))
        if not most:
            return {}
        order = np.argpartition(-near, most - 1)[:most]
        return {
            texts[place]: float(near[place]) for place in order if near[place] >= MIN_COSINE and texts[place] in places
        }

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

    def _match(self, query: str, kind: Kind, place: int, scored: tuple[float, str]) -> Match:
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
        return Match(item, field, round(score * (0.7 + 0.3 * weight), 4), why)


def _terms(query: str) -> dict[str, str]:
    """The words that count, and the words they stand for: a word that stands for another names it."""
    words = [word for word in plain_words(query) if word not in STOP_WORDS] or plain_words(query)
    terms = dict.fromkeys(words, "")
    for word in words:
        for other in FIELD_WORDS.get(word, ()):
            terms.setdefault(singular(other), word)
    return terms


def _add(
    index: dict[str, list[tuple[int, float, str]]], place: int, words: Iterable[str], strength: float, why: str
) -> None:
    for word in {singular(word) for word in words}:
        index.setdefault(word, []).append((place, strength, why))


def _name(match: Match) -> str:
    return f"{match.object.name}.{match.field.name}" if match.field else match.object.name
