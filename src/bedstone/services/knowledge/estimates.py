"""Estimate how long a file takes: by format, pages and method, from what earlier files took.

A file costs a fixed time, a time per page (with or without OCR) or per byte, and a time per chunk for its vectors.
Each rate is learned on its own: many tiny files say how long a start takes, not how long a scanned page does.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from bedstone.ingest.format import Format

# Measured on two cores with the bundled model and engine; seconds unless a comment says otherwise.
DEFAULTS: Mapping[str, float] = {
    "start": 0.1,
    "page.text": 0.01,
    "page.ocr": 2.5,
    "byte.plain": 1e-7,
    "byte.archive": 5e-7,
    "pages.byte": 1 / 30_000,  # pages of text per byte
    "chunks.page": 4.0,  # chunks per page
    "chunks.plain": 1 / 450,  # chunks per byte
    "chunks.archive": 1 / 1_500,
    "chunk": 0.02,
}
GAIN = 0.3  # how far one file moves the rates
MAX_RATIO = 4.0  # the most that one file counts, against what was expected
MAX_FACTOR = 30.0  # the most that a rate differs from its default
MAX_SHARE = 0.99  # of a task that has not finished
MAX_CHUNK_FILL = 0.9  # of the chunk size, on average
PAGED = frozenset({"pdf"})
VALUE = "speeds"  # the store's value for the rates

Part = tuple[str | None, float]  # the name of a rate and its units; without a name, a constant


@dataclass(frozen=True)
class FileFacts:
    """What is known of a file before it is read."""

    format: str
    size_bytes: int
    is_picture: bool = False
    is_archive: bool = False
    page_images: int = 0  # as wide as a page
    force_ocr: bool = False


@dataclass(frozen=True)
class Bounds:
    """The most that reading one file may take."""

    seconds: float
    seconds_per_page: float
    total: float

    def limit(self, pages: float) -> float:
        """Return the most that so many pages may take."""
        return min(self.seconds + self.seconds_per_page * pages, self.total)


@dataclass(frozen=True)
class Estimate:
    """The expected seconds of a file."""

    reading: float
    embedding: float

    @property
    def seconds(self) -> float:
        """Return the expected time of the whole task."""
        return self.reading + self.embedding


@dataclass(frozen=True)
class Speeds:
    """Rates by name; `page.ocr:pdf` is the one of a format, with the default of `page.ocr`."""

    rates: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def decode(cls, text: str | None) -> "Speeds":
        """Return saved rates; those that make no sense are ignored."""
        try:
            saved = json.loads(text or "{}")
            return cls({name: _clamp(name, float(value)) for name, value in saved.items() if _default(name)})
        except (ValueError, TypeError, AttributeError):
            return cls()

    def encode(self) -> str:
        """Return the rates as the store keeps them."""
        return json.dumps({name: float(f"{value:.4g}") for name, value in self.rates.items()})

    def rate(self, name: str) -> float:
        """Return a learned rate, or its default."""
        return self.rates.get(name, _default(name))

    def total(self, parts: Sequence[Part]) -> float:
        """Return the sum of some parts."""
        return sum(self._cost(part) for part in parts)

    def learn(self, parts: Sequence[Part], observed: float) -> "Speeds":
        """Move the rates towards an observation, each as far as it had a part in what was expected."""
        expected = self.total(parts)
        if expected <= 0 or observed <= 0:
            return self
        ratio = min(max(observed / expected, 1 / MAX_RATIO), MAX_RATIO)
        moved = {
            name: _clamp(name, self.rate(name) * ratio ** (GAIN * self._cost((name, units)) / expected))
            for name, units in parts
            if name is not None
        }
        return Speeds({**self.rates, **moved})

    def _cost(self, part: Part) -> float:
        name, units = part
        return units if name is None else units * self.rate(name)


@dataclass(frozen=True)
class Estimator:
    """Estimates files with some rates; `model` names the embedder, None without one."""

    speeds: Speeds
    bounds: Bounds
    model: str | None = None

    def estimate(self, file: FileFacts) -> Estimate:
        """Return the expected time of a file that has not been read."""
        pages = self.pages(file)
        reading = self.speeds.total(reading_parts(file, *self._split(file, pages)))
        chunks = self.speeds.total(chunk_parts(file, pages))
        return Estimate(min(reading, self.bounds.limit(pages)), self.embedding(chunks))

    def pages(self, file: FileFacts) -> float:
        """Return how many pages a file probably has."""
        if file.format not in PAGED:
            return 1.0
        by_size = max(1.0, self.speeds.rate(f"pages.byte:{file.format}") * file.size_bytes)
        return float(file.page_images or by_size)

    def embedding(self, chunks: float) -> float:
        """Return the expected time for the vectors of so many chunks."""
        return self.speeds.rate(f"chunk:{self.model}") * chunks if self.model is not None else 0.0

    def _split(self, file: FileFacts, pages: float) -> tuple[float, float]:
        """Return the expected number of pages with text and with OCR."""
        needs_ocr = file.is_picture or file.force_ocr or file.page_images > 0
        return (0.0, pages) if needs_ocr else (pages, 0.0)


def reading_parts(file: FileFacts, text_pages: float, ocr_pages: float) -> list[Part]:
    """Return what reading a file consists of."""
    ocr: list[Part] = [(f"page.ocr:{file.format}", ocr_pages)] if ocr_pages else []
    if file.format in PAGED:
        return [("start", 1.0), (f"page.text:{file.format}", text_pages), *ocr]
    return [("start", 1.0), (f"byte.{_kind(file)}:{file.format}", file.size_bytes), *ocr]


def chunk_parts(file: FileFacts, pages: float) -> list[Part]:
    """Return what the number of a file's chunks consists of; each file has one."""
    if file.is_picture:
        return [(None, 1.0)]
    if file.format in PAGED:
        return [(None, 1.0), (f"chunks.page:{file.format}", pages)]
    return [(None, 1.0), (f"chunks.{_kind(file)}:{file.format}", file.size_bytes)]


