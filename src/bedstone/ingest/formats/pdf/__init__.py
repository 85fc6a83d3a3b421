"""PDF: lines from pdfium, structure from their position, OCR for pages that are pictures."""

import re

from bedstone.ingest.format import Format

FORMAT = Format(
    name="pdf",
    reader="bedstone.ingest.formats.pdf.reader:read",
    suffixes=(".pdf",),
    media_type="application/pdf",
    magic=(b"%PDF-",),
    signature=re.compile(b"%PDF-"),
    is_resumable=True,
    uses_ocr=True,
    in_contract=True,
)
