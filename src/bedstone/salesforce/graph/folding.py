"""Fold text of any script for comparison: case, width and accents do not matter, letters do."""

import re
import unicodedata

# Marks that belong to the letter before them; `\w` has letters and digits of every script, and no marks.
MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0900-\u0dff"
    "\u0e00-\u0eff\u0f71-\u0fbc\u102b-\u103e\u17b4-\u17d3\u200c\u200d\u3099\u309a"
)
WORD_SIGNS = rf"\w{MARKS}"
# Letters whose variants people do not tell apart when they type; in other scripts a mark makes another letter.
ACCENTED = re.compile("(?<=[A-Za-z\u0370-\u03ff])[\u0300-\u036f]+")
OPTIONAL_SIGNS = re.compile("[\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u200c\u200d]")
LETTERS = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "\u0131": "i", "\u0451": "\u0435"}
)


def fold(text: str) -> str:
    """Return a text in lower case, with Latin accents, Arabic and Hebrew vowel signs and full-width forms folded."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", text).casefold()
    return unicodedata.normalize("NFC", OPTIONAL_SIGNS.sub("", ACCENTED.sub("", plain))).translate(LETTERS)
