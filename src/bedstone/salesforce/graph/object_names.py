"""Objects by what people call them: name, label, plural, synonym."""

import re
from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

from bedstone.salesforce.graph.categories import UNKNOWN_WEIGHT, WEIGHTS, category_of
from bedstone.salesforce.graph.model import ObjectSchema, SchemaGraph
from bedstone.salesforce.graph.names import words_of
from bedstone.salesforce.synonyms import OBJECT_WORDS, plain_words

EXACT = 1.0
NAMED = 0.85
CASE_CHANGE = re.compile(r"(?<=[a-z])(?=[A-Z])")


class NamedObject(NamedTuple):
    """An object that a phrase names, how sure that is, and by which of its names."""

    object: ObjectSchema
    score: float
    why: str


class ObjectNames:
    """Finds the objects of one schema by name."""

    def __init__(self, graph: SchemaGraph) -> None:
        self._graph = graph

    def find(self, phrase: str) -> list[NamedObject]:
        """Return the objects that a phrase names, the most likely first."""
        return self._objects_by_phrase.get(_phrase_key(phrase), [])

    def weight(self, item: ObjectSchema) -> float:
        """Return how much a match in an object counts, by its category."""
        return self._weights.get(item.name, UNKNOWN_WEIGHT)

    @cached_property
    def _objects_by_phrase(self) -> Mapping[str, list[NamedObject]]:
        named: dict[str, list[NamedObject]] = {}

        def add(phrase: str, item: ObjectSchema, score: float, why: str) -> None:
            key = _phrase_key(phrase)
            entries = named.setdefault(key, []) if key else []
            if all(other.object is not item for other in entries):
                entries.append(NamedObject(item, score, why))

        for item in self._graph.objects.values():
            add(item.name, item, EXACT, "name")
            add(item.label, item, EXACT, "label")
            add(item.plural, item, NAMED, "plural label")
            add(" ".join(words_of(item.name)), item, NAMED, "name")
        for name, words in OBJECT_WORDS.items():
            found = self._graph.get(name)
            if found is not None:
                for word in words:
                    add(word, found, NAMED, f"synonym '{word}'")
        for entries in named.values():
            entries.sort(
                key=lambda entry: (-entry.score * self.weight(entry.object), len(entry.object.name), entry.object.name)
            )
        return named

    @cached_property
    def _weights(self) -> Mapping[str, float]:
        return {
            item.name: WEIGHTS.get(category_of(item, self._graph), UNKNOWN_WEIGHT)
            for item in self._graph.objects.values()
        }


def split_camel_case(text: str) -> str:
    """Return a text with a space wherever a capital follows a small letter."""
    return CASE_CHANGE.sub(" ", text)


def _phrase_key(phrase: str) -> str:
    return " ".join(plain_words(phrase))
