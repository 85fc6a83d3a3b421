"""Which columns a question asks for."""

from bedstone.salesforce.graph.columns import default_columns
from bedstone.salesforce.questions.context import SchemaContext
from bedstone.salesforce.questions.draft import QueryDraft
from bedstone.salesforce.questions.field_names import FieldMention
from bedstone.salesforce.questions.question import Question


def read_long_columns(question: Question, draft: QueryDraft, schema: SchemaContext) -> None:
    """Read names of several words first: `contact email` has a word that is also a value."""
    for place in range(len(question)):
        found = schema.fields.at(question, draft.object, place) if question.is_free(place) else None
        is_period = question.folded_at(place - 1) in ("this", "last", "next", "current", "previous")  # fiscal quarter
        is_long = (
            not is_period
            and found is not None
            and found.end > found.start + 1
            and found.field.type not in ("boolean", "reference")
        )
        if found is not None and is_long and question.consumed.isdisjoint(range(found.start, found.end)):
            draft.columns.append(found.path)
            question.consume(found.start, found.end)


def read_columns(question: Question, draft: QueryDraft, schema: SchemaContext) -> None:
    """Read the names of fields that no other pass has read; the usual columns come first."""
    named = []
    place = 0
    while place < len(question):
        found = schema.fields.at(question, draft.object, place) if question.is_free(place) else None
        is_free = found is not None and question.consumed.isdisjoint(range(found.start, found.end))
        if found is not None and is_free and not _is_state(question, found):
            named.append(found.path)
            question.consume(found.start, found.end)
            place = found.end
        else:
            place += 1
    draft.columns = list(dict.fromkeys([*default_columns(draft.object), *named, *draft.columns]))


def _is_state(question: Question, found: FieldMention) -> bool:
    """Whether a word is an adjective rather than the name of a field: `deleted accounts`."""
    return found.field.type == "boolean" and question.phrase(found.start, found.end) != found.field.name
