"""The filters of knowledge-search: every value is understood or refused, and none silently finds nothing."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from bedstone.app import build_toolset
from bedstone.settings import Settings
from contracts.test_knowledge import call, write
from ingest.test_reader import picture
from support.doors import DOORS, Door
from support.processes import bedstone
from support.replicas import shared
from support.site import open_site


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[Door]:
    """A knowledge base with a page, a text and a picture."""
    given = {"data_dir": tmp_path / "data", "embedding": {"provider": "none"}, "ocr": {"enabled": False}}
    toolset = build_toolset("knowledge", shared(Settings.model_validate(given)))
    files: dict[str, bytes | str] = {"walrus.html": "<p>walrus</p>", "walrus.txt": "walrus"}
    files["walrus.jpg"] = picture("Walrus", "JPEG")
    async with toolset.opened(), DOORS["memory-2026"]([toolset]) as door:
        for name, data in files.items():
            path = write(tmp_path, name, data)
            metadata = {"author": "Ada", "tags": ["sea"]} if name == "walrus.txt" else {}
            await call(door, "add", **{"file_path": path, "async": False, "metadata": metadata})
        yield door


async def names(door: Door, **filters: Any) -> set[str]:
    found = await call(door, "search", query="walrus", filters=filters)
    assert found["success"], found
    return {Path(hit["filename"]).suffix[1:] for hit in found["results"]}


ALL = {"html", "txt", "jpg"}


UNDERSTOOD: list[tuple[dict[str, Any], set[str]]] = [
    ({"format": None}, ALL),
    ({"date_range": None}, ALL),
    ({"date_range": {"start": None, "end": None}}, ALL),
    ({"author": None, "nothing": None}, ALL),
    ({"format": "jpeg"}, {"jpg"}),
    ({"format": ".JPG"}, {"jpg"}),
    ({"format": ["htm", " TXT "]}, {"html", "txt"}),
    ({"format": "pdf"}, set()),
    ({"author": "Ada", "tags": ["sea", "land"]}, {"txt"}),
    ({"author": "Bob"}, set()),
    ({"author": ["Ada", None]}, ALL),
]
REFUSED: list[tuple[dict[str, Any], list[str]]] = [
    ({"format": "pfd"}, ["'pfd'", "pdf, docx, pptx"]),
    ({"format": 5}, ["format must be"]),
    ({"format": []}, ["format must have at least one value"]),
    ({"autor": "Ada"}, ["'autor'", "format, date_range, author, tags"]),
    ({"author": "Ada", "autor": ["x", None]}, ["'autor'"]),
    ({"date_range": "today"}, ["date_range must be an object"]),
    ({"date_range": {"from": "2026-01-01"}}, ["start and end"]),
    ({"date_range": {"start": "soon"}}, ["start", "2026-01-31T09:30:00Z", "'soon'"]),
    ({"date_range": {"end": "2026-02-30"}}, ["end", "'2026-02-30'"]),
    ({"date_range": {"end": 5}}, ["end", "5"]),
    ({"date_range": {"start": "2026-02-01", "end": "2026-01-31"}}, ["begins after its end"]),
    ({"date_range": {"start": "2026-02-01T10:00:00Z", "end": "2026-02-01T11:00:00+02:00"}}, ["begins after"]),
]


async def test_null_is_no_filter_and_other_spellings_are_understood(door: Door) -> None:
    for filters, found in UNDERSTOOD:
        assert await names(door, **filters) == found, filters


async def test_what_cannot_match_is_an_error_that_says_what_can(door: Door) -> None:
    for filters, words in REFUSED:
        answer = await call(door, "search", query="walrus", filters=filters)
        assert (answer.get("error"), answer.get("parameter")) == ("invalid_parameter", "filters"), filters
        assert all(word in answer["message"] for word in words), answer["message"]


async def test_times_are_honoured(door: Door) -> None:
    rows = (await call(door, "show"))["documents"]
    added = {datetime.fromisoformat(row["date_added"]): row["filename"] for row in rows}
    first, last = min(added), max(added)
    second, east = timedelta(seconds=1), timezone(timedelta(hours=2))

    def text(moment: datetime) -> str:
        return moment.isoformat().replace("+00:00", "Z")

    assert await names(door, date_range={"start": text(first), "end": text(last)}) == ALL
    assert await names(door, date_range={"end": text(first - second)}) == set()
    assert await names(door, date_range={"start": text(last + second)}) == set()
    assert await names(door, date_range={"start": text(first.astimezone(east))}) == ALL
    assert await names(door, date_range={"start": (last + second).astimezone(east).isoformat()}) == set()
    assert await names(door, date_range={"start": first.replace(tzinfo=None).isoformat()}) == ALL  # UTC
    assert await names(door, date_range={"end": (first - second).replace(tzinfo=None).isoformat()}) == set()
    day = first.astimezone(UTC).date()
    assert await names(door, date_range={"start": str(day), "end": str(last.date())}) == ALL
    assert await names(door, date_range={"start": "0001-01-01", "end": "9999-12-31"}) == ALL


async def test_the_schema_and_the_description_tell_the_shape(door: Door) -> None:
    (tool,) = [tool for tool in await door.list_tools() if tool.name == "knowledge-search"]
    shape = tool.input_schema["properties"]["filters"]["properties"]
    assert [option["type"] for option in shape["format"]["anyOf"]] == ["string", "array"]
    ends = shape["date_range"]
    assert {name: end["type"] for name, end in ends["properties"].items()} == {"start": "string", "end": "string"}
    assert ends["additionalProperties"] is False
    assert tool.description
    assert tool.description.startswith("Search the knowledge base using natural language query")
    assert all(word in tool.description for word in ("format", "date_range", "start", "end", "metadata"))


async def test_commands_and_pages_refuse_an_unknown_format_too(tmp_path: Path) -> None:
    given = {"data_dir": tmp_path / "data", "toolsets": ["knowledge"], "embedding": {"provider": "none"}}
    async with open_site(shared(Settings.model_validate(given))) as site:
        await site.add("walrus.htm", b"<p>walrus</p>")
        assert "walrus.htm" in await site.text("/documents?format=HTM")
        assert "Unknown format" in await site.text("/documents?format=pfd", 400)
        assert "Unknown format" in await site.text("/search?q=walrus&f.format=pfd")
    folder = ["--data-dir", str(tmp_path / "data")]
    assert "walrus" in bedstone("knowledge", "search", "walrus", "--format", ".htm", *folder).stdout
    refused = bedstone("knowledge", "search", "walrus", "--format", "pfd", *folder)
    assert (refused.returncode, "Unknown format 'pfd'" in refused.stderr) == (1, True)
