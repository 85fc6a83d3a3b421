"""Decode text: by byte-order mark, as UTF-8, or with the most plausible encoding."""

import codecs
import re
import unicodedata
from contextlib import suppress

from bedstone.ingest.extraction import ExtractionError, Notes

MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# For each encoding of East Asia, the character set that has its common characters, and their first bytes.
COMMON = {
    "cp932": ("shift_jis", range(0x82, 0x98)),
    "gb18030": ("gb2312", range(0xB0, 0xD8)),
    "cp949": ("euc_kr", range(0xB0, 0xC9)),
    "big5": ("big5", range(0xA4, 0xC7)),
}
SINGLE_BYTE = ("cp1252", "cp1251", "cp1250", "cp1253", "cp1254", "cp1255", "cp1256")
# A byte above ASCII beside a letter, as in European words; characters of East Asia take two.
LATIN = re.compile(rb"[A-Za-z][\x80-\xff](?![\x80-\xff])|(?<![\x80-\xff])[\x80-\xff][A-Za-z]")
WORD = re.compile(r"\w+")
# Signs that are common in any text: dashes, quotation marks, currency.
SIGNS = "\u2013\u2014\u201c\u201d\u2018\u2019\u201e\u20ac\u00b0\u00a7\u00ab\u00bb\u2026\u2116\u00a9\u00ae"
MAX_DISTANCE = 0.35  # from the most plausible encoding
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
    encoding = _find_encoding(data)
    notes.warn(f"Not UTF-8; decoded as {encoding}")
    return data.decode(encoding, errors="replace")


def _find_encoding(data: bytes) -> str:
    """Return the legacy encoding that a text is most likely in."""
    texts = {}
    for encoding in (*SINGLE_BYTE, *COMMON):
        with suppress(UnicodeDecodeError):
            texts[encoding] = data.decode(encoding)[:SAMPLE]
    scores = {encoding: _plausibility(text, encoding) for encoding, text in texts.items()}
    likely = [encoding for encoding, score in scores.items() if score >= max(scores.values()) - MAX_DISTANCE]
    if not likely or (LATIN.search(data) and "cp1252" in likely):
        return "cp1252"
    from charset_normalizer import from_bytes  # noqa: PLC0415 - most files are UTF-8

    best = from_bytes(data[:SAMPLE], cp_isolation=likely, enable_fallback=False).best()
    return best.encoding if best is not None else likely[0]


def _plausibility(text: str, encoding: str) -> float:
    """Score how common the characters above ASCII are, from -1 to 1; words in two scripts cost extra."""
    foreign = [char for char in text if not char.isascii()]
    common = sum(_commonness(char, encoding) for char in foreign) / max(len(foreign), 1)
    words = WORD.findall(text)
    mixed = sum(len({_script(char) for char in word if char.isalpha()}) > 1 for word in words)
    return common - 2 * mixed / max(len(words), 1)


def _commonness(char: str, encoding: str) -> float:
    if encoding not in COMMON:
        return 1.0 if char.isalpha() else 0.3 if char in SIGNS else -1.0
    if unicodedata.east_asian_width(char) == "F" or "\u3000" <= char <= "\u303f":  # punctuation, full-width letters
        return 0.8
    name, first_bytes = COMMON[encoding]
    try:
        encoded = char.encode(name)
    except UnicodeEncodeError:
        return -1.0
    return 1.0 if encoded[0] in first_bytes else -1.0


def _script(char: str) -> str:
    """Return the script of a letter; Chinese and Japanese ones mix in a word."""
    name = unicodedata.name(char, "?").partition(" ")[0]
    return "CJK" if name in ("CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA") else name
