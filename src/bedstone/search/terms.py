"""Turn text into terms: stemmed words, identifiers and their parts, bigrams for scripts without spaces."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache

import tantivy

MAX_WORD_CHARACTERS = 120
MIN_PART_CHARACTERS = 3
MAX_PART_CHARACTERS = 24
MAX_QUERY_CHARACTERS = 2_000  # a longer query says nothing more
# Han, kana, Hangul and Thai are written without spaces, or with spaces that do not bound words.
UNSPACED = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+")
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
    return to_nfc(query[:MAX_QUERY_CHARACTERS])


def to_nfc(text: str) -> str:
    """Return a text with each letter and its accents as one character."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


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


def bigrams(text: str) -> Iterator[str]:
    """Yield pairs of neighbouring characters of scripts without spaces."""
    for run in () if text.isascii() else UNSPACED.findall(text):
        if len(run) == 1:
            yield run
        else:
            yield from (run[index : index + 2] for index in range(len(run) - 1))
