"""Questions in plain English to a query draft, by rules: a sequence of passes over the words."""

from bedstone.salesforce.graph.model import SchemaGraph
from bedstone.salesforce.graph.object_names import ObjectNames
from bedstone.salesforce.questions.context import Pass, SchemaContext
from bedstone.salesforce.questions.draft import QueryDraft
from bedstone.salesforce.questions.field_names import FieldNames
from bedstone.salesforce.questions.grounding import Grounder
from bedstone.salesforce.questions.passes.columns import read_columns
from bedstone.salesforce.questions.passes.comparisons import read_comparisons
from bedstone.salesforce.questions.passes.dates import read_dates
from bedstone.salesforce.questions.passes.grade import grade
from bedstone.salesforce.questions.passes.grouping import read_grouping
from bedstone.salesforce.questions.passes.limits import read_limits
from bedstone.salesforce.questions.passes.object import find_object
from bedstone.salesforce.questions.passes.ordering import read_ordering
from bedstone.salesforce.questions.passes.picklists import merge_alternatives, read_picklist_values
from bedstone.salesforce.questions.passes.related import read_related
from bedstone.salesforce.questions.passes.scope import read_companies, read_ownership, read_purpose
from bedstone.salesforce.questions.passes.states import read_states
from bedstone.salesforce.questions.question import Question

MIN_CONFIDENCE = 0.35  # below it, no query is offered
# The order matters: a word that one pass consumes is not read by a later one.
PASSES: tuple[Pass, ...] = (
    read_purpose,
    read_ownership,
    read_limits,
    read_grouping,
    read_ordering,
    read_related,
    read_companies,
    read_comparisons,
    read_dates,
    read_picklist_values,
    read_states,
    merge_alternatives,
    read_columns,
    grade,
)


class Interpreter:
    """Interprets questions against one schema."""

    def __init__(self, graph: SchemaGraph, names: ObjectNames, grounder: Grounder) -> None:
        self._schema = SchemaContext(graph, names, grounder, FieldNames(graph))

    def interpret(self, text: str) -> QueryDraft | None:
        """Return the draft of a query; None if the question names no object."""
        question = Question.parse(text)
        draft = find_object(question, self._schema)
        if draft is not None:
            for read in PASSES:
                read(question, draft, self._schema)
        return draft
