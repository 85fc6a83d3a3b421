"""Models to the JSON Schema that agents read."""

from typing import Literal

from pydantic import Field

from bedstone.toolkit import Arguments, Result
from bedstone.toolkit.schema import input_schema, output_schema


class Window(Arguments):
    """A docstring that is no part of the schema."""

    start: str | None = None
    end: str | None = None


class Search(Arguments):
    query: str = Field(description="What to look for")
    top_k: int = Field(10, alias="topK", ge=1, le=50)
    title: str | None = Field(None, description="A property that is called title")
    order: Literal["up", "down"] = "up"
    window: Window | None = None
    tags: list[str] | str | None = None


class Closed(Arguments):
    closed = True
    query: str


class Hit(Result):
    id: str
    title: str | None
    note: str | None = None


class Hits(Result):
    hits: list[Hit]
    next_cursor: str | None


class Queued(Result):
    task_id: str


def test_arguments_print_plainly() -> None:
    assert input_schema(Search) == {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What to look for"},
            "topK": {"type": "integer", "default": 10, "minimum": 1, "maximum": 50},
            "title": {"type": "string", "description": "A property that is called title"},
            "order": {"type": "string", "enum": ["up", "down"], "default": "up"},
            "window": {
                "type": "object",
                "properties": {"start": {"type": "string"}, "end": {"type": "string"}},
            },
            "tags": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string"}]},
        },
        "required": ["query"],
    }


def test_only_closed_arguments_say_so() -> None:
    assert input_schema(Closed)["additionalProperties"] is False


def test_results_that_may_be_null_say_so() -> None:
    assert output_schema([Hits]) == {
        "type": "object",
        "properties": {
            "hits": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "id": {"type": "string"},
                        "title": {"type": ["string", "null"]},
                        "note": {"type": "string"},
                    },
                    "required": ["id", "title"],
                },
            },
            "next_cursor": {"type": ["string", "null"]},
        },
        "required": ["hits", "next_cursor"],
    }


def test_alternatives_stand_under_one_object() -> None:
    schema = output_schema([Hits, Queued])
    assert schema
    assert schema["type"] == "object"
    assert [shape["required"] for shape in schema["anyOf"]] == [["hits", "next_cursor"], ["task_id"]]
    assert output_schema([]) is None


def test_absent_is_left_out_and_null_is_kept_at_every_depth() -> None:
    hits = Hits(hits=[Hit(id="1", title=None), Hit(id="2", title="b", note="c")], next_cursor=None)
    assert hits.model_dump(mode="json") == {
        "hits": [{"id": "1", "title": None}, {"id": "2", "title": "b", "note": "c"}],
        "next_cursor": None,
    }
