"""The texts of documents, page by page, and what OCR knows of them."""

import json
import logging
import os
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from bedstone.ingest.extraction import Page
from bedstone.services.knowledge.errors import TextMissing
from bedstone.services.knowledge.ocr_record import (
    OCR,
    PageQuality,
    add_record,
    format_record,
    read_confidence,
    read_quality,
    read_words,
)
from bedstone.store.blobs import Blobs

logger = logging.getLogger(__name__)

TEXT = "text.json.z"
PROBE_BYTES = 2**16
NO_RECORD = Path(os.devnull)


class Texts:
    """Two files in the folder of each document."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs

    def save(self, folder: str, pages: Sequence[Page]) -> None:
        """Store the text of a document, page by page, and what OCR knows of it."""
        data = json.dumps([(page.number, page.markdown) for page in pages], ensure_ascii=False)
        if (record := format_record(pages)) is not None:
            self._blobs.write(f"{folder}/{OCR}", record, durable=False)
        else:  # an earlier reading may have had one
            self._blobs.delete(f"{folder}/{OCR}")
        self._blobs.write(f"{folder}/{TEXT}", zlib.compress(data.encode(errors="replace")), durable=False)

    def load(self, document_id: str) -> list[Page]:
        """Return the text of a document, page by page; without the places of words."""
        try:
            data = self._blobs.read(f"{document_id}/{TEXT}")
            pages = [Page(text, number) for number, text in json.loads(zlib.decompress(data))]
            return list(add_record(self._record(document_id), pages))
        except (OSError, zlib.error, ValueError, TypeError) as error:
            logger.error("Cannot read the text of %s: %s", document_id, error, extra={"action": "text_missing"})  # noqa: TRY400 - the reason is enough
            raise TextMissing(
                f"The stored text of document {document_id} is missing or damaged. Read the document again with: "
                "bedstone knowledge rebuild",
                document_id=document_id,
            ) from error

    def confidence(self, document_id: str) -> Mapping[int, float]:
        """Return how confident OCR is of each page that it read, from 0 to 1."""
        return read_confidence(self._record(document_id))

    def quality(self, document_id: str) -> Mapping[int, PageQuality]:
        """Return how well OCR read each page that it read."""
        return read_quality(self._record(document_id))

    def words(self, document_id: str, page: int) -> tuple[str, bool]:
        """Return the words that OCR found on a page, packed, and whether it read the page as a whole."""
        return read_words(self._record(document_id), page)

    def find_error(self, document_id: str) -> str | None:
        """Read the beginning of a document's text; return why that fails, or None."""
        try:
            data = self._blobs.read(f"{document_id}/{TEXT}", size=PROBE_BYTES)
            is_text = bool(zlib.decompressobj().decompress(data, PROBE_BYTES))
        except OSError as error:
            return str(error.strerror)
        except zlib.error as error:
            return str(error)
        return None if is_text else "it is empty"

    def _record(self, document_id: str) -> Path:
        try:
            return self._blobs.local(f"{document_id}/{OCR}")
        except OSError:
            return NO_RECORD
