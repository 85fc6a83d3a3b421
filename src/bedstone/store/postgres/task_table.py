"""Tasks in PostgreSQL: claimed by one process at a time, and given up when its connection ends."""

from collections.abc import Collection
from typing import Any

from psycopg import Cursor

from bedstone.records import Task, TaskStatus
from bedstone.store.codec import TASK_COLUMNS, decode_task, encode_task
from bedstone.store.engine import ALL
from bedstone.store.postgres.connections import Database, Unchanged
from bedstone.store.postgres.locks import IS_ALIVE, LockSession, PostgresLock
from bedstone.store.sql_reading import SqlReading

VALUES = "(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
IS_FREE = f"(known.status <> 'running' OR known.holder = %s OR NOT {IS_ALIVE.format(holder='known.holder')})"
PUT = f"""
INSERT INTO task AS known({TASK_COLUMNS}, dismissed, holder) VALUES {VALUES}
ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, status = excluded.status, created = excluded.created,
    details = excluded.details, started = excluded.started, finished = excluded.finished,
    attempts = excluded.attempts, dismissed = excluded.dismissed, holder = excluded.holder
WHERE {IS_FREE}
"""
# A process that claims a task passes over one that another process is claiming at this moment.
REPLACE = f"""
UPDATE task AS known SET ({TASK_COLUMNS}, dismissed, holder) = ROW{VALUES}
WHERE id = (SELECT id FROM task WHERE id = %s AND status = %s FOR UPDATE {{wait}}) AND {IS_FREE}
"""


class TaskTable(SqlReading):
    """The tasks of a store, requests to cancel them, and locks."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._session = LockSession(database.connect, database.address.schema)

    def lock(self, name: str) -> PostgresLock:
        return PostgresLock(self._session, name)

    def put_task(self, task: Task) -> None:
        """Add a task, or replace the one with its id, unless another process runs it."""

        def put(cursor: Cursor[Any]) -> None:
            if not self._put_task(cursor, task):
                raise Unchanged

        self._database.write(put)

    def _put_task(self, cursor: Cursor[Any], task: Task) -> bool:
        """Add a task as a part of a transaction; return False if another process runs it."""
        return cursor.execute(PUT.encode(), [*self._row(task), self._session.number]).rowcount > 0

    def replace_task(self, task: Task, expected_status: TaskStatus) -> bool:
        is_claim = expected_status == "queued" and task.status == "running"
        query = REPLACE.format(wait="SKIP LOCKED" if is_claim else "")

        def replace(cursor: Cursor[Any]) -> bool:
            values = [*self._row(task), task.id, expected_status, self._session.number]
            if cursor.execute(query.encode(), values).rowcount == 0:
                raise Unchanged
            return True

        return bool(self._database.write(replace))

    def task(self, task_id: str) -> Task | None:
        rows = self._read(f"SELECT {TASK_COLUMNS} FROM task WHERE id = %s", task_id)
        return decode_task(rows[0]) if rows else None

    def count_queued_before(self, task: Task) -> int:
        query = "SELECT count(*) FROM task WHERE status = 'queued' AND (created, id) < (%s::float8, %s)"
        return int(self._read(query, task.created_at, task.id)[0][0])

    def tasks(self, statuses: Collection[TaskStatus], *, limit: int = 1000) -> list[Task]:
        query = f"SELECT {TASK_COLUMNS} FROM task WHERE status = ANY(%s::text[]) ORDER BY created, id LIMIT %s"
        return [decode_task(row) for row in self._read(query, list(statuses), limit)]

    def abandoned_tasks(self) -> list[Task]:
        alive = IS_ALIVE.format(holder="task.holder")
        query = (
            f"SELECT {TASK_COLUMNS} FROM task WHERE status = 'running' AND NOT {alive} ORDER BY created, id LIMIT %s"
        )
        return [decode_task(row) for row in self._read(query, ALL)]

    def finished_tasks(
        self, statuses: Collection[TaskStatus], *, dismissed: bool = True, offset: int = 0, limit: int = 1000
    ) -> list[Task]:
        query = (
            f"SELECT {TASK_COLUMNS} FROM task WHERE status = ANY(%s::text[]) {_hidden(dismissed)} "
            "AND finished IS NOT NULL ORDER BY finished DESC, id DESC LIMIT %s OFFSET %s"
        )
        return [decode_task(row) for row in self._read(query, list(statuses), limit, offset)]

    def count_tasks(self, statuses: Collection[TaskStatus], *, dismissed: bool = True) -> int:
        query = f"SELECT count(*) FROM task WHERE status = ANY(%s::text[]) {_hidden(dismissed)}"
        return int(self._read(query, list(statuses))[0][0])

    def prune_tasks(self, before: float, keep: int) -> None:
        def prune(cursor: Cursor[Any]) -> None:
            cursor.execute(
                "DELETE FROM task WHERE finished < %s AND id NOT IN "
                "(SELECT id FROM task WHERE finished IS NOT NULL ORDER BY finished DESC LIMIT %s)",
                [before, keep],
            )
            if cursor.rowcount == 0:
                raise Unchanged

        self._database.write(prune)

    def request_cancel(self, task_id: str) -> None:
        self._write("INSERT INTO cancel_request(task) VALUES (%s) ON CONFLICT DO NOTHING", task_id)

    def delete_cancel_request(self, task_id: str) -> None:
        if task_id in self.cancel_requests():
            self._write("DELETE FROM cancel_request WHERE task = %s", task_id)

    def _read(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._database.read(query, *values)

    def _write(self, query: str, *values: Any) -> None:
        def write(cursor: Cursor[Any]) -> None:
            cursor.execute(query.encode(), values)

        self._database.write(write)

    def _row(self, task: Task) -> list[Any]:
        holder = self._session.take_number() if task.status == "running" else None
        return [*encode_task(task), task.is_dismissed, holder]


def _hidden(dismissed: bool) -> str:
    return "" if dismissed else "AND NOT dismissed"
