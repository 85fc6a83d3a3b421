"""In which order a question wants the records."""

from bedstone.salesforce.questions.context import SchemaContext
from bedstone.salesforce.questions.draft import QueryDraft
from bedstone.salesforce.questions.question import Question


def read_ordering(question: Question, draft: QueryDraft, schema: SchemaContext) -> None:
    """Read `ordered by name`, `sorted by amount descending`."""
    at = (
        question.find("ordered", "by")
        or question.find("sorted", "by")
        or question.find("order", "by")
        or question.find("sort", "by")
    )
    if at is None:
        return
    question.consume(at, at + 2)
    found = schema.fields.after(question, draft.object, at + 2)
    if found is None:
        return
    question.consume(found.start, found.end)
    is_descending = question.folded_at(found.end) in ("desc", "descending")
    draft.orders.append(found.field.name + (" DESC" if is_descending else ""))
    draft.columns.append(found.field.name)
    question.consume_words("desc", "descending", "asc", "ascending")
