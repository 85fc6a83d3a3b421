"""The demo org: its schema, its records, and the rules for changing them."""

import math
import os
import re
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from bedstone.permissions import make_private_folder
from bedstone.salesforce.demo_org.content.objects import demo_schema
from bedstone.salesforce.demo_org.content.records import create_records
from bedstone.salesforce.demo_org.database import Database
from bedstone.salesforce.demo_org.dates import Calendar, format_moment, parse_moment
from bedstone.salesforce.demo_org.errors import ApiError, not_found
from bedstone.salesforce.demo_org.query import QueryEngine
from bedstone.salesforce.demo_org.schema import ID_TYPES, NUMBER_TYPES, TEXT_TYPES, FieldType, ObjectType, Schema
from bedstone.salesforce.demo_org.search import SearchEngine
from bedstone.salesforce.ids import long_id

CONTENT_VERSION = 3  # change it with the schema or the records
DATE_LENGTH = len("2026-01-01")
MAX_NUMBER = 1e18
SYSTEM_FIELDS = frozenset(
    {"id", "isdeleted", "createddate", "createdbyid", "lastmodifieddate", "lastmodifiedbyid", "systemmodstamp"}
)
TIME = re.compile(r"\d\d:\d\d:\d\d(\.\d+)?Z?")


def open_org(folder: Path) -> "DemoOrg":
    """Open the org in a folder; its file is created once, and appears when it is complete."""
    make_private_folder(folder)
    file = folder / f"demo-org-{CONTENT_VERSION}.sqlite"
    if not file.exists():
        draft = folder / f"{file.name}.{os.getpid()}.tmp"
        DemoOrg(draft).close()
        draft.replace(file)
    return DemoOrg(file)


