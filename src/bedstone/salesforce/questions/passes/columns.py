"""Which columns a question asks for."""

from bedstone.salesforce.graph.columns import default_columns
from bedstone.salesforce.questions.context import SchemaContext
from bedstone.salesforce.questions.draft import QueryDraft
from bedstone.salesforce.questions.question import Question


def read_columns(question: Question, draft: QueryDraft, schema: SchemaContext) -> None:
    """Read the names of fields that no other pass has read; the usual columns come first."""
    named = []
    place = 0
    while place < len(question):
        found = schema.fields.at(question, draft.object, place) if question.is_free(place) else None
        if found is not None and not found.prefix:
            named.append(found.field.name)
            question.consume(found.start, found.end)
            place = found.end
        else:
            place += 1
    draft.columns = list(dict.fromkeys([*default_columns(draft.object), *named, *draft.columns]))
