"""Other objects that a question names: parents, children, records that have some or none."""

from dataclasses import replace

from bedstone.salesforce.graph.model import Edge, Field, ObjectSchema, SchemaGraph
from bedstone.salesforce.graph.names import squeeze
from bedstone.salesforce.questions.context import SchemaContext
from bedstone.salesforce.questions.draft import ChildQuery, FilterClause, QueryDraft, SemiJoin
from bedstone.salesforce.questions.operands import operator_at
from bedstone.salesforce.questions.passes.comparisons import find_amounts, find_comparisons
from bedstone.salesforce.questions.passes.dates import find_dates
from bedstone.salesforce.questions.passes.picklists import find_picklist_values
from bedstone.salesforce.questions.passes.states import find_places
from bedstone.salesforce.questions.question import Mention, Question
from bedstone.salesforce.questions.values import AMOUNT_TYPES, main_amount
from bedstone.salesforce.soql.quoting import soql_string
from bedstone.salesforce.synonyms import singular

MAX_DISTANCE_BEFORE = 4  # words between `without` or `have` and the object
VALUES_BEFORE = 3  # words before an object that can be values of it
OWNING = frozenset({"have", "has", "having", "least", "include", "includes"})
LACKING = frozenset({"without", "no", "lacking"})
RELATIONS = (("related", "to"), ("linked", "to"), ("associated", "with"), ("attached", "to"), ("belong", "to"))
KINDS = frozenset({"partner", "vendor", "prospect"})  # words for an object that are true for some records only
PREDICATES = frozenset({"in", "are", "is", "like"})
NOT_IN_JOINS = frozenset({"Task", "Event"})  # an org refuses semi-joins with activities
NEGATED_VERBS = (("do", "not"), ("does", "not"), ("don't",), ("doesn't",), ("not",))


def read_related(question: Question, draft: QueryDraft, schema: SchemaContext) -> None:
    """Read `with their contacts`, `without cases`, `that have open orders`, `account name`."""
    for mention in question.mentions:
        if question.is_free(mention.start) and not _is_field(question, draft, schema, mention):
            _read_mention(question, draft, schema, mention)
    for place, word in enumerate(question.folded):
        link = schema.fields.link(draft.object, word) if question.is_free(place) else None
        if link is not None and squeeze(word) == squeeze(str(link.relationship).removesuffix("__r")):
            draft.columns.append(f"{link.relationship}.Name")
            question.consume(place, place + 1)
            question.consume_near(place, "name", "names", "user")


def _is_field(question: Question, draft: QueryDraft, schema: SchemaContext, mention: Mention) -> bool:
    """Whether a synonym of an object is the name of a field here: employees of an account are a number."""
    found = schema.fields.at(question, draft.object, mention.start) if mention.why.startswith("synonym") else None
    return found is not None and not found.prefix and found.field.type in AMOUNT_TYPES


def _read_mention(question: Question, draft: QueryDraft, schema: SchemaContext, mention: Mention) -> None:
    before = question.folded[max(0, mention.start - MAX_DISTANCE_BEFORE) : mention.start]
    parent = _parent_before(question, draft, schema, mention)
    owner = parent[1] if parent is not None else draft.object.name
    edges = [edge for edge in schema.graph.children(owner) if edge.child == mention.object.name]
    joinable = [edge for edge in edges if len(edge.field.reference_to) == 1 and edge.child not in NOT_IN_JOINS]
    has_verb = not OWNING.isdisjoint(before)
    is_lacking = not LACKING.isdisjoint(before) or (has_verb and _take_negation(question, mention.start))
    is_name = singular(question.folded_at(mention.end)) == "name"
    if mention.object is draft.object:
        if not has_verb and not is_lacking and not _is_narrower(question, mention, before):
            question.consume(mention.start, mention.end)
    elif is_lacking:
        _read_absence(question, draft, schema, mention, joinable, parent[0] if parent is not None else "Id")
    elif joinable and (has_verb or _has_values(question, draft, schema, mention, before)):
        _consume_verb(question, mention.start)
        end = parent[0] if parent is not None else "Id"
        _join(question, draft, schema, mention, joinable[0].field, end, is_negated=False)
    elif parent is not None:
        return
    elif has_verb or is_name or not _read_children(question, draft, schema, mention, edges):
        _read_parent(question, draft, schema, mention)


