"""Bytes to text: by byte-order mark, as UTF-8, and then by what reads best."""

import codecs
import unicodedata

from bedstone.ingest.extraction import Notes, Unreadable

MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
OTHERS = ("cp932", "gb18030", "cp1252")
SAMPLE = 4096
MANY = 0.2  # of the bytes


def decoded(data: bytes, notes: Notes) -> str:
    """A text file's text; a guess is noted."""
    for mark, encoding in MARKS:
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return _guessed(data, notes)
    if "\0" in text[:SAMPLE]:
        return _guessed(data, notes)
    return text


def _guessed(data: bytes, notes: Notes) -> str:
    sample = data[:SAMPLE]
    zeros = [sample[offset::2].count(0) / max(len(sample), 1) for offset in (0, 1)]
    if max(zeros) > MANY:
        return data.decode("utf-16-be" if zeros[0] > zeros[1] else "utf-16-le", errors="replace")
    if b"\0" in sample:
        raise Unreadable("damaged", "The file is not a text, but binary data.")
    found = []
    for encoding in OTHERS:
        try:
            found.append((data.decode(encoding), encoding))
        except UnicodeDecodeError:
            continue
    if not found:
        return data.decode("cp1252", errors="replace")
    text, encoding = max(found, key=lambda item: _plausibility(item[0][:SAMPLE]))
    notes.warn(f"The file is not in UTF-8; it was read as {encoding}")
    return text


def _plausibility(text: str) -> float:
    """The share of characters that stand in texts: letters, digits, white space and common punctuation."""
    good = sum(char.isalnum() or char.isspace() or char in ",.;:!?\"'()-/" for char in text)
    odd = sum(unicodedata.category(char) in ("Co", "Cn", "Cc") and not char.isspace() for char in text)
    # Half-width kana and rare ideographs come out when Latin text is read as Japanese or Chinese.
    rare = sum("\uff61" <= char <= "\uff9f" or "\ue000" <= char <= "\uf8ff" for char in text)
    return (good - 3 * odd - 2 * rare) / max(len(text), 1)
