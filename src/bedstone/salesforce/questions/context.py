"""What a pass can look up, and what a pass is."""

from collections.abc import Callable
from dataclasses import dataclass

from bedstone.salesforce.graph.model import SchemaGraph
from bedstone.salesforce.graph.object_names import ObjectNames
from bedstone.salesforce.questions.draft import QueryDraft
from bedstone.salesforce.questions.field_names import FieldNames
from bedstone.salesforce.questions.grounding import Grounder
from bedstone.salesforce.questions.question import Question


@dataclass(frozen=True)
class SchemaContext:
    """One schema with the ways to find things in it."""

    graph: SchemaGraph
    names: ObjectNames
    grounder: Grounder
    fields: FieldNames


Pass = Callable[[Question, QueryDraft, SchemaContext], None]
