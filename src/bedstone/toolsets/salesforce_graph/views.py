"""Convert the schema to the results of the contract."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from bedstone.salesforce.graph.categories import kind_of
from bedstone.salesforce.graph.model import Field, ObjectSchema, SchemaGraph
from bedstone.salesforce.graph.paths import HUBS, Path, Step
from bedstone.salesforce.questions.grounding import Grounding
from bedstone.salesforce.validation import Message, validate
from bedstone.toolsets.salesforce_graph.contract import (
    Alternative,
    ChildRelationshipFacts,
    FieldFacts,
    FoundPath,
    ObjectDetails,
    ObjectFacts,
    RelatedObjects,
    RelationshipFacts,
    Segment,
    ValidationMessage,
)
from bedstone.toolsets.salesforce_graph.cursor import make_cursor

Item = TypeVar("Item")
MAX_VALUES = 12
MAX_PICKLIST_VALUES = 50  # of a field in a long list of fields
MAX_COMPLETE_FIELDS = 5  # a list of so few fields has all values of their picklists
MAX_HINTS = 20
MAX_TARGETS = 5


def object_line(item: ObjectSchema, graph: SchemaGraph) -> dict[str, str]:
    """Return an object as a row of a list."""
    return {"apiName": item.name, "label": item.label, "category": kind_of(item.name, graph)}


@dataclass(frozen=True)
class Part:
    """Which fields and relationships of an object to show: all of them, or a page of those that match."""

    search: str = ""
    type: str = ""
    start: int = 0
    limit: int | None = None

    @property
    def end(self) -> int | None:
        return None if self.limit is None else self.start + self.limit

    def matches(self, *names: str | None) -> bool:
        """Return whether a name contains the text."""
        return not self.search or any(self.search.lower() in name.lower() for name in names if name)

    def cut(self, items: Sequence[Item]) -> tuple[list[Item], int | None]:
        """Return the items of the page, and the number of those that follow, if any."""
        page = list(items[self.start : self.end])
        return page, max(0, len(items) - self.start - len(page)) or None


WHOLE = Part()


def object_details(item: ObjectSchema, graph: SchemaGraph, part: Part = WHOLE) -> ObjectDetails:
    """Return an object with its fields and relationships, never the raw describe."""
    matching = [
        field
        for field in item.fields
        if part.type.lower() in ("", field.type.lower()) and part.matches(field.name, field.label)
    ]
    links = [fact for fact in _relationships(item, graph) if part.matches(fact.target_object)]
    children = [
        child for child in _child_relationships(item) if part.matches(child.relationship_name, child.child_object)
    ]
    fields, fields_left = part.cut(matching)
    relationships, relationships_left = part.cut(sorted(links, key=_relationship_order))
    child_relationships, children_left = part.cut(children)
    most_values = None if part is WHOLE or len(fields) <= MAX_COMPLETE_FIELDS else MAX_PICKLIST_VALUES
    left = {"fields": fields_left, "relationships": relationships_left, "child relationships": children_left}
    return ObjectDetails(
        object=ObjectFacts(
            api_name=item.name,
            label=item.label,
            description=object_description(item, graph),
            category=kind_of(item.name, graph),
        ),
        fields=[field_facts(field, most_values) for field in fields],
        relationships=relationships,
        child_relationships=child_relationships or None,
        fields_left_out=fields_left,
        relationships_left_out=relationships_left,
        child_relationships_left_out=children_left,
        next_cursor=make_cursor(part.end) if part.end is not None and any(left.values()) else None,
        notes=_cut_notes(left),
    )


def _cut_notes(left: Mapping[str, int | None]) -> list[str] | None:
    """Say what follows, and how to get it."""
    parts = [f"{count:,} {name}" for name, count in left.items() if count]
    if not parts:
        return None
    return [f"Left out: {', '.join(parts)}. Pass nextCursor as cursor for more, or filter with search or type."]


def object_description(item: ObjectSchema, graph: SchemaGraph) -> str:
    """Return a description of an object; describes have none."""
    kind = kind_of(item.name, graph)
    if kind == "standard":
        return f"Standard Salesforce {item.label} object"
    return f"{kind.replace('_', ' ').capitalize()} object {item.label}"


def field_facts(field: Field, most_values: int | None = None) -> FieldFacts:
    values = field.values
    shown = values[:most_values]
    return FieldFacts(
        api_name=field.name,
        label=field.label,
        description=_field_description(field),
        type=field.type,
        category="custom" if field.is_custom else "standard",
        nullable=field.nillable,
        unique=field.unique,
        help_text=field.help,
        reference_to=list(field.reference_to) or None,
        relationship_name=field.relationship,
        picklist_values=shown or None,
        picklist_values_left_out=len(values) - len(shown) or None,
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


def _child_relationships(item: ObjectSchema) -> Iterator[ChildRelationshipFacts]:
    """Yield what subqueries can name."""
    for child in sorted(item.children, key=lambda child: child.relationship or ""):
        if child.relationship:
            yield ChildRelationshipFacts(
                relationship_name=child.relationship, child_object=child.object, field=child.field
            )


def _relationship_order(fact: RelationshipFacts) -> tuple[bool, bool, str]:
    return fact.target_object in HUBS, fact.direction == "incoming", fact.target_object


def hints(item: ObjectSchema, graph: SchemaGraph) -> tuple[list[str], int]:
    """Return the names of directly related objects, the most specific first, and the number left out."""
    facts = sorted(_relationships(item, graph), key=_relationship_order)
    names = list(dict.fromkeys(fact.target_object for fact in facts))
    return names[:MAX_HINTS], len(names[MAX_HINTS:])


def related_objects(
    name: str, rings: Mapping[int, Sequence[str]], start: int, limit: int, max_depth: int
) -> RelatedObjects:
    """Return a page of the objects at each distance, with what it leaves out."""
    part = Part(start=start, limit=limit)
    pages = {str(distance): part.cut(names) for distance, names in rings.items()}
    left = {distance: count for distance, (_, count) in pages.items() if count}
    notes = []
    if left:
        counts = ", ".join(f"{count:,} at distance {distance}" for distance, count in left.items())
        notes.append(f"Left out: {counts}. Pass nextCursor as cursor for more, or raise limit.")
    hubs = sorted({item for distance, names in rings.items() if distance < max_depth for item in names} & HUBS)
    if hubs:
        notes.append(f"Not followed, because nearly every object is related to it: {', '.join(hubs)}.")
    return RelatedObjects(
        source_object=name,
        related_objects={distance: names for distance, (names, _) in pages.items() if names or not start},
        truncated=left or None,
        next_cursor=make_cursor(start + limit) if left else None,
        notes=notes or None,
    )


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