def _is_narrower(question: Question, mention: Mention, before: tuple[str, ...]) -> bool:
    """Whether another word for the object says which records are meant: `partner accounts`, `accounts that are …`."""
    is_kind = singular(question.folded[mention.end - 1]) in KINDS
    return is_kind or "with" in before or not PREDICATES.isdisjoint(before[-2:])


def _parent_before(
    question: Question, draft: QueryDraft, schema: SchemaContext, mention: Mention
) -> tuple[str, str] | None:
    """Return the parent that is named right before `with` or `that have`: `contacts of customers with open deals`.

    Its first part is the field that leads to it, its second part its name.
    """
    before = [other for other in question.mentions if other.end <= mention.start]
    if not before or before[-1].object is draft.object or not before[-1].start:
        return None
    between = question.folded[before[-1].end : mention.start]
    link = _link_to(schema.graph, draft.object, before[-1].object)
    is_joined = bool(between) and between[0] in ("with", "without", "that", "who", "which", "having")
    return (link.name, before[-1].object.name) if link is not None and is_joined else None


def _take_negation(question: Question, place: int) -> bool:
    """Whether the verb before a place is negated; consumes the negation."""
    for at in range(max(0, place - MAX_DISTANCE_BEFORE - 2), place):
        for words in NEGATED_VERBS:
            if question.folded[at : at + len(words)] == words and question.is_free(at):
                question.consume(at, at + len(words))
                return True
    return False


def _consume_verb(question: Question, place: int) -> None:
    for at in range(max(0, place - MAX_DISTANCE_BEFORE - 2), place):
        if question.folded[at] in (*OWNING, "at", "one", "a", "an", "any"):
            question.consume(at, at + 1)


def _has_values(
    question: Question, draft: QueryDraft, schema: SchemaContext, mention: Mention, before: tuple[str, ...]
) -> bool:
    """Whether `with` names children of some kind, as in `with open cases`, and not all of them, as in `with their`."""
    is_continued = bool(draft.joins) and "and" in before
    if not ("with" in before or is_continued) or "their" in before:
        return False
    trial = Question(question.words, question.folded, question.quoted, question.mentions, set(question.consumed))
    start, end = _clause_of(question, mention)
    return bool(
        find_picklist_values(trial, schema, mention.object, start, mention.start)
        or _conditions_after(trial, draft, schema, mention)
        or (question.folded_at(mention.end) != "where" and find_dates(trial, schema, mention.object, mention.end, end))
    )


def _clause_of(question: Question, mention: Mention) -> tuple[int, int]:
    """Return where the words about an object begin and end: between the objects before and after it."""
    start = max([0, *(other.end for other in question.mentions if other.end <= mention.start)])
    end = min([len(question), *(other.start for other in question.mentions if other.start >= mention.end)])
    for at in range(end - 1, mention.end - 1, -1):
        if end < len(question) and question.folded[at] in ("and", ",", "with", "without"):
            end = at
            break
    return max(start, mention.start - VALUES_BEFORE), end


def _conditions_after(
    question: Question, draft: QueryDraft, schema: SchemaContext, mention: Mention
) -> list[FilterClause]:
    """Read the conditions on children that follow their name; `where` begins those of a subquery."""
    _, end = _clause_of(question, mention)
    if question.folded_at(mention.end) == "where":
        return []
    is_own = main_amount(draft.object) is None or operator_at(question, mention.end) is not None
    return [
        *find_comparisons(question, schema, mention.object, mention.end, end),
        *(find_amounts(question, mention.object, mention.end, end) if is_own else ()),
    ]


def _link_to(graph: SchemaGraph, source: ObjectSchema, target: ObjectSchema) -> Field | None:
    """Return the field that points to another object; one that is named after it wins."""
    links = [edge.field for edge in graph.parents(source.name) if edge.parent == target.name]
    plain = [link for link in links if link.relationship]
    named = [link for link in plain if str(link.relationship).lower() == target.name.lower()]
    return next(iter([*named, *plain]), None)