class DemoOrg:
    """Reads and changes records as an org does, on behalf of `user`."""

    def __init__(
        self,
        file: Path | None = None,
        *,
        calendar: Calendar | None = None,
        batch: int = 2000,
        schema: Schema | None = None,
    ) -> None:
        self.schema = schema or demo_schema()
        self.calendar = calendar or Calendar()
        self.database = Database(self.schema, self.calendar, file)
        if self.database.is_empty:
            self._create()
        self.queries = QueryEngine(self.database, batch=batch)
        self.searches = SearchEngine(self.database, self.queries)
        self.organization_id = self.database.rows('SELECT "Id" FROM "Organization"')[0][0]
        self.user = self.database.user = self.database.rows('SELECT "Id" FROM "User" ORDER BY "Id"')[0][0]

    def close(self) -> None:
        """Close the file."""
        self.database.close()

    def use_calendar(self, calendar: Calendar) -> None:
        """Set the clock."""
        self.calendar = self.database.calendar = calendar

    def object(self, name: str) -> ObjectType:
        """Return an object by its name."""
        found = self.schema.get(name)
        if found is None or found.name == "Name":
            raise not_found()
        return found

    # Records

    def read(self, name: str, record_id: str, base: str, fields: list[str] | None = None) -> dict[str, Any]:
        """Return a record with all its fields, or some."""
        item = self.object(name)
        record = self._existing(item, record_id)
        wanted = [self._field(item, field) for field in fields] if fields else list(item.fields)
        answer: dict[str, Any] = {
            "attributes": {"type": item.name, "url": f"{base}/sobjects/{item.name}/{record['Id']}"}
        }
        columns = ", ".join(field.name for field in wanted)
        found = self.queries.run(f"SELECT {columns} FROM {item.name} WHERE Id = '{record['Id']}'", base, all_rows=True)
        return answer | {key: value for key, value in found["records"][0].items() if key != "attributes"}

    def create(self, name: str, values: Mapping[str, Any]) -> str:
        """Create a record; return its id."""
        item = self._changeable(name)
        with self.database.transaction():
            record = self._validate(item, values, is_new=True)
            now = format_moment(self.calendar.now())
            stamps = dict.fromkeys(("CreatedDate", "LastModifiedDate", "SystemModstamp"), now)
            stamps |= dict.fromkeys(("CreatedById", "LastModifiedById"), self.user)
            if "ownerid" in item.by_name and not record.get("OwnerId"):
                stamps["OwnerId"] = self.user
            record_id = self.database.next_id(item)
            record = self._fill_in(item, record | {key: value for key, value in stamps.items() if item.field(key)})
            self._check_required(item, record, [field.name for field in item.fields])
            self._check_unique(item, record, None)
            self.database.insert(item, {"Id": record_id, **record})
        return record_id

    def update(self, name: str, record_id: str, values: Mapping[str, Any]) -> None:
        """Update a record."""
        item = self._changeable(name)
        with self.database.transaction():
            before = self._existing(item, record_id)
            record = self._validate(item, values, is_new=False)
            self._check_required(item, record, list(record))
            now = format_moment(self.calendar.now())
            stamps = {"LastModifiedDate": now, "SystemModstamp": now, "LastModifiedById": self.user}
            stamped = {key: value for key, value in stamps.items() if item.field(key)}
            changed = self._fill_in(item, {**before, **record, **stamped})
            self._check_unique(item, record, str(before["Id"]))
            different = {key: value for key, value in changed.items() if before.get(key) != value and key != "Id"}
            if different:
                self.database.update(item, str(before["Id"]), different)

    @staticmethod
    def _check_required(item: ObjectType, record: Mapping[str, Any], names: Sequence[str]) -> None:
        wanted = [item.by_name[name.lower()] for name in names]
        missing = [
            field.name
            for field in wanted
            if not field.nillable
            and field.is_stored
            and not field.read_only
            and field.type != "boolean"
            and record.get(field.name) is None
            and field.default is None
            and not (field.type == "picklist" and field.values and not field.is_custom)
        ]
        if missing:
            raise ApiError(
                "REQUIRED_FIELD_MISSING", f"Required fields are missing: [{', '.join(missing)}]", fields=missing
            )

    def delete(self, name: str, record_id: str) -> None:
        """Mark a record and its detail records as deleted."""
        item = self._changeable(name)
        with self.database.transaction():
            self._delete(item, str(self._existing(item, record_id)["Id"]))

    def upsert(self, name: str, field: str, key: str, values: Mapping[str, Any]) -> tuple[str, bool]:
        """Update or create the record with an external id; return its id and whether it is new."""
        item = self._changeable(name)
        found = item.field(field)
        if found is None or not (found.external_id or found.name == "Id"):
            message = f"Provided external ID field does not exist or is not accessible: {field}"
            raise ApiError("NOT_FOUND", message, status=404)
        with self.database.transaction():
            rows = self.database.rows(
                f'SELECT "Id" FROM "{item.name}" WHERE "{found.name}" = ? COLLATE NOCASE AND "IsDeleted" = 0', (key,)
            )
            if rows:
                self.update(name, rows[0][0], values)
                return str(rows[0][0]), False
            return self.create(name, {**values, found.name: key}), True

    def _delete(self, item: ObjectType, record_id: str) -> None:
        self.database.update(item, record_id, {"IsDeleted": 1, "SystemModstamp": format_moment(self.calendar.now())})
        for child in self.schema.children(item.name):
            if child.cascade:
                other = self.schema.get(child.child)
                assert other
                rows = self.database.rows(
                    f'SELECT "Id" FROM "{other.name}" WHERE "{child.field}" = ? AND "IsDeleted" = 0', (record_id,)
                )
                for (child_id,) in rows:
                    self._delete(other, child_id)

    def _existing(self, item: ObjectType, record_id: str) -> dict[str, Any]:
        full = long_id(record_id)
        if full is None:
            raise ApiError(
                "NOT_FOUND", f"Provided external ID field does not exist or is not accessible: {record_id}", status=404
            )
        record = self.database.record(item, full)
        if record is None:
            raise not_found()
        if record.get("IsDeleted"):
            raise ApiError("ENTITY_IS_DELETED", "entity is deleted", status=404)
        return record

    def _changeable(self, name: str) -> ObjectType:
        item = self.object(name)
        if not item.can_change:
            raise ApiError("CANNOT_INSERT_UPDATE_ACTIVATE_ENTITY", f"entity type cannot be changed: {item.name}")
        return item

    # Values

    def _validate(self, item: ObjectType, values: Mapping[str, Any], *, is_new: bool) -> dict[str, Any]:
        record: dict[str, Any] = {}
        for name, value in values.items():
            if name == "attributes":
                continue
            field = item.field(name)
            if field is None:
                raise ApiError("INVALID_FIELD", f"No such column '{name}' on sobject of type {item.name}", fields=None)
            if field.name.lower() in SYSTEM_FIELDS or field.read_only or not field.is_stored:
                raise ApiError(
                    "INVALID_FIELD_FOR_INSERT_UPDATE",
                    f"Unable to create/update fields: {field.name}. Please check the security settings of this field "
                    "and verify that it is read/write for your profile or permission set.",
                    fields=[field.name],
                )
            record[field.name] = self._parse_value(field, value)
        if is_new:
            for field in item.fields:
                if field.default is not None:
                    record.setdefault(field.name, field.default)
        return record

    def _parse_value(self, field: FieldType, value: Any) -> Any:
        """Return a JSON value as it is stored."""
        if value is None or value == "":
            return 0 if field.type == "boolean" else None
        try:
            return self._parse_typed(field, value)
        except (ValueError, TypeError):
            given = value if isinstance(value, str | int | float | bool) else type(value).__name__
            raise ApiError(
                "JSON_PARSER_ERROR",
                f"Cannot deserialize instance of {field.type} from value {given} at field {field.name}",
            ) from None

    def _parse_typed(self, field: FieldType, value: Any) -> Any:  # noqa: PLR0911 - one per type
        kind = field.type
        if kind in ID_TYPES:
            return self._check_reference(field, value)
        if kind == "boolean":
            if not isinstance(value, bool):
                raise ValueError(value)
            return int(value)
        if kind in NUMBER_TYPES:
            if isinstance(value, bool):
                raise ValueError(value)
            if (
                not isinstance(value, int | float | str)
                or not math.isfinite(float(value))
                or abs(float(value)) > MAX_NUMBER
            ):
                raise ValueError(value)
            return int(value) if kind == "int" else float(value)
        if kind == "date":
            return (
                date.fromisoformat(value) if len(str(value)) <= DATE_LENGTH else parse_moment(value).date()
            ).isoformat()
        if kind == "datetime":
            return format_moment(parse_moment(str(value)))
        if kind == "time":
            if not TIME.fullmatch(str(value)):
                raise ValueError(value)
            return f"{str(value)[:8]}.000Z"
        if not isinstance(value, str):
            raise ValueError(value)  # noqa: TRY004 - the caller reports it as an org does
        return self._check_text(field, value)

    def _check_text(self, field: FieldType, value: str) -> str:
        if field.length and len(value) > field.length and field.type in TEXT_TYPES:
            raise ApiError(
                "STRING_TOO_LONG",
                f"{field.label}: data value too large: {value[:80]} (max length={field.length})",
                fields=[field.name],
            )
        if field.restricted and value not in field.values:
            raise ApiError(
                "INVALID_OR_NULL_FOR_RESTRICTED_PICKLIST",
                f"{field.label}: bad value for restricted picklist field: {value}",
                fields=[field.name],
            )
        return value

    def _check_reference(self, field: FieldType, value: Any) -> str:
        full = long_id(str(value))
        if full is None:
            raise ApiError("MALFORMED_ID", f"{field.label}: id value of incorrect type: {value}", fields=[field.name])
        target = self.schema.of_id(full)
        if field.reference_to and (target is None or target.name not in field.reference_to):
            raise ApiError(
                "FIELD_INTEGRITY_EXCEPTION", f"{field.label}: id value of incorrect type: {value}", fields=[field.name]
            )
        record = self.database.record(target, full) if target is not None else None
        if target is not None and (record is None or record.get("IsDeleted")):
            raise ApiError(
                "INSUFFICIENT_ACCESS_ON_CROSS_REFERENCE_ENTITY",
                f"insufficient access rights on cross-reference id: {value}",
                fields=[field.name],
            )
        return full

    def _check_unique(self, item: ObjectType, record: Mapping[str, Any], own_id: str | None) -> None:
        for field in item.fields:
            value = record.get(field.name)
            if not field.unique or value is None:
                continue
            rows = self.database.rows(
                f'SELECT "Id" FROM "{item.name}" WHERE "{field.name}" = ? COLLATE NOCASE AND "IsDeleted" = 0', (value,)
            )
            others = [row[0] for row in rows if row[0] != own_id]
            if others:
                raise ApiError(
                    "DUPLICATE_VALUE",
                    f"duplicate value found: {field.name} duplicates value on record with id: {others[0]}",
                    fields=[field.name],
                )

    def _fill_in(self, item: ObjectType, record: dict[str, Any]) -> dict[str, Any]:
        """Add the values an org derives: full names, auto-numbers."""
        if item.name in ("Contact", "Lead", "User"):
            record["Name"] = (
                " ".join(part for part in (record.get("FirstName"), record.get("LastName")) if part) or None
            )
        for field in item.fields:
            if record.get(field.name) is not None or not field.name_field:
                continue
            if field.auto_number or (field.read_only and field.name.endswith("Number")):
                number = self._last_number(item.name)
                record[field.name] = (field.auto_number or "{:08}").format(
                    number if field.auto_number else number + 999
                )
        return record

    @staticmethod
    def _field(item: ObjectType, name: str) -> FieldType:
        found = item.field(name)
        if found is None:
            raise ApiError("INVALID_FIELD", f"No such column '{name}' on entity '{item.name}'")
        return found

    # Content

    def _create(self) -> None:
        self.database.create()
        with self.database.transaction():
            create_records(self.schema, self._insert)

    def _insert(self, name: str, values: Mapping[str, Any]) -> str:
        """Insert a record of the content, whose fields must exist in the schema."""
        item = self.schema.get(name)
        assert item is not None
        record_id = self.database.next_id(item)
        record = {key: value for key, value in values.items() if value is not None}
        for key in record:
            field = item.field(key)
            assert field is not None, f"{name}.{key}"
            assert field.is_stored, f"{name}.{key}"
        for field in item.fields:
            if field.auto_number:
                record[field.name] = field.auto_number.format(self._last_number(name))
        self.database.insert(item, {"Id": record_id, **record})
        return str(record.get("Id", record_id))

    def _last_number(self, name: str) -> int:
        ((last,),) = self.database.rows("SELECT last FROM _sequence WHERE object = ?", (name,))
        return int(last)
