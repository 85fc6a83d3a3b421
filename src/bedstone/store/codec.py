"""How records are written down: the JSON of documents and tasks, compressed texts, facets shared by many chunks."""

import json
import zlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from bedstone.records import Chunk, ChunkHead, Document, ProgressSnapshot, StoredChunk, Task, TaskError

# A task's outcome shares one JSON object with its payload.
OUTCOME_KEYS = frozenset({"progress", "share", "result", "error", "message", "dismissed"})


def encode_document(document: Document) -> tuple[str, str, str, str]:
    """Return a document's row: id, title, digest, attributes."""
    return document.id, document.title, document.digest, json.dumps(dict(document.attributes))


def decode_document(row: tuple[str, str, str, str]) -> Document:
    """Return the document of a row."""
    identity, title, digest, attributes = row
    return Document(identity, title, digest, json.loads(attributes))


def encode_task(task: Task) -> tuple[Any, ...]:
    """Return a task's row: id, kind, status, created, details, started, finished, attempts."""
    details = json.dumps(join_details(task), ensure_ascii=False)
    times = (task.started_at, task.finished_at)
    return (task.id, task.kind, task.status, task.created_at, details, *times, task.attempts)


def decode_task(row: Any) -> Task:
    """Return the task of a row."""
    identity, kind, status, created, details, started, finished, attempts = row
    shared = split_details(json.loads(details))
    return Task(identity, kind, status, created, started_at=started, finished_at=finished, attempts=attempts, **shared)


def join_details(task: Task) -> dict[str, Any]:
    """Return a task's payload and outcome as one object."""
    assert not OUTCOME_KEYS & task.payload.keys(), "the payload uses a key of the outcome"
    details = dict(task.payload)
    if task.progress is not None:
        done = task.progress
        details["progress"] = {"step": done.step, "done": done.done, "total": done.total}
        if done.ends_at is not None:
            details["progress"]["ends_at"] = done.ends_at
        if task.status == "cancelled":
            details["share"] = done.share
    if task.error is not None:
        details |= {"error": task.error.code, "message": task.error.message}
    if task.result is not None:
        details["result"] = dict(task.result)
    if task.is_dismissed:
        details["dismissed"] = True
    return details


def split_details(details: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a task that share one object."""
    error = details.get("error")
    return {
        "payload": {key: value for key, value in details.items() if key not in OUTCOME_KEYS},
        "progress": _decode_progress(details.get("progress"), details.get("share")),
        "error": TaskError(str(error), str(details.get("message"))) if error is not None else None,
        "result": details.get("result"),
        "is_dismissed": bool(details.get("dismissed")),
    }


def _decode_progress(saved: Mapping[str, Any] | None, share: float | None) -> ProgressSnapshot | None:
    """Return the progress of a task; the share of a cancelled one is newer than the progress saved before."""
    if saved is None:
        return None if share is None else ProgressSnapshot("", share, 1.0)
    known = ProgressSnapshot(
        saved.get("step", ""), saved.get("done", 0.0), saved.get("total", 1.0), saved.get("ends_at")
    )
    if share is None or share == known.share:
        return known
    return ProgressSnapshot(known.step, share * known.total, known.total)


def encode_chunk(chunk: Chunk) -> tuple[Any, ...]:
    """Return the columns of a chunk: id, level, breadcrumb, heading, page, text and plain text."""
    breadcrumb = json.dumps(chunk.breadcrumb, ensure_ascii=False)
    texts = encode_text(chunk.text), encode_text(chunk.plain)
    return chunk.id, chunk.level, breadcrumb, chunk.heading, chunk.page, *texts


def encode_text(text: str) -> bytes:
    """Compress a text."""
    return zlib.compress(text.encode(), 1)


def decode_text(packed: bytes) -> str:
    """Restore a compressed text."""
    return zlib.decompress(packed).decode()


def encode_facets(facets: Mapping[str, str]) -> str:
    """Return facets as text; equal facets give equal texts."""
    return json.dumps(dict(facets), sort_keys=True, ensure_ascii=False)


def decode_chunk(row: Any) -> StoredChunk:
    """Return the chunk of a row: the columns of its head, then text and plain."""
    *head, text, plain = row
    return StoredChunk(decode_head(head), decode_text(text), decode_text(plain))


def decode_head(row: Any) -> ChunkHead:
    """Return the head of a row: rowid, document, position, id, heading, level, breadcrumb, facets, page."""
    rowid, document, position, identity, heading, level, breadcrumb, facets, page = row
    return ChunkHead(
        rowid, document, position, identity, heading, level, _breadcrumb(breadcrumb), decode_facets(facets), page
    )


@lru_cache(maxsize=4096)
def decode_facets(text: str) -> Mapping[str, str]:
    """Return facets; many chunks share them."""
    facets: Mapping[str, str] = json.loads(text)
    return facets


@lru_cache(maxsize=4096)
def _breadcrumb(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text))


def encode_numbers(rowids: Sequence[int]) -> str:
    """Return numbers for `json_each`, which cannot read the integers of numpy."""
    return json.dumps([int(rowid) for rowid in rowids])