def _read_parent(question: Question, draft: QueryDraft, schema: SchemaContext, mention: Mention) -> None:
    """Filter by fields of a parent, or show its name."""
    link = _link_to(schema.graph, draft.object, mention.object)
    if link is None:
        return
    consumed = set(question.consumed)
    end = len(question)
    inner = [
        *find_dates(question, schema, mention.object, mention.end, end),
        *find_comparisons(question, schema, mention.object, mention.end, end),
        *find_picklist_values(question, schema, mention.object, mention.start - VALUES_BEFORE, end),
        *find_places(question, mention.object, mention.end, end),
    ]
    if inner and len(link.reference_to) > 1:  # only the name of such a parent can be compared
        question.consumed = consumed
        return
    question.consume(mention.start, mention.end)
    if inner:
        draft.filters += [replace(entry, path=f"{link.relationship}.{entry.path}") for entry in inner]
        return
    is_kind = len(link.reference_to) > 1 and question.folded_at(mention.start - 1) in ("for", "of", "on")
    if is_kind or _is_relation(question, mention.start):
        links = [edge.field for edge in schema.graph.parents(draft.object.name) if edge.parent == mention.object.name]
        several = next((field for field in links if len(field.reference_to) > 1), None)
        name = soql_string(mention.object.name)
        parts = (f"{several.relationship}.Type", "=", name) if several is not None else (link.name, "!=", "null")
        draft.add_filter(*parts, "phrase", 0.8, mention.start)
        return
    draft.columns.append(f"{link.relationship}.Name")
    question.consume_near(mention.end - 1, "name", "names")


def _is_relation(question: Question, place: int) -> bool:
    """Whether records are asked for by what they belong to: `tasks related to accounts`."""
    return (
        question.folded[max(0, place - 2) : place] in RELATIONS
        and singular(question.folded[place]) != question.folded[place]
    )


def _read_children(
    question: Question, draft: QueryDraft, schema: SchemaContext, mention: Mention, edges: list[Edge]
) -> bool:
    """Add a subquery; whether there is a relationship for one."""
    named = [edge for edge in edges if edge.child_relationship]
    if not named or question.folded_at(mention.start - 1) in ("in", "on", "from", "by"):
        return False
    best = min(named, key=lambda edge: (len(edge.field.reference_to) > 1, len(str(edge.child_relationship))))
    question.consume(mention.start, mention.end)
    start = mention.start - VALUES_BEFORE
    filters = [
        *find_comparisons(question, schema, mention.object, mention.end, len(question)),
        *find_picklist_values(question, schema, mention.object, start, mention.end),
    ]
    draft.children.append(ChildQuery(str(best.child_relationship), mention.object, filters))
    return True


def _read_absence(  # noqa: PLR0917 - what is joined, and to what
    question: Question, draft: QueryDraft, schema: SchemaContext, mention: Mention, edges: list[Edge], parent: str
) -> None:
    link = _link_to(schema.graph, draft.object, mention.object)
    if not edges and link is None:
        return
    word = question.folded[mention.end - 1]
    if link is not None and singular(word) == word:  # a record has one parent and many children
        edges = []
    for at in range(max(0, mention.start - MAX_DISTANCE_BEFORE), mention.start):
        if question.folded[at] in (*LACKING, "any", "a", "an", "related"):
            question.consume(at, at + 1)
    _consume_verb(question, mention.start)
    if edges:
        _join(question, draft, schema, mention, edges[0].field, parent, is_negated=True)
    elif link is not None:
        question.consume(mention.start, mention.end)
        draft.add_filter(link.name, "=", "null", "phrase", 0.9, mention.start)


def _join(  # noqa: PLR0917 - what is joined, and to what
    question: Question,
    draft: QueryDraft,
    schema: SchemaContext,
    mention: Mention,
    link: Field,
    parent: str,
    *,
    is_negated: bool,
) -> None:
    start, end = _clause_of(question, mention)
    question.consume(mention.start, mention.end)
    filters: list[FilterClause] = [
        *find_picklist_values(question, schema, mention.object, start, mention.end),
        *_conditions_after(question, draft, schema, mention),
        *find_dates(question, schema, mention.object, mention.end, end),
        *find_picklist_values(question, schema, mention.object, mention.end, end),
    ]
    draft.joins.append(SemiJoin(mention.object.name, link.name, filters, is_negated, parent))
