"""What differs between two schemas, and whether it breaks queries and records."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from bedstone.salesforce.graph.model import Field, ObjectSchema, SchemaGraph

MAX_VALUES = 5  # in the description of a change


@dataclass(frozen=True)
class SchemaDifference:
    """An object or a field that one schema has more, less or otherwise; `what` says how a field differs."""

    object: str
    change: Literal["added", "removed", "changed"]
    severity: Literal["breaking", "safe"]
    field: str | None = None
    what: str | None = None


def compare_schemas(before: SchemaGraph, after: SchemaGraph, names: Iterable[str]) -> list[SchemaDifference]:
    """Compare the objects with these names, in lower case, of two schemas."""
    pairs = ((before.objects.get(name), after.objects.get(name)) for name in names)
    return [difference for pair in pairs for difference in compare_objects(*pair)]


def compare_objects(before: ObjectSchema | None, after: ObjectSchema | None) -> Iterator[SchemaDifference]:
    """Yield what differs between two versions of an object; None is a missing object."""
    if before is not None and after is not None:
        for name in sorted({*before.by_name, *after.by_name}):
            yield from _compare_fields(before.name, before.by_name.get(name), after.by_name.get(name))
    elif after is not None:
        yield SchemaDifference(after.name, "added", "safe")
    elif before is not None:
        yield SchemaDifference(before.name, "removed", "breaking")


def _compare_fields(owner: str, before: Field | None, after: Field | None) -> Iterator[SchemaDifference]:
    if before is not None and after is not None:
        for what, is_breaking in _field_changes(before, after):
            yield SchemaDifference(owner, "changed", "breaking" if is_breaking else "safe", after.name, what)
    elif after is not None:
        is_required = not after.nillable and not after.is_defaulted and after.createable
        yield SchemaDifference(owner, "added", "breaking" if is_required else "safe", after.name)
    elif before is not None:
        yield SchemaDifference(owner, "removed", "breaking", before.name)


def _field_changes(before: Field, after: Field) -> Iterator[tuple[str, bool]]:
    """Yield each change of a field, and whether it is breaking."""
    if before.type != after.type:
        yield f"type {before.type} to {after.type}", True
    if before.length != after.length:
        yield f"length {before.length} to {after.length}", after.length < before.length
    if before.nillable != after.nillable:
        yield "optional" if after.nillable else "required", not after.nillable
    if set(before.reference_to) != set(after.reference_to):
        yield f"points to {', '.join(after.reference_to)}", not set(before.reference_to) <= set(after.reference_to)
    removed = [value for value in before.values if value not in after.values]
    added = [value for value in after.values if value not in before.values]
    if removed:
        yield f"values removed: {', '.join(removed[:MAX_VALUES])}", True
    if added:
        yield f"values added: {', '.join(added[:MAX_VALUES])}", False
