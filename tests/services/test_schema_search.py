"""Schema search: semantic search where an embedder answers, keyword search where it does not."""

from pathlib import Path
from typing import Any

import pytest

from bedstone.errors import Unavailable
from bedstone.salesforce.graph.model import Field, ObjectSchema, SchemaGraph
from bedstone.search.embedders.minilm import MiniLm
from bedstone.services.schema.search import SchemaSearch

GRAPH = SchemaGraph.of(
    ObjectSchema(name, label, f"{label}s", (Field("Id", "Record ID", "id"),))
    for name, label in {"Invoice__c": "Invoice", "Employee__c": "Employee", "Tide_Table__c": "Tide Table"}.items()
)


class Moody(MiniLm):
    is_down = False

    def embed_query(self, text: str) -> Any:
        if self.is_down:
            raise Unavailable("The service did not answer")
        return super().embed_query(text)


def found(search: SchemaSearch, query: str) -> list[str]:
    return [match.object.name for match in search.search(query, "objects")]


def test_a_failing_embedder_falls_back_to_keyword_search(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    embedder = Moody()
    search = SchemaSearch(GRAPH, tmp_path, lambda: embedder)
    assert search.make_vectors() > 0
    assert found(search, "staff member")[0] == "Employee__c"
    embedder.is_down = True
    assert found(search, "members of staff") == []
    assert found(search, "tide")[0] == "Tide_Table__c"
    assert [record.getMessage() for record in caplog.records] == [
        "Semantic search failed, using keyword search: The service did not answer"
    ]


def test_an_embedder_that_cannot_be_built_falls_back_to_keyword_search(tmp_path: Path) -> None:
    SchemaSearch(GRAPH, tmp_path, MiniLm).make_vectors()

    def unavailable() -> MiniLm:
        raise Unavailable("The service did not answer")

    search = SchemaSearch(GRAPH, tmp_path, unavailable)
    assert found(search, "tide")[0] == "Tide_Table__c"
    with pytest.raises(Unavailable):  # but a sync says so
        search.make_vectors()
