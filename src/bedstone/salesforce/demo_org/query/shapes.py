"""The shape of an answer: how rows become records, and which columns a query selects."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from bedstone.salesforce.demo_org.schema import FieldType, ObjectType

Record = dict[str, Any]
Row = Sequence[Any]
ReadRow = Callable[[Row], Any]
ADDRESS_KEYS = ("City", "Country", "GeocodeAccuracy", "Latitude", "Longitude", "PostalCode", "State", "Street")


@dataclass
class Shape:
    """A record to build from a row: its type, the place of its id, and its values."""

    type: str
    id_at: int
    type_at: int | None = None  # for a polymorphic parent
    leaves: list[tuple[str, "ReadRow | Shape"]] = field(default_factory=list)

    def build(self, row: Row, base: str) -> Record | None:
        """Return the record of a row, or None without an id: a parent that does not exist."""
        record_id = row[self.id_at]
        if record_id is None:
            return None
        kind = row[self.type_at] if self.type_at is not None else self.type
        record: Record = {"attributes": {"type": kind, "url": f"{base}/sobjects/{kind}/{record_id}"}}
        for name, leaf in self.leaves:
            record[name] = leaf.build(row, base) if isinstance(leaf, Shape) else leaf(row)
        return record

    def parent(self, relationship: str) -> "Shape | None":
        """Return the shape of a parent that was added before."""
        return next((leaf for name, leaf in self.leaves if name == relationship and isinstance(leaf, Shape)), None)


@dataclass
class SelectedColumn:
    """A column of an answer: a value, a parent with columns of its own, or child records."""

    name: str
    type: FieldType | None = None
    inner: "list[SelectedColumn]" = field(default_factory=list)
    is_child: bool = False


@dataclass
class Selection:
    """The columns of an answer and the object they belong to."""

    object: ObjectType
    columns: list[SelectedColumn]
    is_aggregate: bool


def value_converter(item: FieldType) -> Callable[[Any], Any]:
    """Return the function that turns a stored value of a field into JSON."""
    if item.type == "boolean":
        return lambda value: bool(value) if value is not None else None
    if item.type == "int":
        return lambda value: int(value) if value is not None else None
    return lambda value: value


def value_reader(item: FieldType, place: int) -> ReadRow:
    """Return the function that reads a field at one place of a row."""
    return partial(_read_value, value_converter(item), place)


def compound_reader(item: FieldType, places: dict[str, int]) -> ReadRow:
    """Return the function that reads an address or a location from its parts."""
    return partial(_read_compound, item, places)


def _read_value(convert: Callable[[Any], Any], place: int, row: Row) -> Any:
    return convert(row[place])


def _read_compound(item: FieldType, places: dict[str, int], row: Row) -> Record | None:
    values = {part: row[place] for part, place in places.items()}
    if item.type == "location":
        latitude, longitude = values.values()
        return None if latitude is None or longitude is None else {"latitude": latitude, "longitude": longitude}
    if all(value is None for value in values.values()):
        return None
    prefix = item.name.removesuffix("Address")
    named = {part.removeprefix(prefix): value for part, value in values.items()}
    return {key[0].lower() + key[1:]: named.get(key) for key in ADDRESS_KEYS}
