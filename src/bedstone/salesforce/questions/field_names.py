"""Fields by what people call them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from bedstone.salesforce.graph.model import Field, ObjectSchema, SchemaGraph
from bedstone.salesforce.graph.names import squeeze, words_of
from bedstone.salesforce.questions.question import Question
from bedstone.salesforce.synonyms import FIELD_WORDS, STOP_WORDS, plain_words, singular

MAX_FIELD_WORDS = 4
MAX_FIELD_DISTANCE = 4  # words


@dataclass(frozen=True, slots=True)
class FieldMention:
    """A stretch of words that names a field; `prefix` is the relationship that leads to it, with its dot."""

    field: Field
    start: int
    end: int
    prefix: str = ""

    @property
    def path(self) -> str:
        return f"{self.prefix}{self.field.name}"


class FieldNames:
    """Finds the fields of one schema by name; the names of an object are kept once they are made."""

    def __init__(self, graph: SchemaGraph) -> None:
        self._graph = graph
        self._known: dict[str, dict[str, Field]] = {}

    def of(self, item: ObjectSchema) -> dict[str, Field]:
        """Return the fields of an object by name, label and words; the shortest name wins."""
        if item.name not in self._known:
            self._known[item.name] = _fields_by_name(item)
        return self._known[item.name]

    def owners(self, name: str) -> list[str]:
        """Return the objects that have a field with this name or label, in small letters and digits only."""
        return self._owners.get(name, [])

    @cached_property
    def _owners(self) -> dict[str, list[str]]:
        owners: dict[str, list[str]] = {}
        for item in self._graph.objects.values():
            for name in {squeeze(text) for entry in item.fields for text in (entry.name, entry.label)}:
                owners.setdefault(name, []).append(item.name)
        return owners

    def find(self, item: ObjectSchema, words: Sequence[str]) -> Field | None:
        """Return the field that some words name."""
        is_single = len(words) == 1
        if is_single and words[0].lower() in STOP_WORDS:
            return None
        fields = self.of(item)
        found = fields.get(singular(squeeze(" ".join(words))))
        if found is None and is_single and words[0].lower() in FIELD_WORDS:
            found = fields.get(singular(squeeze("".join(FIELD_WORDS[words[0].lower()]))))
        return found

    def after(self, question: Question, item: ObjectSchema, place: int) -> FieldMention | None:
        """Return the next field within a few words."""
        places = range(place, min(place + MAX_FIELD_DISTANCE, len(question)))
        return next((found for at in places if (found := self.at(question, item, at)) is not None), None)

    def at(self, question: Question, item: ObjectSchema, place: int) -> FieldMention | None:
        """Return the field that begins at a word."""
        if place >= len(question) or question.is_quoted(place):
            return None
        if "." in question.words[place]:
            return self._dotted_field(question, item, place)
        parent = self._parent_field(question, item, place)
        if parent is not None:
            return parent
        for length in range(min(MAX_FIELD_WORDS, len(question) - place), 0, -1):
            words = question.words[place : place + length]
            if all(word[0].isalpha() for word in words):
                field = self.find(item, words)
                if field is not None:
                    return FieldMention(field, place, place + length)
        return None

    def _dotted_field(self, question: Question, item: ObjectSchema, place: int) -> FieldMention | None:
        """Read `Account.Industry`."""
        relationship, _, name = question.words[place].partition(".")
        link = item.by_relationship.get(relationship.lower())
        target = self._graph.get(link.reference_to[0]) if link and link.reference_to else None
        field = target.field(name) if target else None
        return FieldMention(field, place, place + 1, f"{relationship}.") if field else None

    def _parent_field(self, question: Question, item: ObjectSchema, place: int) -> FieldMention | None:
        """Read `account industry`, in a question about contacts."""
        link = item.by_relationship.get(question.folded[place])
        if link is None or place + 1 >= len(question) or len(link.reference_to) != 1:
            return None
        target = self._graph.get(link.reference_to[0])
        field = target.field(singular(question.folded[place + 1])) if target else None
        return FieldMention(field, place, place + 2, f"{link.relationship}.") if field else None


def _fields_by_name(item: ObjectSchema) -> dict[str, Field]:
    fields: dict[str, Field] = {}
    for entry in sorted(item.fields, key=lambda entry: (len(entry.name), entry.name)):
        for name in _names(entry, item):
            key = singular(squeeze(name))
            if key:
                fields.setdefault(key, entry)
    return fields | {squeeze(entry.name): entry for entry in item.fields}  # exact names win


def _names(entry: Field, item: ObjectSchema) -> Iterator[str]:
    yield from (entry.name, entry.label, "".join(words_of(entry.name)))
    label = plain_words(entry.label)
    if label[:1] == plain_words(item.label)[:1]:  # Account Name: name
        yield "".join(label[1:])
    for prefix in ("Mailing", "Billing", "NumberOf"):
        if entry.name.startswith(prefix):
            yield entry.name.removeprefix(prefix)
    if entry.type == "email":
        yield "emailaddress"
