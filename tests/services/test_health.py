"""Checks find what is broken and never raise: a model that fails later, a mirror and a schema that are garbage."""

from pathlib import Path
from typing import Any

from bedstone.salesforce.client.orgs import Orgs
from bedstone.search.embedder import Vectors
from bedstone.search.embedders.hashing import HashingEmbedder
from bedstone.search.embedding import QueryEmbedder
from bedstone.search.embedding_cache import CachedEmbedder
from bedstone.services.articles.mirror import ArticleMirror
from bedstone.services.schema.service import SchemaService
from bedstone.services.schema.store import FILE


class Failing(HashingEmbedder):
    """A model that fails when the test says so, with an error of its library."""

    reason: str | None = None

    def embed_query(self, text: str) -> Vectors:
        if self.reason is not None:
            raise RuntimeError(self.reason)
        return super().embed_query(text)


def test_a_model_that_fails_later_is_noticed(tmp_path: Path) -> None:
    """What was embedded once is remembered, so a check must ask the model itself."""
    model = Failing()
    embedder = CachedEmbedder(model, tmp_path / "cache.sqlite")
    queries = QueryEmbedder(lambda: embedder)
    assert queries.check() is None
    model.reason = "the session is broken"
    assert queries.check() == "the session is broken"
    assert queries.embed("tide") is None  # keyword search answers
    model.reason = None
    assert queries.check() is None


def test_garbage_in_a_mirror_is_a_problem(tmp_path: Path) -> None:
    mirror = ArticleMirror(tmp_path, lambda: None)
    assert mirror.find_problem() is None
    (tmp_path / "articles.sqlite").write_bytes(b"garbage, and more of it. " * 1_000)
    problem = mirror.find_problem()
    assert problem
    assert problem.startswith("Cannot search the mirrored articles: ")


def test_garbage_in_a_schema_is_a_problem(tmp_path: Path) -> None:
    def no_client(_: Any) -> Any:
        raise AssertionError

    service = SchemaService(tmp_path, Orgs(tmp_path), no_client, lambda: None)
    assert service.problems() == []
    (tmp_path / "import-acme").mkdir()
    (tmp_path / "import-acme" / FILE).write_bytes(b"garbage, and more of it. " * 1_000)
    (problem,) = service.problems()
    assert problem.startswith("Cannot read the schema of acme ")
