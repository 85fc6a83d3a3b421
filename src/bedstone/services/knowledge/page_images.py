"""The originals of documents for people: pictures of their pages, where passages stand on them, their rich text."""

import json
import logging
import re
import threading
import time
from base64 import b64decode
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Literal, NamedTuple

from bedstone.errors import InvalidInput
from bedstone.ingest.extraction import ExtractionError
from bedstone.ingest.locating import Box, locate
from bedstone.ingest.page_words import PageWords, join_words
from bedstone.ingest.render_pool import PoolBusyError, RenderPool
from bedstone.ingest.rendering import RENDERING_VERSION, is_drawable
from bedstone.services.knowledge.errors import OriginalMissing, PageNotFound, RenderingBusy, RenderingFailed
from bedstone.services.knowledge.file_storage import FileStorage
from bedstone.services.knowledge.picture_cache import PictureCache
from bedstone.services.knowledge.records import FileDocument

logger = logging.getLogger(__name__)

Kind = Literal["pages", "rich", "text"]
WIDTHS = (120, 640, 1280, 2000)  # pixels, of pictures
PLAIN = frozenset({"txt", "json"})  # formats without structure to show
MEASURE = "measure"  # the request for a document as a whole
DOCUMENT = 0  # the number of its pages for that
FAILURE_SECONDS = 600.0  # in which a page that failed is not drawn again
PASSING = frozenset({"machine", "worker_killed"})  # reasons that may be gone the next time
MAX_FAILURES = 1_000  # that are remembered
REASONS = {
    "time_limit": "Drawing the page takes too long.",
    "memory_limit": "Drawing the page takes too much memory.",
    "worker_crashed": "Drawing the page failed.",
    "worker_killed": "Drawing the page was interrupted. Try again.",
    "machine": "The page cannot be drawn now. Try again later.",
}
BODY = re.compile(r"<body\b|</head\b", re.IGNORECASE)
BODY_END = re.compile(r"</body\b", re.IGNORECASE)


class RichText(NamedTuple):
    """An original as HTML or Markdown, not sanitised."""

    media: Literal["html", "markdown"]
    text: str


