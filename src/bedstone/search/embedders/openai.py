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
from bedstone.search.embedder import Vectors

if TYPE_CHECKING:
    from bedstone.settings import EmbeddingSettings

logger = logging.getLogger(__name__)

DEFAULT_MODEL = "text-embedding-3-small"
DEFAULT_BASE_URL = "https://api.openai.com/v1"
LONGEST_INPUT = 24_000
PASSAGE_CHARACTERS, OVERLAP_CHARACTERS = 6_000, 600
QUERY_SECONDS, BATCH_SECONDS = 3.0, 60.0
LONGEST_WAIT_SECONDS = 60.0
WORTH_RETRYING = {408, 409, 429, *range(500, 600)}


class OpenAiEmbedder:
    """Sends batches; a service that is busy is asked again, after the time it names."""

    provider = "openai"
    languages = frozenset({"*"})
    floor = 0.15
    has_meaning = True

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
        self._wanted_dimensions = dimensions
        self._expected_dimensions = expected_dimensions
        self._max_retries = max_retries
        self._pause = pause
        self.batch, self.workers = batch_size, concurrency
        self._api_key = api_key
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._http = httpx2.Client(headers=headers, timeout=BATCH_SECONDS)

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
        known = self._wanted_dimensions or self._expected_dimensions
        return known or len(self._ask(["dimensions"], retries=self._max_retries)[0])

    @cached_property
    def fingerprint(self) -> str:
        return sha256(f"{self._base_url}\n{self.name}\n{self.dimensions}".encode()).hexdigest()[:16]

    @property
    def origin(self) -> dict[str, Any]:
        """Where the vectors came from, which an index keeps so that questions go to the same place."""
        return {"base_url": self._base_url, "requested_dimensions": self._wanted_dimensions}

    @property
    def reach(self) -> float:
        return min(1.0, 7 / sqrt(self.dimensions))

    def passages(self, context: str, text: str) -> list[tuple[int, int]]:
        if len(text) <= PASSAGE_CHARACTERS + OVERLAP_CHARACTERS:
            return [(0, len(text))]
        starts = range(0, len(text) - OVERLAP_CHARACTERS, PASSAGE_CHARACTERS - OVERLAP_CHARACTERS)
        return [(start, min(start + PASSAGE_CHARACTERS, len(text))) for start in starts]

    def embed(self, texts: Sequence[str]) -> Vectors:
        rows: list[list[float]] = []
        for start in range(0, len(texts), self.batch):
            rows += self._ask([_fitting(text) for text in texts[start : start + self.batch]], self._max_retries)
        return _units(rows, self.dimensions)

    def embed_query(self, text: str) -> Vectors:
        """A question waits for nobody: one attempt, a short time, and words do it alone."""
        vector: Vectors = _units(self._ask([_fitting(text)], retries=0, seconds=QUERY_SECONDS), self.dimensions)[0]
        return vector

    def _ask(self, texts: Sequence[str], retries: int, seconds: float = BATCH_SECONDS) -> list[list[float]]:
        body: dict[str, Any] = {"model": self.name, "input": list(texts), "encoding_format": "float"}
        if self._wanted_dimensions:
            body["dimensions"] = self._wanted_dimensions
        for attempt in range(retries + 1):
            wait = min(2.0**attempt, LONGEST_WAIT_SECONDS)
            try:
                response = self._http.post(f"{self._base_url}/embeddings", json=body, timeout=seconds)
            except httpx2.HTTPError as error:
                problem = f"The embedding service at {self._base_url} did not answer: {type(error).__name__}"
            else:
                if response.status_code == httpx2.codes.OK:
                    return _vectors(response, len(texts))
                reason = self._redacted(_reason(response))
                problem = f"The embedding service at {self._base_url} answered {response.status_code}{reason}"
                if response.status_code not in WORTH_RETRYING:
                    break
                wait = min(_seconds(response.headers.get("retry-after"), wait), LONGEST_WAIT_SECONDS)
            if attempt < retries:
                logger.warning("%s; asking again in %.0f s", problem, wait, extra={"action": "embedding_retry"})
                self._pause(wait)
        raise Unavailable(problem)

    def _redacted(self, text: str) -> str:
        return text.replace(self._api_key, "***") if self._api_key else text


def _vectors(response: httpx2.Response, count: int) -> list[list[float]]:
    try:
        rows = sorted(response.json()["data"], key=lambda row: row["index"])
        vectors = [row["embedding"] for row in rows]
    except (ValueError, KeyError, TypeError):
        raise Unavailable("The embedding service answered something that is no list of embeddings") from None
    if len(vectors) != count:
        raise Unavailable(f"The embedding service answered {len(vectors)} embeddings for {count} texts")
    return vectors


def _units(rows: Sequence[Sequence[float]], dimensions: int) -> Vectors:
    if any(not isinstance(row, list) or len(row) != dimensions for row in rows):
        raise Unavailable(f"The embedding service answered vectors of another length than {dimensions}")
    vectors = np.array(rows, np.float32).reshape(-1, dimensions)
    units: Vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    return units


def _fitting(text: str) -> str:
    if len(text) <= LONGEST_INPUT:
        return text
    logger.warning("A text of %d characters was cut for embedding", len(text), extra={"action": "embedding_cut"})
    return text[:LONGEST_INPUT]


def _reason(response: httpx2.Response) -> str:
    try:
        message = response.json()["error"]["message"]
    except (ValueError, KeyError, TypeError):
        return ""
    return f": {message}"


def _seconds(header: str | None, otherwise: float) -> float:
    try:
        return max(0.0, float(header)) if header else otherwise
    except ValueError:
        return otherwise
