"""Whose records a question asks for, and what for."""

from bedstone.salesforce.questions.context import SchemaContext
from bedstone.salesforce.questions.draft import QueryDraft
from bedstone.salesforce.questions.operands import text_at
from bedstone.salesforce.questions.question import Question
from bedstone.salesforce.soql.quoting import like_string, soql_string

MAX_COMPANY_WORDS = 8
# The relationships that lead to people.
PEOPLE = {
    "owned by": "Owner", "assigned to": "Owner", "last modified by": "LastModifiedBy", "modified by": "LastModifiedBy",
    "updated by": "LastModifiedBy", "created by": "CreatedBy", "opened by": "CreatedBy", "entered by": "CreatedBy",
}  # fmt: skip
BEFORE_COMPANIES = frozenset({"of", "for", "at", "from", "by", "with", "account", "company", "named", "called"})


def read_purpose(question: Question, draft: QueryDraft, _: SchemaContext) -> None:
    """Read `for view`, `for reference`."""
    for word in ("view", "reference"):
        at = question.find("for", word)
        if at is not None:
            draft.purpose = word.upper()
            question.consume(at, at + 2)
            question.consume_words("using")


def read_ownership(question: Question, draft: QueryDraft, _: SchemaContext) -> None:
    """Read `my cases`, `owned by Jane Doe`, `assigned to me`."""
    scopes = draft.object.scopes
    has_scope = not scopes or "mine" in scopes
    if ("my" in question.folded or "mine" in question.folded) and has_scope:
        draft.scope = "mine"
        question.consume_words("my", "mine")
    for phrase, relationship in PEOPLE.items():
        found = question.find_any(phrase)
        if found is None or relationship.lower() not in draft.object.by_relationship:
            continue
        text = text_at(question, found[1]) if question.is_name(found[1]) else None
        if relationship == "Owner" and question.folded_at(found[1]) in ("me", "myself") and has_scope:
            draft.scope = "mine"
            question.consume(found[0], found[1] + 1)
        elif text is not None and question.is_free(found[0]):
            draft.add_filter(f"{relationship}.Name", "=", soql_string(text[0]), "name", 0.8, found[0])
            question.consume(found[0], text[1])


def read_record_types(question: Question, draft: QueryDraft, _: SchemaContext) -> None:
    """Read `Business record type`, `of the record type FAQ`."""
    found = question.find_any("record type", "record types", "recordtype")
    if found is None or "recordtype" not in draft.object.by_relationship:
        return
    start, end = found
    at = end + (question.folded_at(end) in ("is", "=", "of", "named"))
    text = text_at(question, at) if question.is_name(at) else None
    if text is None:
        while start > 0 and question.is_name(start - 1):
            start -= 1
        words = [question.text(place) for place in range(start, found[0])]
        text = (" ".join(words), end) if words else None
    if text is not None:
        draft.add_filter("RecordType.Name", "=", soql_string(text[0]), "name", 0.8, start)
        question.consume(start, text[1])


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
            draft.add_filter(path, "=", value, "company", 0.9, start)
            first = start
            while question.folded_at(first - 1) in BEFORE_COMPANIES:
                first -= 1
            question.consume(first, end)
            return


def read_unknown_companies(question: Question, draft: QueryDraft, schema: SchemaContext) -> None:
    """Read `contacts at Globex`: a name after `at` is a company, also one that the last sync did not see."""
    owner = schema.graph.get("Account")
    link = draft.object.by_relationship.get("account")
    if owner is None or link is None or owner.name not in link.reference_to:
        return
    for place, word in enumerate(question.folded):
        named = question.folded_at(place + 1) in ("account", "company")
        start = place + 1 + named
        is_before = word == "at" or (word in BEFORE_COMPANIES and (named or _is_quoted(question, start)))
        is_column = start < len(question) and schema.fields.at(question, owner, start) is not None
        if not is_before or is_column or not question.is_free(place) or not question.is_name(start):
            continue
        text = text_at(question, start)
        if text is not None:
            draft.add_filter("Account.Name", "LIKE", like_string(text[0]), "company", 0.6, place)
            draft.assumptions.append(f"{text[0]} is taken for a company; no synced account has this name")
            question.consume(place, text[1])


def _is_quoted(question: Question, place: int) -> bool:
    return place < len(question) and question.is_quoted(place)
