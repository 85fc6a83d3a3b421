"""Records that are active, have a name, or are in a place."""

from bedstone.salesforce.graph.model import Field, ObjectSchema
from bedstone.salesforce.graph.names import words_of
from bedstone.salesforce.questions.context import SchemaContext
from bedstone.salesforce.questions.draft import FilterClause, QueryDraft
from bedstone.salesforce.questions.gazetteer import COMMON_NAMES, COUNTRIES, REGIONS
from bedstone.salesforce.questions.operands import text_at
from bedstone.salesforce.questions.periods import MONTHS
from bedstone.salesforce.questions.question import Question
from bedstone.salesforce.soql.quoting import like_string, soql_string
from bedstone.salesforce.synonyms import plain_words

MAX_FLAG_WORDS = 4
OPPOSITES = ("un", "in", "non")
UNTOLD = frozenset({"deleted"})  # a query never sees these records
NOT_FROM = frozenset({"Case"})  # `from Berlin` says where a request came from, and not where its account is


def read_states(question: Question, draft: QueryDraft, _: SchemaContext) -> None:
    """Read `inactive users`, `converted leads`, `overdue tasks`, `named 'x'`, `in Berlin`."""
    flags = _flags(draft.object)
    for place, word in enumerate(question.folded):
        if not question.is_free(place):
            continue
        if word in ("named", "called"):
            _read_name(question, draft, place)
        elif word == "overdue":
            _read_overdue(question, draft, place)
        else:
            _read_flag(question, draft, flags, place)
    draft.filters += find_places(question, draft.object, 0, len(question))
    draft.assumptions += [
        f"{entry.value.strip(chr(39))} is taken for a {_kind_of_field(entry.path)}"
        for entry in draft.filters
        if entry.source == "place" and entry.operator in ("=", "!=")
    ]


def _read_flag(question: Question, draft: QueryDraft, flags: dict[str, Field], place: int) -> None:
    """Read the name of a boolean: `active`, `unconverted`, `in warranty`, `not exclusive`."""
    for length in range(MAX_FLAG_WORDS, 0, -1):
        words = question.folded[place : place + length]
        if len(words) < length or not question.consumed.isdisjoint(range(place, place + length)):
            continue
        joined = "".join(words)
        opposite = next((joined.removeprefix(start) for start in OPPOSITES if joined.startswith(start)), "")
        field = flags.get(joined)
        is_true = field is not None
        field = field or flags.get(opposite)
        if field is not None and question.folded_at(place + length) not in ("is", "="):
            is_true = is_true != question.take_negation(place)
            draft.add_filter(field.name, "=", str(is_true).lower(), "phrase", 0.9, place)
            question.consume(place, place + length)
            return


def _flags(item: ObjectSchema) -> dict[str, Field]:
    """Return the booleans of an object by the words that follow `is` or `has` in their names."""
    flags: dict[str, Field] = {}
    for entry in item.fields:
        if entry.type == "boolean" and entry.filterable:
            for words in (words_of(entry.name), plain_words(entry.label)):
                bare = words[1:] if words[:1] in (["is"], ["has"]) else words
                if bare and not UNTOLD.intersection(bare):
                    flags.setdefault("".join(bare), entry)
    return flags


def _read_overdue(question: Question, draft: QueryDraft, place: int) -> None:
    field = draft.object.field("ActivityDate") or draft.object.field("DueDate") or draft.object.field("Due_Date__c")
    if field is None:
        return
    draft.add_filter(field.name, "<", "TODAY", "phrase", 0.9, place)
    if draft.object.field("IsClosed") is not None:
        draft.add_filter("IsClosed", "=", "false", "phrase", 0.9, place)
    question.consume(place, place + 1)


def _read_name(question: Question, draft: QueryDraft, place: int) -> None:
    """Read `named 'Acme'`, `called like 'Ac'`, `named Jane Doe`."""
    field = draft.object.name_field
    is_like = question.folded_at(place + 1) == "like"
    text = text_at(question, place + 1 + is_like)
    if field is None or text is None or not (question.is_name(place + 1 + is_like) or is_like):
        return
    is_part = len(text[0].split()) == 1 and draft.object.field("LastName") is not None
    if is_like or is_part:
        draft.add_filter(field.name, "LIKE", like_string(text[0], before=True), "name", 0.9, place)
    else:
        draft.add_filter(field.name, "=", soql_string(text[0]), "name", 0.9, place)
    question.consume(place, text[1])


def find_places(question: Question, item: ObjectSchema, start: int, end: int) -> list[FilterClause]:
    """Return the places in a stretch of words: `in Germany`, `in Hamburg or Lyon`, `outside France`."""
    clauses: list[FilterClause] = []
    for place in range(start, end):
        word = question.folded[place]
        is_from = word in ("from", "based", "located") and item.name not in NOT_FROM
        if question.is_free(place) and (word in ("in", "outside") or is_from):
            clauses += _places_at(question, item, place)
    return clauses


def _places_at(question: Question, item: ObjectSchema, place: int) -> list[FilterClause]:
    """Read one or more names of places."""
    before = place - 1 - (question.folded_at(place - 1) in ("those", "ones"))
    is_excluded = question.folded_at(before) in ("not", "except", "excluding")
    is_negated = question.folded[place] == "outside" or is_excluded
    at, names = place + 1, list[str]()
    at += question.folded_at(at) == "of"
    at += question.folded_at(at) == "in"
    end, field = at, None
    while (found := _place_at(question, item, at)) is not None and (field is None or found[1] == field):
        names.append(found[0])
        field, end = found[1], found[2]
        at = end
        while question.folded_at(at) in ("or", "and", ",", "in"):
            at += 1
        if at == end:
            break
    if field is None:
        return []
    question.consume(before if is_excluded else place, end)
    literals = [soql_string(name) for name in names]
    operator = ("NOT IN" if is_negated else "IN") if len(names) > 1 else ("!=" if is_negated else "=")
    value = f"({', '.join(literals)})" if len(names) > 1 else literals[0]
    return [FilterClause(item.name, field, operator, value, "place", 0.6, place)]


def _place_at(question: Question, item: ObjectSchema, place: int) -> tuple[str, str, int] | None:
    """Return the name of a place, the field for it, and where it ends: `the United States`, `New Jersey`, `Berlin`."""
    start = place + (question.folded_at(place) == "the")
    end = start
    while end < len(question) and question.is_free(end) and _is_name(question, end):
        end += 1
    for stop in range(end, start, -1):
        name = question.text(start) if stop == start + 1 else question.phrase(start, stop)
        kind = _kind_of_place(name)
        if name.casefold() in MONTHS:
            return None
        if kind == "City" and (start + 1 < stop < end or start > place):
            continue  # a city is the whole name, or its first word
        candidates = (f"Billing{kind}", f"Mailing{kind}", kind, f"{kind}__c")
        field = next((column for column in candidates if item.field(column) is not None), None)
        if field is not None:
            return COMMON_NAMES.get(name.casefold(), name), field, stop
    return None


def _is_name(question: Question, place: int) -> bool:
    return question.is_name(place) and (question.is_quoted(place) or question.words[place].replace("-", "").isalpha())


def _kind_of_place(name: str) -> str:
    if name.casefold() in COUNTRIES:
        return "Country"
    return "State" if name.casefold() in REGIONS else "City"


def _kind_of_field(path: str) -> str:
    return next((kind.lower() for kind in ("Country", "State") if kind in path), "city")
