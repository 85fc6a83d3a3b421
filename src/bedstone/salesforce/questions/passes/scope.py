"""Whose records a question asks for, and what for."""

from bedstone.salesforce.questions.context import SchemaContext
from bedstone.salesforce.questions.draft import QueryDraft
from bedstone.salesforce.questions.question import Question
from bedstone.salesforce.soql.quoting import soql_string

MAX_COMPANY_WORDS = 8
BEFORE_COMPANIES = frozenset({"of", "for", "at", "from", "by", "with", "account", "company"})


def read_purpose(question: Question, draft: QueryDraft, _: SchemaContext) -> None:
    """Read `for view`, `for reference`."""
    for word in ("view", "reference"):
        at = question.find("for", word)
        if at is not None:
            draft.purpose = word.upper()
            question.consume(at, at + 2)
            question.consume_words("using")


def read_ownership(question: Question, draft: QueryDraft, _: SchemaContext) -> None:
    """Read `my cases`, `owned by Jane Doe`."""
    scopes = draft.object.scopes
    if ("my" in question.folded or "mine" in question.folded) and (not scopes or "mine" in scopes):
        draft.scope = "mine"
        question.consume_words("my", "mine")
    at = question.find("owned", "by")
    if at is None or "owner" not in draft.object.by_relationship:
        return
    end = start = at + 2
    while end < len(question) and (question.is_quoted(end) or question.words[end][0].isupper()):
        end += 1
    if end > start:
        name = " ".join(question.text(place) for place in range(start, end))
        draft.add_filter("Owner.Name", "=", soql_string(name), "name", 0.8)
        question.consume(at, end)


def read_companies(question: Question, draft: QueryDraft, schema: SchemaContext) -> None:
    """Read `open cases of Acme Cycles`: companies that the last sync saw."""
    for start in range(len(question)):
        if not question.text(start)[:1].islower():
            _read_company_at(question, draft, schema, start)


def _read_company_at(question: Question, draft: QueryDraft, schema: SchemaContext, start: int) -> None:
    for end in range(min(len(question), start + MAX_COMPANY_WORDS), start, -1):
        if not question.consumed.isdisjoint(range(start, end)):
            continue
        words = [question.text(place) for place in range(start, end)]
        found = schema.grounder.company_filter(words, draft.object)
        if found is not None:
            path, value = found
            draft.add_filter(path, "=", value, "company", 0.9)
            first = start
            while question.folded_at(first - 1) in BEFORE_COMPANIES:
                first -= 1
            question.consume(first, end)
            return