class Originals:
    """Draws pages when they are first asked for, in worker processes, and keeps the pictures; all calls block."""

    def __init__(
        self,
        storage: FileStorage,
        cache: PictureCache,
        pool: RenderPool | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._storage = storage
        self._cache = cache
        self._pool = pool or RenderPool()
        self._failures = _Failures(clock)
        self._flights: dict[tuple[str, str], Future[bytes]] = {}
        self._lock = threading.Lock()

    def close(self) -> None:
        """End the worker processes."""
        self._pool.close()

    def kind(self, document: FileDocument) -> Kind:
        """Return how the original can be shown: as pictures of pages, as rich text, or as plain text."""
        if is_drawable(document.format):
            return "pages"
        return "text" if document.format in PLAIN else "rich"

    def path(self, document: FileDocument) -> Path:
        """Return a file of this machine with the original; raise `OriginalMissing` if it does not exist."""
        try:
            return self._storage.local_copy(document.id, document.filename, document.digest)
        except FileNotFoundError:
            message = f"The stored copy of {document.filename} is missing. Add the file again."
            raise OriginalMissing(message, document_id=document.id) from None

    def page_sizes(self, document: FileDocument) -> list[tuple[float, float]]:
        """Return the width and height of each page: points for PDF, pixels for pictures."""
        runs = self._measure(document)["sizes"]
        return [(float(width), float(height)) for count, width, height in runs for _ in range(count)]

    def notices(self, document: FileDocument) -> list[str]:
        """Return what the pictures of a document do not show, in sentences for people."""
        return [str(note) for note in self._measure(document)["notes"]]

    def picture(self, document: FileDocument, page: int, width: int) -> bytes:
        """Return a page, counted from 1, as WebP of about `width` pixels, one of `WIDTHS`."""
        if width not in WIDTHS:
            raise InvalidInput(f"The width must be one of {', '.join(map(str, WIDTHS))}.", parameter="width")
        self._check(document, page)

        def draw() -> bytes:
            return b64decode(self._ask("render", document, page, width=width)["picture"])

        return self._get_or_make(document, f"{page}-{width}.webp", draw)

    def boxes(self, document: FileDocument, page: int, passages: Sequence[str]) -> list[list[Box]]:
        """Return for each passage where its lines stand on a page.

        A passage that is not found has no boxes, and neither has any on a page that cannot be drawn.
        """
        if not passages or self.kind(document) != "pages":
            return [[] for _ in passages]
        recognized, is_complete = self._load_recognized(document, page)
        found = locate(recognized, passages) if recognized is not None and is_complete else []
        if any(found):
            return found
        words = self._all_words(document, page, recognized)
        return locate(words, passages) if words is not None else [[] for _ in passages]

    def words(self, document: FileDocument, page: int) -> PageWords | None:
        """Return the words of a page and where they stand; None if that is not known."""
        if self.kind(document) != "pages":
            return None
        recognized, is_complete = self._load_recognized(document, page)
        return recognized if is_complete else self._all_words(document, page, recognized)

    def _load_recognized(self, document: FileDocument, page: int) -> tuple[PageWords | None, bool]:
        """Return the words that OCR found on a page, and whether they are all that it has."""
        packed, is_complete = self._storage.texts.words(document.id, page)
        words = PageWords.unpack(packed)
        return words, is_complete and words is not None

    def _all_words(self, document: FileDocument, page: int, recognized: PageWords | None) -> PageWords | None:
        """Return the words of the text layer, and those in pictures."""
        layer = self._text_layer(document, page) if document.format == "pdf" else None
        words = join_words(words for words in (layer, recognized) if words is not None)
        return words if words.words else None

    def _text_layer(self, document: FileDocument, page: int) -> PageWords | None:
        self._check(document, page)

        def find_words() -> bytes:
            return json.dumps(self._ask("locate", document, page)).encode()

        try:
            found = json.loads(self._get_or_make(document, f"{page}.words.json", find_words))
        except RenderingFailed:
            return None
        return PageWords.unpack(found["words"])

    def rich_html(self, document: FileDocument) -> RichText:
        """Return the original as rich text: HTML as it is in the file, other formats as Markdown."""
        if document.format == "html":
            return self._html(document)
        text = "\n\n".join(page.markdown for page in self._storage.texts.load(document.id))
        return RichText("markdown", text)

    def _html(self, document: FileDocument) -> RichText:
        from bedstone.ingest.formats.html import decode_page  # noqa: PLC0415 - for HTML only

        text = decode_page(self.path(document).read_bytes())  # one above 20 MB was not read
        begin, end = BODY.search(text), BODY_END.search(text)
        start = text.find(">", begin.end()) + 1 if begin else 0
        return RichText("html", text[start : end.start() if end else None])

    def _measure(self, document: FileDocument) -> Mapping[str, Any]:
        self._check(document, 1)

        def measure() -> bytes:
            return json.dumps(self._ask(MEASURE, document, DOCUMENT)).encode()

        measured: dict[str, Any] = json.loads(self._get_or_make(document, "sizes.json", measure))
        return measured

    def _check(self, document: FileDocument, page: int) -> None:
        if self.kind(document) != "pages":
            raise PageNotFound(f"{document.filename} is not shown page by page.", document_id=document.id)
        if page < 1:
            raise _no_page(document, page)

    def _get_or_make(self, document: FileDocument, name: str, make: Callable[[], bytes]) -> bytes:
        """Return a file of the cache, made if it is missing; a second caller waits for the first."""
        name = f"{_prefix(document)}-{name}"
        data = self._cache.get(document.id, name)
        if data is not None:
            return data
        with self._lock:
            flight = self._flights.get((document.id, name))
            is_first = flight is None
            if flight is None:
                flight = self._flights[document.id, name] = Future()
        if not is_first:
            return flight.result()
        try:
            flight.set_result(self._make(document, name, make))
        except BaseException as error:  # noqa: BLE001 - the other callers get it too
            flight.set_exception(error)
        finally:
            with self._lock:
                del self._flights[document.id, name]
        return flight.result()

    def _make(self, document: FileDocument, name: str, make: Callable[[], bytes]) -> bytes:
        data = make()
        self._cache.put(document.id, name, data)
        if not self._storage.has_folder(document.id):  # removed meanwhile
            self._cache.delete(document.id)
        return data

    def _ask(self, work: str, document: FileDocument, page: int, **options: Any) -> dict[str, Any]:
        """Return the answer of a worker; what fails is remembered, so that a hostile page costs its time once."""
        path = self.path(document)
        self._failures.check(document, work, page)
        request = {"work": work, "path": str(path.resolve()), "format": document.format, "page": page, **options}
        try:
            return self._pool.ask(request)
        except PoolBusyError:
            raise RenderingBusy("Too many pages are being drawn at the moment. Try again.") from None
        except ExtractionError as error:
            if error.reason == "page_missing":
                raise _no_page(document, page) from None
            logger.warning(
                "Cannot draw page %s of %s: %s", page, document.id, error.reason, extra={"action": "not_drawn"}
            )
            message = REASONS.get(error.reason, error.message)
            failure = RenderingFailed(message, error.reason, document_id=document.id, page=page)
            if error.reason not in PASSING:
                self._failures.add(document, work, failure)
            raise failure from None


class _Failures:
    """Pages that could not be drawn lately, and documents that could not be opened."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._known: OrderedDict[tuple[str, str, int], tuple[float, RenderingFailed]] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, document: FileDocument, work: str, failure: RenderingFailed) -> None:
        """Remember a failure for a while."""
        with self._lock:
            self._known[document.id, work, failure.details["page"]] = (self._clock() + FAILURE_SECONDS, failure)
            if len(self._known) > MAX_FAILURES:
                self._known.popitem(last=False)

    def check(self, document: FileDocument, work: str, page: int) -> None:
        """Raise the failure of a page, or of its document, again."""
        with self._lock:
            for key in ((document.id, work, page), (document.id, MEASURE, DOCUMENT)):
                until, failure = self._known.get(key, (0.0, None))
                if failure is not None and until > self._clock():
                    raise RenderingFailed(failure.message, failure.reason, document_id=document.id, page=page)


def _no_page(document: FileDocument, page: int) -> PageNotFound:
    return PageNotFound(f"Page {page:,} of {document.filename} does not exist.", document_id=document.id)


def _prefix(document: FileDocument) -> str:
    """Return what a picture depends on, in addition to page and width: the content, and the version that draws it."""
    return f"{document.digest[:16]}-{RENDERING_VERSION}"
