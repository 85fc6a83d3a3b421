"""Makes linked records from a seed: every run creates the same."""

import random
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from bedstone.salesforce.demo_org.dates import format_moment
from bedstone.salesforce.demo_org.schema import ObjectType, Schema

SEED = 20_260_101
NOW = datetime(2026, 6, 15, 9, 0, tzinfo=UTC)
Insert = Callable[[str, Mapping[str, Any]], str]


class Recipes:
    """Creates records; a record must exist before others reference it."""

    def __init__(self, schema: Schema, insert: Insert) -> None:
        self._schema = schema
        self._insert = insert
        self.chance = random.Random(SEED)  # noqa: S311 - invented records
        self.ids: dict[str, list[str]] = {}
        self.users: list[str] = []

    def add(self, name: str, *, days: float | None = None, **values: Any) -> str:
        """Add a record that was created `days` ago."""
        item = self._schema.get(name)
        assert item is not None, name
        record = self._with_defaults(item, values, days)
        record_id = self._insert(name, {key: value for key, value in record.items() if item.field(key)})
        self.ids.setdefault(name, []).append(record_id)
        return record_id

    def pick(self, name: str) -> str:
        """Return a random record of an object."""
        return self.chance.choice(self.ids[name])

    def _with_defaults(self, item: ObjectType, values: dict[str, Any], days: float | None) -> dict[str, Any]:
        created = NOW - timedelta(days=self.chance.uniform(1, 900) if days is None else days)
        changed = min(created + timedelta(days=self.chance.uniform(0, 40)), NOW)
        user = self.chance.choice(self.users) if self.users else None
        stamps = {
            "CreatedDate": format_moment(created),
            "LastModifiedDate": format_moment(changed),
            "SystemModstamp": format_moment(changed),
            "CreatedById": user,
            "LastModifiedById": user,
            "OwnerId": user,
        }
        defaults = {
            field.name: field.values[0]
            for field in item.fields
            if field.type == "picklist" and field.values and not field.nillable
        }
        return defaults | stamps | values


def day(moment: datetime | float) -> str:
    """Return the date of a moment, or of a number of days ago."""
    return (NOW - timedelta(days=moment) if isinstance(moment, int | float) else moment).date().isoformat()
