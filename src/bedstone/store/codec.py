"""How records are written down: the JSON of documents and tasks, compressed texts, facets shared by many chunks."""

import json
import zlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import Any

from bedstone.records import (
    Chunk,
    ChunkHead,
    Document,
    Place,
    ProgressSnapshot,
    StoredChunk,
    Task,
    TaskError,
    TaskRetry,
)
from bedstone.store.engine import StoreDamaged

# What is read and written by name: a newer version may add columns while this one goes on.
DOCUMENT_COLUMNS = "id, title, digest, metadata"
CHANGE_COLUMNS = "seq, stamp, kind, first, last, gone_first, gone_last"
TASK_COLUMNS = "id, kind, status, created, details, started, finished, attempts"
# A task's outcome shares one JSON object with its payload.
OUTCOME_KEYS = frozenset({"progress", "share", "result", "error", "message", "dismissed", "retry"})


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
    if task.retry is not None:
        details["retry"] = {"reason": task.retry.reason, "count": task.retry.count, "at": task.retry.at}
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
        "retry": TaskRetry(**details["retry"]) if "retry" in details else None,
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
    breadcrumb = encode_breadcrumb(chunk.breadcrumb, chunk.places, chunk.span)
    texts = encode_text(chunk.text), encode_text(chunk.plain)
    return chunk.id, chunk.level, breadcrumb, chunk.heading, chunk.page, *texts


def encode_breadcrumb(
    breadcrumb: Sequence[str], places: Sequence[Place] = (), span: tuple[int, int] | None = None
) -> str:
    """Return the headings of a chunk as text, with its places if there are several, and its span if it is known.

    A place is written as what differs from the one before: start, start in the original, page, how many headings it
    shares, and its further headings. Stores of earlier versions have headings alone.
    """
    if not places and span is None:
        return json.dumps(breadcrumb, ensure_ascii=False)
    rows, before = [], tuple(breadcrumb)
    for place in places:
        pairs = zip(before, place.breadcrumb, strict=False)
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        rows.append([place.start, place.text_start, place.page, shared, *place.breadcrumb[shared:]])
        before = place.breadcrumb
    known = {"headings": list(breadcrumb), "places": rows} | ({"span": span} if span is not None else {})
    return json.dumps(known, ensure_ascii=False)


def decode_breadcrumb(text: str) -> tuple[tuple[str, ...], tuple[Place, ...], tuple[int, int] | None]:
    """Return the headings, the places and the span of a chunk."""
    found = json.loads(text)
    if isinstance(found, list):
        return tuple(found), (), None
    trail = headings = tuple(found["headings"])
    places = []
    for start, text_start, page, shared, *further in found["places"]:
        trail = (*trail[:shared], *further)
        places.append(Place(start, text_start, page, trail))
    span = found.get("span")
    return headings, tuple(places), (span[0], span[1]) if span else None


def encode_text(text: str) -> bytes:
    """Compress a text."""
    return zlib.compress(text.encode(), 1)


def decode_text(packed: bytes) -> str:
    """Restore a compressed text."""
    try:
        return zlib.decompress(packed).decode()
    except (zlib.error, UnicodeDecodeError) as error:
        raise StoreDamaged(f"The text of a chunk is damaged: {error}.") from error


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
    headings, places, span = _breadcrumb(breadcrumb)
    place = (rowid, document, position, identity, heading, level)
    return ChunkHead(*place, headings, decode_facets(facets), page, places, span)


@lru_cache(maxsize=4096)
def decode_facets(text: str) -> Mapping[str, str]:
    """Return facets; many chunks share them."""
    facets: Mapping[str, str] = json.loads(text)
    return facets


_breadcrumb = lru_cache(maxsize=4096)(decode_breadcrumb)


def encode_numbers(rowids: Sequence[int]) -> str:
    """Return numbers for `json_each`, which cannot read the integers of numpy."""
    return json.dumps([int(rowid) for rowid in rowids])
