"""Judge how well OCR read a page: how sure the engine was, and how many of the words look like words."""

import re
from collections.abc import Iterable, Sequence

from bedstone.ingest.extraction import Page
from bedstone.ingest.left_out import shorten

LOW_CONFIDENCE = 0.7  # a page below it is named in a warning
RETRY_CONFIDENCE = 0.75  # a page below it is read a second time, in another way
LOW_WORD_SHARE = 0.5
MIN_TOKENS = 10  # in fewer words the share says nothing
MIN_LETTERS = 3  # of a word that is judged
MAX_LISTED = 20
EDGES = "()[]{}<>«»„“”\u2018\u2019\"'.,:;!?…*-\u2013\u2014_/|"
NUMBER = re.compile(r"[^\W\d_]{0,3}[-+$€£#]?\d[\d.,:/%°()x-]*[^\W\d_]{0,3}")
VOWELS = frozenset("aeiouyàáâãäåæèéêëìíîïòóôõöøœùúûüýÿ")
ASCII_LIMIT = "\u0250"  # the first character behind the Latin letters
CONSONANTS = re.compile(r"[bcdfghjklmnpqrstvwxz]{6}")
THREE_SAME = re.compile(r"(.)\1\1")


def word_share(text: str) -> float | None:
    """Return the share of words that look like words or numbers; None for too few to say.

    Without a dictionary: a word has a vowel, no digits between its letters and no capitals behind small ones.
    """
    tokens = [token for raw in text.split() if len(token := raw.strip(EDGES)) >= MIN_LETTERS or token.isdigit()]
    dust = sum(1 for raw in text.split() if not any(char.isalnum() for char in raw))
    if len(tokens) < MIN_TOKENS:
        return None
    return round(sum(map(_looks_right, tokens)) / (len(tokens) + dust), 3)


def _looks_right(token: str) -> bool:
    if NUMBER.fullmatch(token):
        return True
    parts = re.split("[-\u2013'\u2019./@_&]", token)
    return all(_is_wordlike(part) for part in parts if part)


def _is_wordlike(part: str) -> bool:
    if not part.isalpha():
        return NUMBER.fullmatch(part) is not None
    if any(char >= ASCII_LIMIT for char in part):
        return True
    if part.isupper():
        return not THREE_SAME.search(part.lower())
    lower = part.lower()
    if part[1:] != lower[1:]:
        return False
    return not VOWELS.isdisjoint(lower) and not CONSONANTS.search(lower) and not THREE_SAME.search(lower)


def is_poor(confidence: float, text: str, limit: float = LOW_CONFIDENCE) -> bool:
    """Return whether a page was read badly; one without text was."""
    share = word_share(text)
    return confidence < limit or (share is not None and share < LOW_WORD_SHARE)


def rate(text: str, confidence: float) -> float:
    """Return a measure to compare two readings of one picture: the letters, as far as they can be trusted."""
    letters = sum(len(token) for token in text.split() if _looks_right(token.strip(EDGES) or "?"))
    return letters * confidence**2


def warn_poor_pages(pages: Iterable[Page]) -> list[str]:
    """Return a warning that names the pages which OCR read badly, or nothing."""
    poor = [page for page in pages if page.method == "ocr" and _is_poor_page(page)]
    if not poor:
        return []
    advice = "Compare with the original before you quote, or add a better scan."
    if poor[0].number is None:
        return [f"OCR read this picture poorly ({describe(poor[0])}). {advice}"]
    listed = ", ".join(f"{page.number} ({describe(page)})" for page in poor[:MAX_LISTED])
    more = f" and {len(poor) - MAX_LISTED} more" if len(poor) > MAX_LISTED else ""
    return [f"OCR read {len(poor)} of its pages poorly: {listed}{more}. {advice}"]


def _is_poor_page(page: Page) -> bool:
    has_text = bool(page.markdown.strip())  # most pictures without text have none to find
    return (has_text or page.number is not None) and is_poor(page.confidence or 0.0, page.markdown)


def describe(page: Page) -> str:
    """Return how well OCR read a page, in a few words."""
    if not page.markdown.strip():
        return "no text"
    share = "" if page.word_share is None else f", {page.word_share:.0%} of the words look like words"
    return f"{page.confidence or 0.0:.0%} sure{share}"


def join_steps(steps: Sequence[str]) -> str:
    """Return what was done to a picture as one short text."""
    return shorten(", ".join(steps), 200)
