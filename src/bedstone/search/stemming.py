"""Stem text of other languages than English, each with its own rules, and find the language of a text."""

import re
from collections import Counter
from collections.abc import Mapping
from functools import cache, lru_cache
from types import MappingProxyType

import tantivy

from bedstone.search.common_words import AMBIGUOUS, COMMON_WORDS
from bedstone.search.terms import MAX_WORD_CHARACTERS, STOP_WORDS

SAMPLE_CHARACTERS = 600  # of a chunk; enough to see its language
MIN_COMMON_WORDS = 2  # of a language in a chunk; a single one may be a name
MIN_LIKELY_SHARE = 0.02  # of the chunks of an index; a language that is rarer there must show in a query
MIN_SCRIPT_SHARE = 0.3  # of the letters of a sample
ARABIC = re.compile(r"[\u0620-\u064a\u0671-\u06d3]")
CYRILLIC = re.compile(r"[\u0400-\u052f]")
LETTERS = re.compile(r"[^\W\d_]")
ACCENTED = re.compile(r"[\u00df-\u024f]")
WORD = re.compile(r"[^\W\d_]+")
ENGLISH = frozenset(STOP_WORDS.split())

STEMMERS: Mapping[str, str] = MappingProxyType(
    {
        "ar": "arabic",
        "de": "german",
        "es": "spanish",
        "fr": "french",
        "it": "italian",
        "nl": "dutch",
        "pt": "portuguese",
        "ru": "russian",
        "tr": "turkish",
    }
)
# Written as one word: `Kündigungsfrist` is the `Frist` of a `Kündigung`.
COMPOUNDING = frozenset({"de", "nl"})
# Letters between the parts of a compound.
LINKS = ("", "s", "es", "n", "en", "e", "er")

LATIN = tuple(language for language in COMMON_WORDS if language not in {"ar", "ru"})
NOT_TELLING = ENGLISH | frozenset(AMBIGUOUS.split())
TELLING = MappingProxyType({language: COMMON_WORDS[language] - NOT_TELLING for language in LATIN})
ANY_TELLING = frozenset[str]().union(*TELLING.values())


def language_of_text(text: str) -> str | None:
    """Return the language of a chunk whose words are stemmed by rules of their own; None for English and unknown ones.

    Almost every English text passes the first line: this runs for every chunk that is indexed.
    """
    if " the " in text and text.isascii():
        return None
    sample = text[:SAMPLE_CHARACTERS].lower()
    if not sample.isascii() and (script := _language_of_script(sample)):
        return script
    if ANY_TELLING.isdisjoint(sample.split()):
        return None
    found = _vote(sample, 1 if ACCENTED.search(sample) else MIN_COMMON_WORDS)
    return found[0] if found else None


def languages_of_query(text: str, available: Mapping[str, float] | None = None) -> tuple[str, ...]:
    """Return the languages by whose rules a query is stemmed, in addition to English.

    `available` is the share of each language in the index. A query without a common word of any language may be in each
    of them that is not rare. Without `available`, a language must show.
    """
    if available is not None and not available:
        return ()
    lower = text.lower()
    if not lower.isascii() and (script := _language_of_script(lower)):
        return (script,) if available is None or script in available else ()
    found = _vote(lower, 1)
    if available is None:
        return found
    if not found and ENGLISH.isdisjoint(WORD.findall(lower)):
        return tuple(name for name, share in available.items() if name in TELLING and share >= MIN_LIKELY_SHARE)
    return tuple(language for language in found if language in available)


def stems(text: str, language: str) -> list[str]:
    """Return the stems of the words of a text, without accents."""
    return _analyzer(language).analyze(text)


@lru_cache(maxsize=16_384)
def stems_of_word(word: str, language: str) -> tuple[str, ...]:
    """Return the stems of a single word."""
    return tuple(stems(word, language))


@cache
def stop_stems(language: str) -> frozenset[str]:
    """Return the common words of a language as its stemmer leaves them."""
    return frozenset(stem for word in COMMON_WORDS[language] for stem in stems(word, language))


@cache
def _analyzer(language: str) -> tantivy.TextAnalyzer:
    filters = tantivy.Filter
    chain = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    # The rules of a stemmer know the accents of its language: they go afterwards.
    for step in (
        filters.remove_long(MAX_WORD_CHARACTERS),
        filters.lowercase(),
        filters.stemmer(STEMMERS[language]),
        filters.ascii_fold(),
    ):
        chain = chain.filter(step)
    return chain.build()


def _language_of_script(text: str) -> str | None:
    letters = len(LETTERS.findall(text))
    for language, script in (("ru", CYRILLIC), ("ar", ARABIC)):
        if letters and len(script.findall(text)) >= MIN_SCRIPT_SHARE * letters:
            return language
    return None


def _vote(text: str, least: int) -> tuple[str, ...]:
    """Return the languages with the most common words in a text, if there are more of them than English ones."""
    words = Counter(WORD.findall(text))
    if ANY_TELLING.isdisjoint(words):
        return ()
    counts = {language: sum(words[word] for word in words.keys() & TELLING[language]) for language in LATIN}
    most = max(counts.values())
    english = sum(words[word] for word in words.keys() & ENGLISH)
    own = {language: sum(words[word] for word in words.keys() & COMMON_WORDS[language]) for language in LATIN}
    best = [language for language in LATIN if counts[language] == most]
    top = max(own[language] for language in best)
    if top < least or english >= top:
        return ()
    return tuple(language for language in best if own[language] == top)
