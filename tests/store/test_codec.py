"""Records as they are written down: what earlier versions wrote is read, and everything survives a round trip."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedstone.records import Document, Place, ProgressSnapshot, Task, TaskError, TaskRetry
from bedstone.store.codec import (
    OUTCOME_KEYS,
    decode_breadcrumb,
    decode_document,
    decode_facets,
    decode_task,
    decode_text,
    encode_breadcrumb,
    encode_document,
    encode_facets,
    encode_task,
    encode_text,
    join_details,
    split_details,
)

PAYLOAD = {"document_id": "27e5", "filename": "ä.pdf", "size": 938, "metadata": {"tags": ["sea", 1]}, "contexts": ["x"]}
RESULT = {"document_id": "27e5", "filename": "ä.pdf", "chunks_created": 1, "processing_method": "text_extraction"}

# The details of tasks as version 0.x wrote them, and what they mean.
RECORDED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("queued", {}, {}),
    (
        "running",
        {"progress": {"step": "Chunking", "done": 9, "total": 20}},
        {"progress": ProgressSnapshot("Chunking", 9, 20)},
    ),
    ("completed", {"result": RESULT}, {"result": RESULT}),
    ("completed", {"result": {**RESULT, "duplicate": True}}, {"result": {**RESULT, "duplicate": True}}),
    (
        "failed",
        {"error": "extraction_failed", "message": "The document is damaged, or no PDF."},
        {"error": TaskError("extraction_failed", "The document is damaged, or no PDF.")},
    ),
    (
        "failed",
        {"error": "interrupted", "message": "The server was interrupted twice.", "dismissed": True},
        {"error": TaskError("interrupted", "The server was interrupted twice."), "is_dismissed": True},
    ),
    ("cancelled", {}, {}),
    ("cancelled", {"share": 0.4}, {"progress": ProgressSnapshot("", 0.4, 1.0)}),
    (
        "cancelled",
        {"progress": {"step": "Chunking", "done": 9, "total": 20}, "share": 0.5},
        {"progress": ProgressSnapshot("Chunking", 10, 20)},
    ),
]


@pytest.mark.parametrize(("status", "outcome", "fields"), RECORDED)
def test_tasks_of_earlier_versions_are_read(status: str, outcome: dict[str, Any], fields: dict[str, Any]) -> None:
    details = json.dumps({**PAYLOAD, **outcome}, ensure_ascii=False)
    row = ("id", "add", status, 1.5, details, 2.5, None, 1)
    task = decode_task(row)
    assert task == Task("id", "add", status, 1.5, PAYLOAD, 2.5, None, 1, **fields)  # type: ignore[arg-type]
    written = json.loads(encode_task(task)[4])
    assert {**outcome, "progress": None} == {**{key: written.get(key) for key in outcome}, "progress": None}
    assert decode_task(encode_task(task)) == task


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
payloads = st.dictionaries(st.text().filter(lambda key: key not in OUTCOME_KEYS), json_values, max_size=4)
times = st.floats(0, 4e9)
snapshots = st.builds(ProgressSnapshot, st.text(), st.floats(0, 20), st.just(20.0))
tasks = st.builds(
    Task,
    st.text(),
    st.text(),
    st.sampled_from(["queued", "running", "completed", "failed", "cancelled"]),
    times,
    payloads,
    st.none() | times,
    st.none() | times,
    st.integers(0, 9),
    st.none() | snapshots,
    st.none() | payloads,
    st.none() | st.builds(TaskError, st.text(), st.text()),
    st.booleans(),
    st.none() | st.builds(TaskRetry, st.text(), st.integers(1, 99), times),
)


@given(tasks)
def test_every_task_survives_a_round_trip(task: Task) -> None:
    assert decode_task(encode_task(task)) == task
    assert split_details(join_details(task))["payload"] == task.payload


def test_a_payload_may_not_use_the_keys_of_the_outcome() -> None:
    with pytest.raises(AssertionError):
        encode_task(Task("id", "add", "queued", 1.0, {"result": {}}))


@given(st.text(), st.text(), st.text(), st.dictionaries(st.text(), st.text()))
def test_documents_facets_and_texts_survive_a_round_trip(
    identity: str, title: str, digest: str, pairs: dict[str, str]
) -> None:
    document = Document(identity, title, digest, pairs)
    assert decode_document(encode_document(document)) == document
    assert decode_facets(encode_facets(pairs)) == pairs
    assert encode_facets(pairs) == encode_facets(dict(reversed(pairs.items())))
    assert decode_text(encode_text(title)) == title


def test_documents_and_tasks_are_written_as_before() -> None:
    assert encode_document(Document("a", "Ü", "1", {"filename": "ä.pdf"})) == (
        "a",
        "Ü",
        "1",
        '{"filename": "\\u00e4.pdf"}',
    )
    failed = Task("t", "add", "failed", 1.0, {"filename": "ä.pdf"}, 2.0, 3.0, 1, error=TaskError("ocr_failed", "Nö."))
    details = '{"filename": "ä.pdf", "error": "ocr_failed", "message": "Nö."}'
    assert encode_task(failed) == ("t", "add", "failed", 1.0, details, 2.0, 3.0, 1)


def test_headings_of_earlier_versions_are_read() -> None:
    assert decode_breadcrumb('["Guide", "Set up"]') == (("Guide", "Set up"), (), None)


def test_a_chunk_keeps_its_range_in_the_document() -> None:
    places = (Place(0, 0, 1, ("Guide",)), Place(5, 7, 2, ("Guide", "Set up")))
    for known in ((), places):
        for span in (None, (12, 90)):
            assert decode_breadcrumb(encode_breadcrumb(("Guide",), known, span)) == (("Guide",), known, span)
