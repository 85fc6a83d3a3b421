"""Embeddings from a service, spoken to over HTTP."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from bedstone.errors import InvalidSetting, Unavailable
from bedstone.search.embedders.openai import OpenAiEmbedder

KEY = "sk-very-secret"


@dataclass
class Service:
    """A service that answers vectors made of a text's length, after the failures it was told to have."""

    address: str = ""
    failures: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)

    def answer(self, body: dict[str, Any]) -> tuple[int, dict[str, str], dict[str, Any]]:
        if self.failures:
            status, headers = self.failures.pop(0)
            return status, headers, {"error": {"message": f"no, {KEY} is wrong"}}
        rows = [{"index": n, "embedding": [len(text), 1.0, 0.5]} for n, text in enumerate(body["input"])]
        return 200, {}, {"data": rows[::-1]}


@contextmanager
def running() -> Iterator[Service]:
    service = Service()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            service.requests.append(body)
            service.keys.append(self.headers["authorization"])
            status, headers, answer = service.answer(body)
            data = json.dumps(answer).encode()
            self.send_response(status)
            for name, value in ({"content-length": str(len(data))} | headers).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    service.address = f"http://127.0.0.1:{server.server_port}/v1/"
    yield service
    server.shutdown()
    server.server_close()


@pytest.fixture
def service() -> Iterator[Service]:
    with running() as service:
        yield service


def embedder(service: Service, waits: list[float] | None = None, **options: Any) -> OpenAiEmbedder:
    pause = (waits if waits is not None else []).append
    return OpenAiEmbedder(base_url=service.address, api_key=KEY, model="tiny", pause=pause, **options)


def test_texts_travel_in_batches_and_come_back_in_order(service: Service) -> None:
    vectors = embedder(service, batch_size=2, dimensions=3).embed(["a", "bbbb", "cc"])
    assert [request["input"] for request in service.requests] == [["a", "bbbb"], ["cc"]]
    assert service.requests[0]["model"] == "tiny"
    assert service.requests[0]["dimensions"] == 3
    assert service.keys[0] == f"Bearer {KEY}"
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)
    assert vectors[1, 0] > vectors[2, 0] > vectors[0, 0]


def test_the_length_of_vectors_is_learnt(service: Service) -> None:
    model = embedder(service)
    assert model.dimensions == 3
    assert "dimensions" not in service.requests[0]
    assert model.fingerprint != embedder(service, dimensions=7).fingerprint


def test_a_busy_service_is_asked_again_when_it_says(service: Service) -> None:
    waits: list[float] = []
    service.failures = [(429, {"retry-after": "7"}), (503, {}), (500, {"retry-after": "soon"})]
    assert embedder(service, waits, dimensions=3).embed(["a"]).shape == (1, 3)
    assert waits == [7.0, 2.0, 4.0]


def test_a_service_that_stays_away_is_named_and_the_key_is_not(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    service.failures = [(500, {})] * 10
    with pytest.raises(Unavailable, match="answered 500") as caught:
        embedder(service, dimensions=3, max_retries=2).embed(["a"])
    assert len(service.requests) == 3
    assert KEY not in str(caught.value)
    assert KEY not in caplog.text


def test_vectors_of_another_length_are_refused(service: Service) -> None:
    with pytest.raises(Unavailable, match="another length than 5"):
        embedder(service, dimensions=5).embed(["a"])
    known = embedder(service, expected_dimensions=3)
    assert known.embed_query("a").shape == (3,)
    assert "dimensions" not in service.requests[-1]


def test_a_refusal_is_not_repeated(service: Service) -> None:
    service.failures = [(401, {})]
    with pytest.raises(Unavailable, match="answered 401"):
        embedder(service, dimensions=3).embed(["a"])
    assert len(service.requests) == 1


def test_a_question_is_asked_once(service: Service) -> None:
    waits: list[float] = []
    service.failures = [(503, {})]
    with pytest.raises(Unavailable):
        embedder(service, waits, dimensions=3).embed_query("why")
    assert (len(service.requests), waits) == (1, [])


def test_nobody_listening_is_a_sentence() -> None:
    with running() as gone:
        address = gone.address
    with pytest.raises(Unavailable, match="did not answer"):
        OpenAiEmbedder(base_url=address, dimensions=3, max_retries=0).embed(["a"])


def test_a_long_text_is_cut_with_a_warning(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    embedder(service, dimensions=3).embed(["x" * 30_000])
    assert len(service.requests[0]["input"][0]) == 24_000
    assert "Truncated a text of 30000 characters" in caplog.text


def test_passages_cover_long_chunks(service: Service) -> None:
    spans = embedder(service, dimensions=3).split("", "x" * 20_000)
    assert (spans[0][0], spans[-1][1]) == (0, 20_000)
    assert all(end - start <= 6_000 for start, end in spans)


def test_the_public_service_needs_a_key() -> None:
    with pytest.raises(InvalidSetting, match="BEDSTONE_EMBEDDING__API_KEY"):
        OpenAiEmbedder()