class Timeline:
    """One task on its way: which share of its expected time has passed, and when it will probably end."""

    def __init__(
        self,
        estimator: Estimator,
        file: FileFacts,
        chunk_size: int,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._estimator = estimator
        self._file = file
        self._chunk_size = chunk_size
        self._clock = clock
        self._started = clock()
        self._before = 0.0  # seconds of earlier attempts, whose pages are known
        self._pages = {"text": 0, "ocr": 0}
        self._known = dict(self._pages)  # those of earlier attempts
        self._characters = 0
        estimate = estimator.estimate(file)
        self._reading, self._embedding = estimate.reading, estimate.embedding
        self._read_at: float | None = None
        self._embedding_started: float | None = None
        self._embedded = (0, 0.0)  # chunks and seconds

    @property
    def elapsed_seconds(self) -> float:
        """Return the seconds that the task has taken, with those of earlier attempts."""
        return self._before + self._clock() - self._started

    @property
    def remaining(self) -> float:
        """Return the expected seconds from now on."""
        return self._reading + self._embedding

    @property
    def share(self) -> float:
        """Return the share of the expected time that has passed: nothing before the first page."""
        elapsed = self.elapsed_seconds if any(self._pages.values()) or not self._reading else 0.0
        return min(elapsed / max(elapsed + self.remaining, 1e-9), MAX_SHARE)

    def resume(self, pages: Sequence[tuple[str, int]], seconds: float, of: int | None) -> None:
        """Count the pages of earlier attempts, each with its method and its length, and their time."""
        self._before = seconds
        for method, characters in pages:
            self.add_page(method, characters, of)
        self._known = dict(self._pages)

    def skip_reading(self) -> None:
        """Note that an earlier attempt has read the file."""
        self._before, self._reading = self._reading, 0.0

    def add_page(self, method: str, characters: int, of: int | None) -> None:
        """Count a page; what remains follows from how long the pages took so far."""
        self._pages["ocr" if method == "ocr" else "text"] += 1
        self._characters += characters
        done = sum(self._pages.values())
        total = max(of or done, done)
        speeds = self._estimator.speeds
        prior = sum(speeds.rate(f"page.{name}:{self._file.format}") * n for name, n in self._pages.items()) / done
        per_page = (self.elapsed_seconds + prior) / (done + 1)
        self._reading = min(per_page * (total - done), self._estimator.bounds.limit(total))
        chunks = self._characters / done * total / (MAX_CHUNK_FILL * self._chunk_size)
        self._embedding = self._estimator.embedding(max(1.0, chunks))

    def end_reading(self) -> None:
        """Note that every page is read."""
        self._read_at, self._reading = self._clock(), 0.0

    def add_chunks(self, done: int, total: int) -> None:
        """Note how many chunks have vectors; the first call starts the time."""
        self._embedding_started = self._clock() if self._embedding_started is None else self._embedding_started
        prior = self._estimator.embedding(1)
        per_chunk = (self._clock() - self._embedding_started + prior) / (done + 1) if done else prior
        self._embedded = (done, self._clock() - self._embedding_started)
        self._embedding = per_chunk * max(total - done, 0)

    def learn(self, speeds: Speeds, chunks: int) -> Speeds:
        """Return the rates after this task: what was read in this attempt, its chunks, and their vectors."""
        file, counts = self._file, {name: count - self._known[name] for name, count in self._pages.items()}
        if self._read_at is not None and (any(counts.values()) or file.format not in PAGED):
            parts = reading_parts(file, counts["text"], counts["ocr"])
            speeds = speeds.learn(parts, self._read_at - self._started)
            pages = sum(self._pages.values())
            speeds = speeds.learn(chunk_parts(file, pages), chunks)
            if file.format in PAGED and not file.page_images:
                speeds = speeds.learn([(None, 1.0), (f"pages.byte:{file.format}", file.size_bytes)], pages)
        done, seconds = self._embedded
        return speeds.learn([(f"chunk:{self._estimator.model}", done)], seconds) if done else speeds


def queue_seconds(own: float, ahead: Sequence[float], waiting: int, workers: int) -> float:
    """Return the expected time until a task ends: those ahead share the workers.

    `ahead` are the expected times of some of them, `waiting` is how many there are.
    """
    mean = sum(ahead) / len(ahead) if ahead else 0.0
    busy = sum(ahead) + mean * max(waiting - len(ahead), 0)
    return own + (busy / workers if waiting >= workers else 0.0)


def facts_of(declaration: Format, size_bytes: int, *, page_images: int, force_ocr: bool) -> FileFacts:
    """Return the facts of a file of a declared format; a drawing needs no OCR."""
    is_picture = declaration.is_image and declaration.name != "svg"
    return FileFacts(declaration.name, size_bytes, is_picture, declaration.is_zip, page_images, force_ocr)


def _kind(file: FileFacts) -> str:
    return "archive" if file.is_archive else "plain"


def _default(name: str) -> float:
    return DEFAULTS.get(name.partition(":")[0], 0.0)


def _clamp(name: str, value: float) -> float:
    default = _default(name)
    return min(max(value, default / MAX_FACTOR), default * MAX_FACTOR)
