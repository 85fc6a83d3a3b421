"""Records that are active, have a name, or are in a place."""

from bedstone.salesforce.questions.context import SchemaContext
from bedstone.salesforce.questions.draft import QueryDraft
from bedstone.salesforce.questions.gazetteer import COUNTRIES, REGIONS
from bedstone.salesforce.questions.question import Question
from bedstone.salesforce.soql.quoting import like_string, soql_string


def read_states(question: Question, draft: QueryDraft, _: SchemaContext) -> None:
    """Read `inactive users`, `named 'x'`, `in Berlin`."""
    for place, word in enumerate(question.folded):
        if not question.is_free(place):
            continue
        if word in ("active", "inactive") and draft.object.field("IsActive") is not None:
            is_active = (word == "active") != question.take_negation(place)
            draft.add_filter("IsActive", "=", str(is_active).lower(), "phrase", 0.9)
            question.consume(place, place + 1)
        elif word in ("named", "called"):
            _read_name(question, draft, place)
        elif word == "in":
            _read_place(question, draft, place)


def _read_name(question: Question, draft: QueryDraft, place: int) -> None:
    """Read `named 'Acme'`, `called like 'Ac'`."""
    field = draft.object.name_field
    is_like = question.folded_at(place + 1) == "like"
    at = place + 1 + is_like
    if field is None or at >= len(question) or not question.is_quoted(at):
        return
    text = question.text(at)
    if is_like:
        draft.add_filter(field.name, "LIKE", like_string(text, before=True), "name", 0.9)
    else:
        draft.add_filter(field.name, "=", soql_string(text), "name", 0.9)
    question.consume(place, at + 1)


def _read_place(question: Question, draft: QueryDraft, place: int) -> None:
    """Read `in Germany`, `in New Jersey`, `in Berlin`."""
    end = start = place + 1
    while end < len(question) and question.is_free(end) and _is_capitalized(question.words[end]):
        end += 1
    for stop in range(end, start, -1):
        name = question.phrase(start, stop)
        kind = _kind_of_place(name)
        if kind == "City" and start + 1 < stop < end:
            continue  # a city is the whole name, or its first word
        candidates = (f"Billing{kind}", f"Mailing{kind}", kind, f"{kind}__c")
        field = next((column for column in candidates if draft.object.field(column) is not None), None)
        if field is not None:
            draft.add_filter(field, "=", soql_string(name), "place", 0.6)
            draft.assumptions.append(f"{name} is taken for a {kind.lower()}")
            question.consume(place, stop)
            return


def _is_capitalized(word: str) -> bool:
    return word.isalpha() and word[0].isupper()


def _kind_of_place(name: str) -> str:
    if name.casefold() in COUNTRIES:
        return "Country"
    return "State" if name.casefold() in REGIONS else "City"
