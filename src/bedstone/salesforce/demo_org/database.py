"""The records of the demo org in one SQLite file: a table per object, functions for SOQL, a full-text index."""

import json
import math
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from bedstone.permissions import create_private_file
from bedstone.salesforce.demo_org.dates import Calendar, format_moment, parse_moment
from bedstone.salesforce.demo_org.schema import FieldType, ObjectType, Schema
from bedstone.salesforce.ids import make_id

EARTH_RADIUS_KM = 6371.0088
MILES_PER_KM = 0.621371192
SQL_TYPES = {"boolean": "INTEGER", "int": "INTEGER", "double": "REAL", "currency": "REAL", "percent": "REAL"}


class Database:
    """One connection: requests take turns, and each change is one transaction."""

    def __init__(self, schema: Schema, calendar: Calendar, file: Path | None = None) -> None:
        self.schema = schema
        self.calendar = calendar
        self.lock = threading.RLock()
        self._depth = 0
        self.user = ""  # the id of the user who sends the request
        if file is not None:
            create_private_file(file)
        self._db = sqlite3.connect(file or ":memory:", isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute("PRAGMA case_sensitive_like = OFF")
        self._add_functions()

    @property
    def is_empty(self) -> bool:
        """Whether the tables do not exist yet."""
        return not self.rows("SELECT 1 FROM sqlite_master WHERE name = '_sequence'")

    def create(self) -> None:
        """Create a table for every object, and the full-text index."""
        with self.transaction():
            self._db.execute("CREATE TABLE _sequence(object TEXT PRIMARY KEY, last INTEGER NOT NULL)")
            for item in self.schema.objects.values():
                if item.name in ("Name", "KnowledgeArticleVersion"):
                    continue
                columns = [_column_definition(field) for field in item.fields if field.is_stored]
                self._db.execute(f'CREATE TABLE "{item.name}"({", ".join(columns)}) WITHOUT ROWID')
                for field in item.fields:
                    if field.type == "reference" and field.is_stored:
                        self._db.execute(f'CREATE INDEX "{item.name}.{field.name}" ON "{item.name}"("{field.name}")')
            self._db.execute('CREATE VIEW "KnowledgeArticleVersion" AS SELECT * FROM "Knowledge__kav"')
            self._db.execute(
                "CREATE VIRTUAL TABLE _search USING fts5(object UNINDEXED, id UNINDEXED, name, email, phone, rest)"
            )
            self._db.execute("CREATE VIRTUAL TABLE _words USING fts5vocab(_search, row)")
            self._db.execute("CREATE TABLE _searched(id TEXT PRIMARY KEY, row INTEGER NOT NULL)")
            self._db.execute("CREATE TABLE _cursor(locator TEXT PRIMARY KEY, statement TEXT, ids TEXT, made REAL)")

    def close(self) -> None:
        """Close the file."""
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Keep all changes or none; inside another transaction, open a savepoint."""
        with self.lock:
            name = f"part_{self._depth}"
            begin, roll_back, commit = (
                (f"SAVEPOINT {name}", f"ROLLBACK TO {name}", f"RELEASE {name}")
                if self._depth
                else ("BEGIN IMMEDIATE", "ROLLBACK", "COMMIT")
            )
            self._db.execute(begin)
            self._depth += 1
            try:
                yield
            except BaseException:
                self._db.execute(roll_back)
                raise
            else:
                self._db.execute(commit)
            finally:
                self._depth -= 1

    def rows(self, sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a SELECT."""
        with self.lock:
            return self._db.execute(sql, params).fetchall()

    def next_id(self, item: ObjectType) -> str:
        """Return the id of a new record."""
        self._db.execute("INSERT INTO _sequence VALUES (?, 0) ON CONFLICT DO NOTHING", (item.name,))
        (number,) = self._db.execute(
            "UPDATE _sequence SET last = last + 1 WHERE object = ? RETURNING last", (item.name,)
        ).fetchone()
        return make_id(item.prefix or "000", number)

    def insert(self, item: ObjectType, record: Mapping[str, Any]) -> None:
        """Insert a record that was validated; the caller holds a transaction."""
        names = list(record)
        marks = ", ".join("?" for _ in names)
        columns = ", ".join(f'"{name}"' for name in names)
        self._db.execute(f'INSERT INTO "{item.name}"({columns}) VALUES ({marks})', [record[name] for name in names])
        self._index(item, str(record["Id"]))

    def update(self, item: ObjectType, record_id: str, values: Mapping[str, Any]) -> None:
        """Update a record; the caller holds a transaction."""
        sets = ", ".join(f'"{name}" = ?' for name in values)
        self._db.execute(f'UPDATE "{item.name}" SET {sets} WHERE "Id" = ?', [*values.values(), record_id])
        self._index(item, record_id)

    def record(self, item: ObjectType, record_id: str) -> dict[str, Any] | None:
        """Return a record by its id, even if it is deleted."""
        names = [field.name for field in item.fields if field.is_stored]
        columns = ", ".join(f'"{name}"' for name in names)
        found = self.rows(f'SELECT {columns} FROM "{item.name}" WHERE "Id" = ?', (record_id,))
        return dict(zip(names, found[0], strict=True)) if found else None

    def save_cursor(self, locator: str, statement: str, ids: str, made: float) -> None:
        """Save what a query found, for its further pages."""
        with self.transaction():
            self._db.execute("INSERT INTO _cursor VALUES (?, ?, ?, ?)", (locator, statement, ids, made))

    def ids_in_categories(self, group: str, names: Sequence[str]) -> set[str]:
        """Return the ids of the article versions in any of these data categories."""
        marks = ", ".join("?" for _ in names)
        sql = (
            'SELECT "ParentId" FROM "Knowledge__DataCategorySelection" '
            f'WHERE "DataCategoryGroupName" = ? AND "DataCategoryName" IN ({marks})'
        )
        return {row[0] for row in self.rows(sql, (group, *names))}

    def _index(self, item: ObjectType, record_id: str) -> None:
        """Add a record to the full-text index, or remove it if it is deleted."""
        known = self._db.execute("DELETE FROM _searched WHERE id = ? RETURNING row", (record_id,)).fetchone()
        if known:
            self._db.execute("DELETE FROM _search WHERE rowid = ?", known)
        if not item.searchable:
            return
        record = self.record(item, record_id)
        if record is None or record.get("IsDeleted"):
            return
        texts: dict[str, list[str]] = {"name": [], "email": [], "phone": [], "rest": []}
        for field in item.fields:
            value = record.get(field.name)
            if not isinstance(value, str) or field.type in ("id", "reference", "date", "datetime"):
                continue
            kind = "name" if field.name_field or field.name in ("FirstName", "LastName", "Subject", "Title") else "rest"
            texts[field.type if field.type in ("email", "phone") else kind].append(value)
        made = self._db.execute(
            "INSERT INTO _search VALUES (?, ?, ?, ?, ?, ?)",
            (item.name, record_id, *("\n".join(part) for part in texts.values())),
        )
        self._db.execute("INSERT INTO _searched VALUES (?, ?)", (record_id, made.lastrowid))

    def _add_functions(self) -> None:
        def add(name: str, count: int, function: Any) -> None:
            self._db.create_function(name, count, function, deterministic=True)

        add("folded", 1, lambda text: text.casefold() if isinstance(text, str) else text)
        add("sorted_as", 1, lambda text: text.upper() if isinstance(text, str) else text)
        add("includes", 2, _includes)
        self._db.create_aggregate("MIN_TEXT", 2, _MinText)  # type: ignore[arg-type]
        self._db.create_aggregate("MAX_TEXT", 2, _MaxText)  # type: ignore[arg-type]
        add("distance", 5, _distance)
        add("formatted", 2, _format)
        add("fiscal", 2, lambda day, part: self.calendar.fiscal(date.fromisoformat(day))[part] if day else None)
        add("local_time", 1, self._local_time)

    def _local_time(self, text: str | None) -> str | None:
        if text is None or len(text) <= len("2026-01-01"):
            return text
        local = parse_moment(text).astimezone(ZoneInfo(self.calendar.zone))
        return format_moment(local.replace(tzinfo=ZoneInfo("UTC")))


class _MinText:
    """MIN of texts: case does not count, picklist values have their own order."""

    choose = staticmethod(min)

    def __init__(self) -> None:
        self._best: tuple[int, str, str] | None = None
        self._order: dict[str, int] | None = None

    def step(self, text: str | None, values: str) -> None:
        if text is None:
            return
        if self._order is None:
            self._order = {value: place for place, value in enumerate(json.loads(values))}
        key = (self._order.get(text, len(self._order)), text.upper(), text)
        self._best = key if self._best is None else self.choose(self._best, key)

    def finalize(self) -> str | None:
        return self._best[2] if self._best else None


class _MaxText(_MinText):
    """MAX of texts."""

    choose = staticmethod(max)


def _column_definition(field: FieldType) -> str:
    constraint = " PRIMARY KEY" if field.name == "Id" else " NOT NULL DEFAULT 0" if field.type == "boolean" else ""
    return f'"{field.name}" {SQL_TYPES.get(field.type, "TEXT")}{constraint}'


def _includes(value: str | None, wanted: str) -> int:
    have = {part.casefold() for part in (value or "").split(";") if part}
    return int(all(part.strip().casefold() in have for part in wanted.split(";")))


def _distance(
    latitude: float | None, longitude: float | None, to_latitude: float, to_longitude: float, unit: str
) -> float | None:
    if latitude is None or longitude is None:
        return None
    first, second = math.radians(latitude), math.radians(to_latitude)
    step = math.radians(to_longitude - longitude)
    half = math.sin((second - first) / 2) ** 2 + math.cos(first) * math.cos(second) * math.sin(step / 2) ** 2
    kilometres = 2 * EARTH_RADIUS_KM * math.asin(min(1.0, math.sqrt(half)))
    return kilometres * MILES_PER_KM if unit == "mi" else kilometres


def _format(value: Any, kind: str) -> str | None:
    if value is None:
        return None
    match kind:
        case "date":
            day = date.fromisoformat(value)
            return f"{day.month}/{day.day}/{day.year}"
        case "datetime":
            moment = parse_moment(value)
            hour = moment.strftime("%I").lstrip("0")
            return f"{moment.month}/{moment.day}/{moment.year}, {hour}:{moment.strftime('%M %p')}"
        case "currency":
            return f"USD {value:,.2f}"
        case "double" | "int" | "percent":
            return f"{value:,.2f}".rstrip("0").rstrip(".")
    return str(value)
