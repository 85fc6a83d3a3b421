"""Reading the rows of a store in the form that both ends of a move understand."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bedstone.errors import Unavailable
from bedstone.store.engine import StoreUnavailable
from bedstone.store.moving.ends import VALUES, Key, MoveState, Row, Table
from bedstone.store.opening import UNFINISHED_MOVE, incomplete_message

OWNER = "owner"  # the lock that a server holds while it works on a store
REST = f"name <> '{UNFINISHED_MOVE}'"  # the state of a move is not a part of the base


@dataclass(frozen=True)
class Dialect:
    """How the SQL of an engine differs: the mark of a parameter, a list of keys, and names of columns."""

    mark: str
    among: str
    names: Mapping[str, str] = field(default_factory=dict)

    def columns(self, table: Table) -> list[str]:
        """Return the columns of a table, as this engine calls them."""
        return [f'"{self.names.get(name, name)}"' for name in table.columns]

    def insert(self, table: Table) -> str:
        """Return the statement that adds a row."""
        columns = self.columns(table)
        return f"INSERT INTO {table.name}({', '.join(columns)}) VALUES ({', '.join([self.mark] * len(columns))})"

    def page(self, table: Table, *, is_first: bool) -> str:
        """Return the query for some rows, in the order of the keys."""
        columns = self.columns(table)
        conditions = [*([] if is_first else [f"{columns[0]} > {self.mark}"]), *_rest(table)]
        where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        return f"SELECT {', '.join(columns)} FROM {table.name} {where} ORDER BY {columns[0]} LIMIT {self.mark}"

    def rows(self, table: Table) -> str:
        """Return the query for rows by key."""
        columns = self.columns(table)
        conditions = [f"{columns[0]} {self.among.format(self.mark)}", *_rest(table)]
        return f"SELECT {', '.join(columns)} FROM {table.name} WHERE {' AND '.join(conditions)}"

    def count(self, table: Table) -> str:
        """Return the query for the number of rows."""
        return f"SELECT count(*) FROM {table.name} WHERE {' AND '.join(_rest(table)) or '1 = 1'}"


class RowReader:
    """What reading has in common for all engines."""

    dialect: Dialect
    place: str

    def count(self, table: Table) -> int:
        return int(self._fetch(self.dialect.count(table))[0][0])

    def rows_after(self, table: Table, after: Key | None, limit: int) -> list[Row]:
        start = [] if after is None else [after]
        return self._fetch(self.dialect.page(table, is_first=after is None), *start, limit)

    def rows_with(self, table: Table, keys: Sequence[Key]) -> Mapping[Key, Row]:
        return {row[0]: row for row in self._fetch(self.dialect.rows(table), self._key_list(keys))}

    def value(self, name: str) -> str | None:
        rows = self._fetch(f"SELECT value FROM {VALUES.name} WHERE name = {self.dialect.mark}", name)
        return str(rows[0][0]) if rows else None

    def state(self) -> MoveState | None:
        value = self.value(UNFINISHED_MOVE)
        return MoveState.decode(value) if value is not None else None

    def check_complete(self) -> None:
        """Raise `StoreUnavailable` if this is the target of a move that has not ended."""
        if self.state() is not None:
            raise StoreUnavailable(incomplete_message(self.place))

    def _fetch(self, query: str, *values: Any) -> list[Row]:
        raise NotImplementedError

    @staticmethod
    def _key_list(keys: Sequence[Key]) -> object:
        raise NotImplementedError


def busy_error(place: str) -> Unavailable:
    """Return the error for a store that another process works on."""
    return Unavailable(
        f"A server, a command or another move uses the store {place}. Stop it, and run the command again."
    )


def _rest(table: Table) -> list[str]:
    return [REST] if table is VALUES else []
