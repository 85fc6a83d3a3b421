"""Convert the schema to the results of the contract."""

from collections import Counter
from collections.abc import Iterator

from bedstone.salesforce.graph.categories import kind_of
from bedstone.salesforce.graph.model import Field, ObjectSchema, SchemaGraph
from bedstone.salesforce.graph.paths import HUBS, Path, Step
from bedstone.salesforce.questions.grounding import Grounding
from bedstone.salesforce.validation import Message, validate
from bedstone.toolsets.salesforce_graph.contract import (
    Alternative,
    FieldFacts,
    FoundPath,
    ObjectDetails,
    ObjectFacts,
    RelationshipFacts,
    Segment,
    ValidationMessage,
)

MAX_RELATIONSHIPS = 200
MAX_VALUES = 12
MAX_TARGETS = 5


def object_line(item: ObjectSchema, graph: SchemaGraph) -> dict[str, str]:
    """Return an object as a row of a list."""
    return {"apiName": item.name, "label": item.label, "category": kind_of(item.name, graph)}


def object_details(item: ObjectSchema, graph: SchemaGraph) -> ObjectDetails:
    """Return an object with its fields and relationships, never the raw describe."""
    relationships = sorted(_relationships(item, graph), key=_relationship_order)
    left_out = len(relationships) - MAX_RELATIONSHIPS
    return ObjectDetails(
        object=ObjectFacts(
            api_name=item.name,
            label=item.label,
            description=object_description(item, graph),
            category=kind_of(item.name, graph),
        ),
        fields=[field_facts(field) for field in item.fields],
        relationships=relationships[:MAX_RELATIONSHIPS],
        relationships_left_out=left_out if left_out > 0 else None,
    )


def object_description(item: ObjectSchema, graph: SchemaGraph) -> str:
    """Return a description of an object; describes have none."""
    kind = kind_of(item.name, graph)
    if kind == "standard":
        return f"Standard Salesforce {item.label} object"
    return f"{kind.replace('_', ' ').capitalize()} object {item.label}"


def field_facts(field: Field) -> FieldFacts:
    return FieldFacts(
        api_name=field.name,
        label=field.label,
        description=_field_description(field),
        type=field.type,
        category="custom" if field.is_custom else "standard",
        nullable=field.nillable,
        unique=field.unique,
        help_text=field.help,
    )


def _field_description(field: Field) -> str:
    if field.reference_to:
        more = " and others" if len(field.reference_to) > MAX_TARGETS else ""
        return f"Points to {', '.join(field.reference_to[:MAX_TARGETS])}{more}"
    if field.choices:
        values = field.values
        more = f" and {len(values) - MAX_VALUES} more" if len(values) > MAX_VALUES else ""
        return f"One of: {', '.join(values[:MAX_VALUES])}{more}"
    return field.help or field.label


def _relationships(item: ObjectSchema, graph: SchemaGraph) -> Iterator[RelationshipFacts]:
    """Yield one relationship per related object, direction and type."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for edge in graph.parents(item.name):
        counts[edge.parent, edge.field.relationship_type, "outgoing"] += 1
    for edge in graph.children(item.name):
        counts[edge.child, edge.field.relationship_type, "incoming"] += 1
    for (other, kind, direction), count in counts.items():
        yield RelationshipFacts(
            source_object=item.name, target_object=other, relationship_type=kind, field_count=count, direction=direction
        )


def _relationship_order(fact: RelationshipFacts) -> tuple[bool, bool, str]:
    return fact.target_object in HUBS, fact.direction == "incoming", fact.target_object


def hints(item: ObjectSchema, graph: SchemaGraph, limit: int = 20) -> list[str]:
    """Return the names of directly related objects, the most specific first."""
    facts = sorted(_relationships(item, graph), key=_relationship_order)
    return list(dict.fromkeys(fact.target_object for fact in facts))[:limit]


def message(finding: Message) -> ValidationMessage:
    has_position = finding.type != "info"
    return ValidationMessage(
        type=finding.type,
        code=finding.code,
        message=finding.message,
        clause=finding.clause or None,
        line=finding.line if has_position else None,
        column=finding.column if has_position else None,
        original=finding.original,
        corrected=finding.corrected,
    )


def alternative(item: Grounding) -> Alternative:
    return Alternative(type=item.type, suggested_filter=item.filter, confidence=item.confidence)


def path(found: Path, graph: SchemaGraph) -> FoundPath:
    example = None if found.exceeds_soql else found.soql()
    return FoundPath(
        segments=[_segment(step) for step in found.steps],
        hops=len(found.steps),
        dot_notation=found.dot_notation,
        soql=example if example and validate(example, graph).valid else None,
        exceeds_soql_limit=found.exceeds_soql or None,
    )


def _segment(step: Step) -> Segment:
    field = step.edge.field
    return Segment(
        source=step.source,
        target=step.target,
        field=f"{step.edge.child}.{field.name}",
        direction=step.direction,
        relationship_name=field.relationship,
        child_relationship_name=step.edge.child_relationship,
        relationship_type=field.relationship_type,
        polymorphic=len(field.reference_to) > 1,
    )
