"""The tasks of a SQLite store, requests to cancel them, and named values."""

import json
import sqlite3
from abc import abstractmethod
from collections.abc import Collection
from contextlib import AbstractContextManager

from bedstone.records import Task, TaskStatus
from bedstone.store.codec import TASK_COLUMNS, decode_task, encode_task
from bedstone.store.engine import ALL
from bedstone.store.sql_reading import SqlReading

WITH_STATUS = "status IN (SELECT value FROM json_each(?))"
NOT_DISMISSED = " AND json_extract(details, '$.dismissed') IS NULL"
TASK_VALUES = "(?, ?, ?, ?, ?, ?, ?, ?)"
PUT_TASK = f"""
INSERT INTO task({TASK_COLUMNS}) VALUES {TASK_VALUES} ON CONFLICT(id) DO UPDATE SET kind = excluded.kind,
    status = excluded.status, created = excluded.created, details = excluded.details, started = excluded.started,
    finished = excluded.finished, attempts = excluded.attempts
"""


class SqliteTasks(SqlReading):
    """What a store keeps beside its documents."""

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[sqlite3.Connection]:
        """Run statements completely or not at all."""

    def put_task(self, task: Task) -> None:
        with self._transaction() as db:
            put_task(db, task)

    def replace_task(self, task: Task, expected_status: TaskStatus) -> bool:
        with self._transaction() as db:
            changed = db.execute(
                f"UPDATE task SET ({TASK_COLUMNS}) = {TASK_VALUES} WHERE id = ? AND status = ?",
                (*encode_task(task), task.id, expected_status),
            )
            return changed.rowcount > 0

    def task(self, task_id: str) -> Task | None:
        rows = self._read(f"SELECT {TASK_COLUMNS} FROM task WHERE id = ?", task_id)
        return decode_task(rows[0]) if rows else None

    def count_queued_before(self, task: Task) -> int:
        query = "SELECT count(*) FROM task WHERE status = 'queued' AND (created, id) < (?, ?)"
        return int(self._read(query, task.created_at, task.id)[0][0])

    def tasks(self, statuses: Collection[TaskStatus], *, limit: int = 1000) -> list[Task]:
        query = f"SELECT {TASK_COLUMNS} FROM task WHERE {WITH_STATUS} ORDER BY created, id LIMIT ?"
        return [decode_task(row) for row in self._read(query, json.dumps(list(statuses)), limit)]

    def abandoned_tasks(self) -> list[Task]:
        return self.tasks({"running"}, limit=ALL)  # the owner's lock is free only when its process has ended

    def finished_tasks(
        self, statuses: Collection[TaskStatus], *, dismissed: bool = True, offset: int = 0, limit: int = 1000
    ) -> list[Task]:
        # The plus keeps SQLite from sorting all tasks with a status instead of walking those that finished.
        chosen = f"+{WITH_STATUS}{'' if dismissed else NOT_DISMISSED} AND finished IS NOT NULL"
        query = f"SELECT {TASK_COLUMNS} FROM task WHERE {chosen} ORDER BY finished DESC, id DESC LIMIT ? OFFSET ?"
        return [decode_task(row) for row in self._read(query, json.dumps(list(statuses)), limit, offset)]

    def count_tasks(self, statuses: Collection[TaskStatus], *, dismissed: bool = True) -> int:
        chosen = f"{WITH_STATUS}{'' if dismissed else NOT_DISMISSED}"
        rows = self._read(f"SELECT count(*) FROM task WHERE {chosen}", json.dumps(list(statuses)))
        return int(rows[0][0])

    def prune_tasks(self, before: float, keep: int) -> None:
        with self._transaction() as db:
            db.execute(
                "DELETE FROM task WHERE finished < ? AND id NOT IN "
                "(SELECT id FROM task WHERE finished IS NOT NULL ORDER BY finished DESC LIMIT ?)",
                (before, keep),
            )

    def request_cancel(self, task_id: str) -> None:
        with self._transaction() as db:
            db.execute("INSERT OR IGNORE INTO cancel_request(task) VALUES (?)", (task_id,))

    def delete_cancel_request(self, task_id: str) -> None:
        if task_id in self.cancel_requests():
            with self._transaction() as db:
                db.execute("DELETE FROM cancel_request WHERE task = ?", (task_id,))

    def get_value(self, name: str) -> str | None:
        rows = self._read("SELECT value FROM setting WHERE name = ?", name)
        return str(rows[0][0]) if rows else None

    def list_values(self, prefix: str) -> dict[str, str]:
        query = "SELECT substr(name, ?), value FROM setting WHERE substr(name, 1, ?) = ? ORDER BY name"
        return dict(self._read(query, len(prefix) + 1, len(prefix), prefix))

    def set_value(self, name: str, value: str) -> None:
        with self._transaction() as db:
            db.execute(
                "INSERT INTO setting(name, value) VALUES (?, ?) ON CONFLICT(name) DO UPDATE SET value = excluded.value",
                (name, value),
            )

    def delete_value(self, name: str) -> None:
        with self._transaction() as db:
            db.execute("DELETE FROM setting WHERE name = ?", (name,))


def put_task(db: sqlite3.Connection, task: Task) -> None:
    """Add a task, or replace the one with its id, as a part of a transaction."""
    db.execute(PUT_TASK, encode_task(task))
