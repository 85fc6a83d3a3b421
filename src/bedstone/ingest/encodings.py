"""Decode text: by byte-order mark, as UTF-8, or with the most plausible encoding."""

import codecs
import unicodedata

from bedstone.ingest.extraction import ExtractionError, Notes

MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
LEGACY_ENCODINGS = ("cp932", "gb18030", "cp1252")
SAMPLE = 4096
MIN_ZERO_SHARE = 0.2  # of the bytes, in UTF-16


def decode(data: bytes, notes: Notes) -> str:
    """Decode the content of a text file; a guess is noted."""
    for mark, encoding in MARKS:
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return _guess(data, notes)
    if "\0" in text[:SAMPLE]:
        return _guess(data, notes)
    return text


def _guess(data: bytes, notes: Notes) -> str:
    sample = data[:SAMPLE]
    zeros = [sample[offset::2].count(0) / max(len(sample), 1) for offset in (0, 1)]
    if max(zeros) > MIN_ZERO_SHARE:
        return data.decode("utf-16-be" if zeros[0] > zeros[1] else "utf-16-le", errors="replace")
    if b"\0" in sample:
        raise ExtractionError("damaged", "Not a text file: it holds binary data.")
    found = []
    for encoding in LEGACY_ENCODINGS:
        try:
            found.append((data.decode(encoding), encoding))
        except UnicodeDecodeError:
            continue
    if not found:
        return data.decode("cp1252", errors="replace")
    text, encoding = max(found, key=lambda item: _plausibility(item[0][:SAMPLE]))
    notes.warn(f"Not UTF-8; decoded as {encoding}")
    return text


def _plausibility(text: str) -> float:
    """Score how many characters are letters, digits, white space or common punctuation."""
    good = sum(char.isalnum() or char.isspace() or char in ",.;:!?\"'()-/" for char in text)
    odd = sum(unicodedata.category(char) in ("Co", "Cn", "Cc") and not char.isspace() for char in text)
    # Latin text decoded as Japanese or Chinese yields half-width kana and rare ideographs.
    rare = sum("\uff61" <= char <= "\uff9f" or "\ue000" <= char <= "\uf8ff" for char in text)
    return (good - 3 * odd - 2 * rare) / max(len(text), 1)
