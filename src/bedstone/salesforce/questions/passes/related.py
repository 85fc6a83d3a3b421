"""Other objects that a question names: parents, children, records that have some or none."""

from dataclasses import replace

from bedstone.salesforce.graph.model import Edge, Field, ObjectSchema, SchemaGraph
from bedstone.salesforce.graph.names import squeeze
from bedstone.salesforce.questions.context import SchemaContext
from bedstone.salesforce.questions.draft import ChildQuery, FilterClause, QueryDraft, SemiJoin
from bedstone.salesforce.questions.passes.comparisons import find_comparisons
from bedstone.salesforce.questions.passes.dates import find_dates
from bedstone.salesforce.questions.passes.picklists import find_picklist_values
from bedstone.salesforce.questions.question import Mention, Question
from bedstone.salesforce.synonyms import singular

MAX_DISTANCE_BEFORE = 4  # words between `without` or `have` and the object
VALUES_BEFORE = 3  # words before an object that can be values of it


def read_related(question: Question, draft: QueryDraft, schema: SchemaContext) -> None:
    """Read `with their contacts`, `without cases`, `that have open orders`, `account name`."""
    for mention in question.mentions:
        if question.is_free(mention.start):
            _read_mention(question, draft, schema, mention)
    for relationship, link in draft.object.by_relationship.items():
        for place, word in enumerate(question.folded):
            if question.is_free(place) and squeeze(word) == relationship and link.reference_to:
                draft.columns.append(f"{link.relationship}.Name")
                question.consume(place, place + 1)
                question.consume_near(place, "name", "names", "user")


def _read_mention(question: Question, draft: QueryDraft, schema: SchemaContext, mention: Mention) -> None:
    before = question.folded[max(0, mention.start - MAX_DISTANCE_BEFORE) : mention.start]
    edges = [edge for edge in schema.graph.children(draft.object.name) if edge.child == mention.object.name]
    has_verb = "least" in before or "have" in before or "has" in before
    is_name = singular(question.folded_at(mention.end)) == "name"
    if mention.object is draft.object:
        question.consume(mention.start, mention.end)
    elif "without" in before or "no" in before:
        question.consume_words("no", "without")
        _read_absence(question, draft, schema, mention, edges)
    elif has_verb and edges:
        question.consume_words("least", "one", "have", "has", "at")
        _join(question, draft, schema, mention, edges[0].field, is_negated=False)
    elif has_verb or is_name or not _read_children(question, draft, schema, mention, edges):
        _read_parent(question, draft, schema, mention)


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
    end = len(question)
    inner = [
        *find_dates(question, schema, mention.object, mention.end, end),
        *find_comparisons(question, schema, mention.object, mention.end, end),
        *find_picklist_values(question, schema, mention.object, mention.start - VALUES_BEFORE, end),
    ]
    question.consume(mention.start, mention.end)
    if inner and len(link.reference_to) == 1:
        draft.filters += [replace(entry, path=f"{link.relationship}.{entry.path}") for entry in inner]
        return
    draft.columns.append(f"{link.relationship}.Name")
    question.consume_near(mention.end - 1, "name", "names")


def _read_children(
    question: Question, draft: QueryDraft, schema: SchemaContext, mention: Mention, edges: list[Edge]
) -> bool:
    """Add a subquery; whether there is a relationship for one."""
    named = [edge for edge in edges if edge.child_relationship]
    if not named:
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


def _read_absence(
    question: Question, draft: QueryDraft, schema: SchemaContext, mention: Mention, edges: list[Edge]
) -> None:
    link = _link_to(schema.graph, draft.object, mention.object)
    question.consume(mention.start, mention.end)
    if edges:
        _join(question, draft, schema, mention, edges[0].field, is_negated=True)
    elif link is not None:
        draft.add_filter(link.name, "=", "null", "phrase", 0.9)


def _join(
    question: Question, draft: QueryDraft, schema: SchemaContext, mention: Mention, link: Field, *, is_negated: bool
) -> None:
    question.consume(mention.start, mention.end)
    filters: list[FilterClause] = [
        *find_picklist_values(question, schema, mention.object, mention.start - VALUES_BEFORE, mention.end),
        *find_dates(question, schema, mention.object, mention.end, len(question)),
    ]
    draft.joins.append(SemiJoin(mention.object.name, link.name, filters, is_negated))
