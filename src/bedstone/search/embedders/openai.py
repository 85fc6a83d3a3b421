"""Embeddings from a service that speaks OpenAI's protocol."""

import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from math import sqrt
from typing import TYPE_CHECKING, Any, Self

import httpx2
import numpy as np

from bedstone.errors import InvalidSetting, Unavailable
from bedstone.search.embedder import Span, Vectors

if TYPE_CHECKING:
    from bedstone.settings import EmbeddingSettings

logger = logging.getLogger(__name__)

DEFAULT_MODEL = "text-embedding-3-small"
DEFAULT_BASE_URL = "https://api.openai.com/v1"
MAX_INPUT_CHARACTERS = 24_000
PASSAGE_CHARACTERS = 6_000
OVERLAP_CHARACTERS = 600
QUERY_TIMEOUT_SECONDS = 3.0
BATCH_TIMEOUT_SECONDS = 60.0
MAX_WAIT_SECONDS = 60.0
RETRYABLE_STATUSES = {408, 409, 429, *range(500, 600)}


class OpenAiEmbedder:
    """Sends batches; retries while the service is busy, after the time that it names."""

    provider = "openai"
    languages = frozenset({"*"})
    min_similarity = 0.15
    is_semantic = True

    def __init__(
        self,
        *,
        model: str | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        dimensions: int | None = None,
        expected_dimensions: int | None = None,
        batch_size: int = 128,
        concurrency: int = 4,
        max_retries: int = 3,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.name = model or DEFAULT_MODEL
        self._base_url = (base_url or DEFAULT_BASE_URL).rstrip("/")
        if not api_key and self._base_url == DEFAULT_BASE_URL:
            raise InvalidSetting("The embedding provider openai needs a key: set BEDSTONE_EMBEDDING__API_KEY.")
        self._requested_dimensions = dimensions
        self._expected_dimensions = expected_dimensions
        self._max_retries = max_retries
        self._pause = pause
        self.batch_size = batch_size
        self.workers = concurrency
        self._api_key = api_key
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._http = httpx2.Client(headers=headers, timeout=BATCH_TIMEOUT_SECONDS)

    @classmethod
    def from_settings(cls, settings: "EmbeddingSettings", origin: Mapping[str, Any] | None) -> Self:
        key = settings.api_key.get_secret_value() if settings.api_key else os.environ.get("OPENAI_API_KEY")
        known = origin or {}
        return cls(
            model=known["model"] if known else settings.model_name,
            base_url=known.get("base_url") if known else settings.base_url,
            api_key=key,
            dimensions=known.get("requested_dimensions") if known else settings.dimensions,
            expected_dimensions=known["dimensions"] if known else None,
            batch_size=settings.batch_size,
            concurrency=settings.concurrency,
            max_retries=settings.max_retries,
        )

    @cached_property
    def dimensions(self) -> int:
        known = self._requested_dimensions or self._expected_dimensions
        return known or len(self._request(["dimensions"], retries=self._max_retries)[0])

    @cached_property
    def fingerprint(self) -> str:
        return sha256(f"{self._base_url}\n{self.name}\n{self.dimensions}".encode()).hexdigest()[:16]

    @property
    def origin(self) -> dict[str, Any]:
        """Where the vectors came from: an index records it, so that queries go to the same service."""
        return {"base_url": self._base_url, "requested_dimensions": self._requested_dimensions}

    @property
    def max_component(self) -> float:
        return min(1.0, 7 / sqrt(self.dimensions))

    def split(self, context: str, text: str) -> list[Span]:
        if len(text) <= PASSAGE_CHARACTERS + OVERLAP_CHARACTERS:
            return [(0, len(text))]
        starts = range(0, len(text) - OVERLAP_CHARACTERS, PASSAGE_CHARACTERS - OVERLAP_CHARACTERS)
        return [(start, min(start + PASSAGE_CHARACTERS, len(text))) for start in starts]

    def embed(self, texts: Sequence[str]) -> Vectors:
        rows: list[list[float]] = []
        for start in range(0, len(texts), self.batch_size):
            rows += self._request(
                [_truncate(text) for text in texts[start : start + self.batch_size]], self._max_retries
            )
        return _to_unit_vectors(rows, self.dimensions)

    def embed_query(self, text: str) -> Vectors:
        """Try once, with a short timeout: a query falls back to keyword search."""
        vector: Vectors = _to_unit_vectors(
            self._request([_truncate(text)], retries=0, timeout=QUERY_TIMEOUT_SECONDS), self.dimensions
        )[0]
        return vector

    def _request(self, texts: Sequence[str], retries: int, timeout: float = BATCH_TIMEOUT_SECONDS) -> list[list[float]]:
        body: dict[str, Any] = {"model": self.name, "input": list(texts), "encoding_format": "float"}
        if self._requested_dimensions:
            body["dimensions"] = self._requested_dimensions
        for attempt in range(retries + 1):
            wait = min(2.0**attempt, MAX_WAIT_SECONDS)
            try:
                response = self._http.post(f"{self._base_url}/embeddings", json=body, timeout=timeout)
            except httpx2.HTTPError as error:
                problem = f"The embedding service at {self._base_url} did not answer: {type(error).__name__}"
            else:
                if response.status_code == httpx2.codes.OK:
                    return _parse_vectors(response, len(texts))
                reason = self._redact(_error_message(response))
                problem = f"The embedding service at {self._base_url} answered {response.status_code}{reason}"
                if response.status_code not in RETRYABLE_STATUSES:
                    break
                wait = min(_parse_seconds(response.headers.get("retry-after"), wait), MAX_WAIT_SECONDS)
            if attempt < retries:
                logger.warning("%s; retrying in %.0f s", problem, wait, extra={"action": "embedding_retry"})
                self._pause(wait)
        raise Unavailable(problem)

    def _redact(self, text: str) -> str:
        return text.replace(self._api_key, "***") if self._api_key else text


def _parse_vectors(response: httpx2.Response, count: int) -> list[list[float]]:
    try:
        rows = sorted(response.json()["data"], key=lambda row: row["index"])
        vectors = [row["embedding"] for row in rows]
    except (ValueError, KeyError, TypeError):
        raise Unavailable("The embedding service did not answer with a list of embeddings") from None
    if len(vectors) != count:
        raise Unavailable(f"The embedding service returned {len(vectors)} embeddings for {count} texts")
    return vectors


def _to_unit_vectors(rows: Sequence[Sequence[float]], dimensions: int) -> Vectors:
    if any(not isinstance(row, list) or len(row) != dimensions for row in rows):
        raise Unavailable(f"The embedding service returned vectors of another length than {dimensions}")
    vectors = np.array(rows, np.float32).reshape(-1, dimensions)
    units: Vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    return units


def _truncate(text: str) -> str:
    if len(text) <= MAX_INPUT_CHARACTERS:
        return text
    logger.warning("Truncated a text of %d characters for embedding", len(text), extra={"action": "embedding_cut"})
    return text[:MAX_INPUT_CHARACTERS]


def _error_message(response: httpx2.Response) -> str:
    try:
        message = response.json()["error"]["message"]
    except (ValueError, KeyError, TypeError):
        return ""
    return f": {message}"


def _parse_seconds(header: str | None, otherwise: float) -> float:
    try:
        return max(0.0, float(header)) if header else otherwise
    except ValueError:
        return otherwise
