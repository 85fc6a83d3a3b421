"""Turn text into terms: stemmed words, identifiers and their parts."""

import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import cache, lru_cache

import tantivy

MAX_WORD_CHARACTERS = 120
MIN_PART_CHARACTERS = 3
MAX_PART_CHARACTERS = 24
MAX_QUERY_CHARACTERS = 2_000  # a longer query says nothing more
# Han, kana, Hangul and Thai are written without spaces, or with spaces that do not bound words.
UNSPACED_RANGES = r"\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
UNSPACED = re.compile(rf"[{UNSPACED_RANGES}]+")
# A run of letters, digits and the characters that join identifiers: in code, versions, paths.
IDENTIFIER = re.compile(r"[A-Za-z0-9_$@](?:[A-Za-z0-9_$.:/-]*[A-Za-z0-9_$])?")
# What makes a word an identifier: a joining character inside, or a capital after its first letter.
COMPOUND = re.compile(r".+[._:/-]|_|.*[a-z0-9][A-Z]")
# Combining characters, which Python does not count as part of a word: accents, points, vowel signs.
MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0711\u0730-\u074a"
    "\u07a6-\u07b0\u07eb-\u07f3\u0816-\u082d\u0859-\u085b\u08ca-\u0963\u0966-\u096f\u0971-\u0dff\u0eb1-\u0ecd\u0f18-\u0f39"
    "\u0f71-\u0fc6\u102b-\u1049\u1050-\u109d\u135d-\u135f\u1712-\u1734\u17b4-\u17d3\u180b-\u180f\u1920-\u193b\u1a17-\u1a7f"
    "\u1ab0-\u1ace\u1b00-\u1b73\u1dc0-\u1dff\u20d0-\u20f0\u302a-\u302f\u3099\u309a\ufe00-\ufe0f\ufe20-\ufe2f"
)
WORD = re.compile(rf"[\w{MARKS}]+")
CAMEL_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
# Letters and digits as wide as Han, and kana half as wide.
WIDE = re.compile(r"[\uff01-\uff9f]")
# Signs that are written or left out at will: Arabic vowels and the stroke that stretches a word.
OPTIONAL_SIGNS = "\u0610-\u061a\u0640\u064b-\u065f\u0670"
# The same letter for the same word: alef with and without hamza, Arabic ya, Turkish dotted I, Russian yo.
SAME_LETTERS = str.maketrans(
    "\u0622\u0623\u0625\u0671\u0649\u0130\u0401\u0451", "\u0627\u0627\u0627\u0627\u064ai\u0415\u0435"
)
VARIANT = re.compile(rf"[{OPTIONAL_SIGNS}\u0622\u0623\u0625\u0671\u0649\u0130\u0401\u0451]")
VARIANTS = {
    **SAME_LETTERS,
    **dict.fromkeys([*range(0x610, 0x61B), 0x640, *range(0x64B, 0x660), 0x670]),
}

# Left out of keyword queries that have other words; phrases keep them.
STOP_WORDS = """
    a about an and are as at be been but by can could did do does for from had has have how i if in into is it its me my
    no not of on or our should so such than that the their them then there these they this to us was we were what when
    where which who why will with would you your
"""


@cache
def analyzer() -> tantivy.TextAnalyzer:
    """Return the analyzer: words in lower case without accents and endings."""
    filters = tantivy.Filter
    chain = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    for step in (
        filters.remove_long(MAX_WORD_CHARACTERS),
        filters.lowercase(),
        filters.ascii_fold(),
        filters.stemmer("english"),
    ):
        chain = chain.filter(step)
    return chain.build()


@cache
def stop_terms() -> frozenset[str]:
    """Return the stop words as the analyzer leaves them."""
    return frozenset(term for word in STOP_WORDS.split() for term in analyzer().analyze(word))


def terms(text: str) -> list[str]:
    """Return every word of a text, as the index has it."""
    return analyzer().analyze(text)


def terms_of_word(word: str) -> tuple[str, ...]:
    """Return the terms of a single word from a cache: queries and the texts they match repeat their words."""
    return _terms_of_word(word) if len(word) <= MAX_WORD_CHARACTERS else tuple(terms(word))


@lru_cache(maxsize=16_384)
def _terms_of_word(word: str) -> tuple[str, ...]:
    return tuple(terms(word))


def normalize_query(query: str) -> str:
    """Return a query in the form of indexed text, and not longer than makes sense."""
    return unify_letters(query[:MAX_QUERY_CHARACTERS])


def unify_letters(text: str) -> str:
    """Return a text in which each letter is one character, however it was written."""
    if text.isascii():
        return text
    if WIDE.search(text):
        text = unicodedata.normalize("NFKC", text)
    text = unicodedata.normalize("NFC", text)
    return text.translate(VARIANTS) if VARIANT.search(text) else text


def separate_scripts(text: str) -> str:
    """Return a text with spaces around scripts without spaces, so that `API` is a word inside Chinese."""
    return text if text.isascii() else UNSPACED.sub(r" \g<0> ", text)


def phrase_key(text: str) -> str:
    """Return a whole text as one term: its words in lower case."""
    return " ".join(WORD.findall(text.lower()))


def extract_identifiers(text: str) -> list[str]:
    """Return identifiers such as `getUserById`, `RATE_LIMIT` or `v2.1`, each once."""
    return [
        name
        for name in dict.fromkeys(IDENTIFIER.findall(text))
        if COMPOUND.match(name) and len(name) <= MAX_WORD_CHARACTERS
    ]


def camel_parts(names: Iterable[str]) -> list[str]:
    """Return the words inside identifiers like `getUserById`, which no other character separates."""
    parts = []
    for name in names:
        pieces = CAMEL.findall(name)
        if len(pieces) > 1 and any(piece[0].isupper() for piece in pieces[1:]):
            parts += pieces
    return parts


def split_camel(text: str) -> str:
    """Return a text with spaces inside identifiers like `getUserById`."""
    return CAMEL_BOUNDARY.sub(" ", text)


def split_compound(word: str, is_known: Callable[[str], bool]) -> list[str]:
    """Split a word into the fewest known words that form it; the word itself if there is no way."""
    best: list[list[str] | None] = [[], *[None] * len(word)]
    for end in range(1, len(word) + 1):
        for start in range(max(0, end - MAX_PART_CHARACTERS), end):
            before, part = best[start], word[start:end]
            if before is None or not _can_be_part(part, start) or not is_known(part):
                continue
            if best[end] is None or len(before) + 1 < len(best[end] or ()):
                best[end] = [*before, part]
    return best[-1] or [word]


def _can_be_part(part: str, start: int) -> bool:
    return len(part) >= MIN_PART_CHARACTERS or (start == 0 and len(part) == 1)
