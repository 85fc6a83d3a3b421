"""Fields by what people call them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from bedstone.salesforce.graph.model import Field, ObjectSchema, SchemaGraph, name_field
from bedstone.salesforce.graph.names import squeeze, words_of
from bedstone.salesforce.questions.question import Question
from bedstone.salesforce.synonyms import FIELD_WORDS, STOP_WORDS, plain_words, singular

MAX_FIELD_WORDS = 4
MAX_FIELD_DISTANCE = 4  # words
# The last word of many labels: by itself it names none of them.
VAGUE_WORDS = frozenset(
    "number date id name code type status time by level reason email phone street city state country address "  # noqa: SIM905
    "description latitude longitude accuracy category title key preference day week month quarter year".split()
)


@dataclass(frozen=True, slots=True)
class FieldMention:
    """A stretch of words that names a field; `prefix` is the relationship that leads to it, with its dot."""

    field: Field
    start: int
    end: int
    prefix: str = ""

    link: str = ""  # the field that leads to a parent whose name is meant

    @property
    def path(self) -> str:
        return f"{self.prefix}{self.field.name}"

    @property
    def id_path(self) -> str:
        """The path to ask whether there is a value at all."""
        return self.link or self.path


class FieldNames:
    """Finds the fields of one schema by name; the names of an object are kept once they are made."""

    def __init__(self, graph: SchemaGraph) -> None:
        self._graph = graph
        self._known: dict[str, dict[str, Field]] = {}
        self._links: dict[str, dict[str, Field]] = {}

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

    def link(self, item: ObjectSchema, word: str) -> Field | None:
        """Return the field that a word names as a relationship: owner, profile, dealer."""
        if item.name not in self._links:
            self._links[item.name] = _links_by_name(item)
        return self._links[item.name].get(singular(squeeze(word)))

    def comparable_at(self, question: Question, item: ObjectSchema, place: int) -> FieldMention | None:
        """Return the field that begins at a word and can be compared with a value; a parent by its name."""
        found = self.at(question, item, place)
        if found is not None and found.field.type != "reference":
            return found
        field = found.field if found is not None else self.link(item, question.folded[place])
        if field is None or not field.relationship or question.is_quoted(place):
            return None
        target = self._graph.get(field.reference_to[0]) if len(field.reference_to) == 1 else None
        name = name_field("Name") if target is None else target.name_field
        if name is None:
            return None
        end = found.end if found is not None else place + 1
        end += question.folded_at(end) == "name"
        return FieldMention(name, place, end, f"{field.relationship}.", field.name)

    def find(self, item: ObjectSchema, words: Sequence[str]) -> Field | None:
        """Return the field that some words name."""
        is_single = len(words) == 1
        if is_single and words[0].lower() in STOP_WORDS:
            return None
        fields = self.of(item)
        found = fields.get(singular(squeeze(" ".join(words))))
        if found is None and len(words) > 1 and singular(words[-1].lower()) == "number":  # phone numbers: phone
            found = fields.get(singular(squeeze(" ".join(words[:-1]))))
            found = found if found is not None and found.type == "phone" else None
        joined = "".join(words).lower()
        if found is None and joined in FIELD_WORDS:
            found = fields.get(singular(squeeze("".join(FIELD_WORDS[joined]))))
        return found

    def after(self, question: Question, item: ObjectSchema, place: int) -> FieldMention | None:
        """Return the next field within a few words."""
        places = range(place, min(place + MAX_FIELD_DISTANCE, len(question)))
        return next((found for at in places if (found := self.at(question, item, at)) is not None), None)

    def next(self, question: Question, item: ObjectSchema, place: int) -> FieldMention | None:
        """Return the field that follows at once, or after words without meaning."""
        while question.folded_at(place) in STOP_WORDS:
            place += 1
        return self.at(question, item, place)

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
        """Read `account industry` and `owner name`, in a question about contacts."""
        link = self.link(item, question.folded[place])
        following = place + 1 + (question.folded_at(place + 1) == "s")
        if link is None or not link.relationship or following >= len(question):
            return None
        target = self._graph.get(link.reference_to[0]) if len(link.reference_to) == 1 else None
        for length in range(min(MAX_FIELD_WORDS, len(question) - following), 0, -1):
            words = question.words[following : following + length]
            field = self.find(target, words) if target is not None else name_field("".join(words))
            if field is not None and all(word[0].isalpha() for word in words):
                return FieldMention(field, place, following + length, f"{link.relationship}.")
        return None


def _fields_by_name(item: ObjectSchema) -> dict[str, Field]:
    fields: dict[str, Field] = {}
    for entry in sorted(item.fields, key=lambda entry: (len(entry.name), entry.name)):
        for name in _names(entry, item):
            key = singular(squeeze(name))
            if key:
                fields.setdefault(key, entry)
    links = _links_by_name(item)
    for key, entries in _last_words(item).items():
        if len(entries) == 1 and key not in links:
            fields.setdefault(key, entries[0])
    return fields | {squeeze(entry.name): entry for entry in item.fields}  # exact names win


def _names(entry: Field, item: ObjectSchema) -> Iterator[str]:
    yield from (entry.name, entry.label, "".join(words_of(entry.name)))
    label = plain_words(entry.label)
    if label[:1] == plain_words(item.label)[:1]:  # Account Name: name
        yield "".join(label[1:])
    if "(" in entry.label:
        yield entry.label.partition("(")[0]
    for prefix in ("Mailing", "Billing", "NumberOf"):
        if entry.name.startswith(prefix):
            yield entry.name.removeprefix(prefix)
    if entry.type == "email":
        yield "emailaddress"


def _last_words(item: ObjectSchema) -> dict[str, list[Field]]:
    """Return the fields by the last word of their labels: revenue for Annual Revenue."""
    fields: dict[str, list[Field]] = {}
    for entry in item.fields:
        words = plain_words(entry.label.partition("(")[0])
        if len(words) > 1 and words[-1] not in VAGUE_WORDS and entry.type not in ("boolean", "reference", "id"):
            fields.setdefault(words[-1], []).append(entry)
    return fields


def _links_by_name(item: ObjectSchema) -> dict[str, Field]:
    links: dict[str, Field] = {}
    for entry in item.fields:
        if entry.relationship:
            bare = entry.relationship.removesuffix("__r")
            for name in (bare, entry.label.removesuffix(" ID"), bare.removeprefix(item.name) or bare):
                links.setdefault(singular(squeeze(name)), entry)
    return links
