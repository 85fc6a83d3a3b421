"""Questions in plain English to a query draft, by rules: a sequence of passes over the words."""

from bedstone.salesforce.graph.model import SchemaGraph
from bedstone.salesforce.graph.object_names import ObjectNames
from bedstone.salesforce.questions.context import Pass, SchemaContext
from bedstone.salesforce.questions.draft import QueryDraft
from bedstone.salesforce.questions.field_names import FieldNames
from bedstone.salesforce.questions.grounding import Grounder
from bedstone.salesforce.questions.passes.child_totals import read_child_totals
from bedstone.salesforce.questions.passes.columns import read_columns, read_long_columns
from bedstone.salesforce.questions.passes.comparisons import read_comparisons, read_own_comparisons
from bedstone.salesforce.questions.passes.dates import read_dates
from bedstone.salesforce.questions.passes.grade import grade
from bedstone.salesforce.questions.passes.grouping import read_field_totals, read_grouping
from bedstone.salesforce.questions.passes.limits import read_limits
from bedstone.salesforce.questions.passes.object import find_object
from bedstone.salesforce.questions.passes.ordering import read_ordering
from bedstone.salesforce.questions.passes.picklists import merge_alternatives, read_parent_values, read_picklist_values
from bedstone.salesforce.questions.passes.related import read_related
from bedstone.salesforce.questions.passes.scope import (
    read_companies,
    read_ownership,
    read_purpose,
    read_record_types,
    read_unknown_companies,
)
from bedstone.salesforce.questions.passes.states import read_states
from bedstone.salesforce.questions.question import Question

# The order matters: a word that one pass consumes is not read by a later one.
PASSES: tuple[Pass, ...] = (
    read_purpose,
    read_ownership,
    read_record_types,
    read_own_comparisons,
    read_limits,
    read_child_totals,
    read_field_totals,
    read_ordering,
    read_grouping,
    read_companies,
    read_long_columns,
    read_related,
    read_comparisons,
    read_dates,
    read_picklist_values,
    read_parent_values,
    read_states,
    read_unknown_companies,
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
