"""Cut scripts that are written without spaces into terms: single characters, pairs, and triples for Thai."""

import re
from collections.abc import Iterator
from itertools import chain

from bedstone.search.common_words import QUESTION_WORDS
from bedstone.search.terms import UNSPACED

# A Hangul character is a syllable, and may be a whole word too.
WHOLE_WORDS = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af]")
THAI = re.compile(r"[\u0e00-\u0e7f]+")
THAI_SPAN = 3  # characters of a term: a Thai character is one letter or accent
ASKING = re.compile("|".join(sorted(QUESTION_WORDS.split(), key=len, reverse=True)))  # the longest first
# Pairs of Japanese letters that only join words or end them, and pairs across a particle.
FUNCTION_GRAM = re.compile(
    r"[\u3040-\u309f]{2}|[はがをにでとのもへや][^\u3040-\u309f]|[^\u3040-\u309f][はがをにでとのもへや]"
)
# What Korean words end with, from the third syllable on.
KOREAN_ENDING = re.compile(
    r"(?<=[\uac00-\ud7af]{2})(?:에서|으로|까지|부터|에게|은|는|이|가|을|를|의|에|로|와|과|도|만)$"
)


def grams(text: str) -> Iterator[str]:
    """Yield the terms of all text without spaces, as the index has them."""
    for run in () if text.isascii() else UNSPACED.findall(text):
        if THAI.match(run):
            yield from _spans(run, THAI_SPAN)
        else:
            yield from pairs_of_run(run)
            if len(run) > 1:
                yield from WHOLE_WORDS.findall(run)


def query_runs(text: str) -> list[str]:
    """Return the stretches of a query that say what it asks for, or all of it if it only asks."""
    runs = [] if text.isascii() else UNSPACED.findall(text)
    parts = (part for run in runs for part in ASKING.sub(" ", run).split())
    telling = [KOREAN_ENDING.sub("", part) for part in parts]
    return telling or runs


def query_grams(text: str) -> list[str]:
    """Return the terms of a query that must stand together to count: pairs of characters, triples for Thai."""
    found = (_spans(run, THAI_SPAN) if THAI.match(run) else pairs_of_run(run) for run in query_runs(text))
    every = list(dict.fromkeys(chain.from_iterable(found)))
    return [gram for gram in every if not FUNCTION_GRAM.fullmatch(gram)] or every


def query_characters(text: str) -> list[str]:
    """Return the characters of a query that may be words of their own."""
    return list(dict.fromkeys(chain.from_iterable(WHOLE_WORDS.findall(run) for run in query_runs(text))))


def pairs_of_run(run: str) -> Iterator[str]:
    """Yield the pairs of neighbouring characters."""
    return _spans(run, 2)


def _spans(run: str, size: int) -> Iterator[str]:
    if len(run) <= size:
        yield run
    else:
        yield from (run[start : start + size] for start in range(len(run) - size + 1))
