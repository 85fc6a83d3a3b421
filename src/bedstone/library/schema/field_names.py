"""Fields by what people call them."""

from collections.abc import Iterator

from bedstone.library.schema.words import plain_words, singular
from bedstone.salesforce.graph.model import Field, ObjectSchema
from bedstone.salesforce.graph.names import squeezed, words_of


class FieldNames:
    """Fields by whatever they are called; what was made for an object is kept."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, Field]] = {}

    def of(self, item: ObjectSchema) -> dict[str, Field]:
        """By name, label and bare words; of several, the plainest."""
        if item.name not in self._known:
            self._known[item.name] = self._made(item)
        return self._known[item.name]

    def _made(self, item: ObjectSchema) -> dict[str, Field]:
        made: dict[str, Field] = {}
        for entry in sorted(item.fields, key=lambda entry: (len(entry.name), entry.name)):
            for name in self._names(entry, item):
                key = singular(squeezed(name))
                if key:
                    made.setdefault(key, entry)
        return made | {squeezed(entry.name): entry for entry in item.fields}  # exact names win

    @staticmethod
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
