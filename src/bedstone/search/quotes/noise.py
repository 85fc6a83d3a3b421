"""Judge whether a word of a scan is a word of the quotation, misread, and nothing else."""

import re
import unicodedata

from bedstone.search.quotes.words import (
    CONFUSABLE,
    CRITICAL,
    EXCEPTIONS,
    FUNCTION_WORDS,
    NEGATIONS,
    TURNING_ENDINGS,
    TURNING_PREFIXES,
    TURNING_WORDS,
)

# Letters of a word at least: with a sign or capital inside, with a sign at the end, with "rn" for "m", with another
# misread letter, that lost a letter.
MIN_LOOKALIKE_LETTERS = 4
MIN_LOOKALIKE_ENDING_LETTERS = 7
MIN_RN_LETTERS = 4
MIN_LETTERS = 6
MIN_LETTERS_LOST = 9
# Signs and capitals that are read for a small letter.
LOOKALIKES = str.maketrans("1|I!0O5$", "llllooss")
FIRST_LOOKALIKES = frozenset("lI1|")
INNER_CAPITAL = re.compile(r"[a-z][A-Z]|[A-Z][a-z]+[A-Z]")
# Two letters that look like one, and letters that look like each other.
MERGED = (("rn", "m"), ("cl", "d"), ("vv", "w"), ("li", "h"), ("ii", "u"))
SIMILAR = frozenset(map(frozenset, ("ce", "il", "un", "ij", "gq", "vy")))
# Endings that tell one word from another: providers and provides, religions and religious, economics and economies.
PERSONS = re.compile(r"er?s\Z")
SIMILAR_ENDINGS = re.compile(r"(?:io[nu]|i[ce])s\Z")


def is_misread(source: str, quote: str) -> bool:
    """Return whether the source has the word of the quotation with the damage of a scan, and no other word."""
    source, quote = (unicodedata.normalize("NFKC", "".join(word.split())) for word in (source, quote))
    if not quote.isalpha() or quote.lower() in NEGATIONS | EXCEPTIONS or source.lower() in CRITICAL | CONFUSABLE:
        return False
    if is_no_word(source, quote):
        return True
    is_common = quote.islower() and source.isalpha() and source.islower() and len(quote) >= MIN_LETTERS
    return is_common and (_is_merged(source, quote) or _is_one_letter_off(source, quote))


def is_no_word(source: str, quote: str) -> bool:
    """Return whether a misread word has signs or letters that words do not have: `c1ean`, `lnstall`, `tirne`."""
    return _is_lookalike(source, quote) or _has_rn_for_m(source, quote)


def is_split(left: str, right: str) -> bool:
    """Return whether two words may be one with a space too many, or have lost the space between them."""
    left, right = left.lower(), right.lower()
    if left + right == "cannot":
        return True
    is_turned = left in TURNING_PREFIXES or right in TURNING_ENDINGS or left + right in CRITICAL
    if is_turned or not (left + right).isalpha():
        return False
    return left not in TURNING_WORDS | CRITICAL or (right in FUNCTION_WORDS and len(right) > 1)


def _is_lookalike(source: str, quote: str) -> bool:
    """Return whether the words differ only in signs and capitals that a reader takes for the letter."""
    letters = sum(character.isalpha() for character in source)
    if not quote[1:].islower() or letters < max(len(source) - 2, MIN_LOOKALIKE_LETTERS - 1):
        return False
    if len(quote) < (MIN_LOOKALIKE_LETTERS if source[-1].isalpha() else MIN_LOOKALIKE_ENDING_LETTERS):  # mode1
        return False
    if source.translate(LOOKALIKES).lower() != quote.translate(LOOKALIKES).lower():
        return False
    is_inside = source[1:].lower() != quote[1:].lower() or INNER_CAPITAL.search(source)
    return bool(is_inside) or source[0] in FIRST_LOOKALIKES


def _has_rn_for_m(source: str, quote: str) -> bool:
    """Return whether a scan has "rn" for each "m" that it misread; hardly a word becomes another one by that."""
    return len(source) > len(quote) >= MIN_RN_LETTERS and quote.islower() and source.replace("rn", "m") == quote


def _is_merged(source: str, quote: str) -> bool:
    """Return whether two letters inside the word became one that looks like them, or the other way round."""
    shorter, longer = sorted((source, quote), key=len)
    return any(
        longer.startswith(several, index) and longer[:index] + one + longer[index + 2 :] == shorter
        for several, one in MERGED
        for index in range(1, len(longer))
    )


def _is_one_letter_off(source: str, quote: str) -> bool:
    if source[-4:] != quote[-4:] and SIMILAR_ENDINGS.search(source) and SIMILAR_ENDINGS.search(quote):
        return False
    if len(source) != len(quote):
        return quote not in CRITICAL and _has_lost_a_letter(*sorted((source, quote), key=len))
    pairs = [frozenset(pair) for pair in zip(source, quote, strict=True) if pair[0] != pair[1]]
    return len(pairs) == 1 and pairs[0] in SIMILAR and source[0] == quote[0]


def _has_lost_a_letter(shorter: str, longer: str) -> bool:
    """Return whether a word has one letter less inside, or a doubled letter once."""
    if len(longer) != len(shorter) + 1 or PERSONS.search(longer):
        return False
    place = next((index for index, letter in enumerate(shorter) if letter != longer[index]), len(shorter))
    is_inside = 0 < place < len(shorter) and shorter[place:] == longer[place + 1 :]
    if not is_inside or longer[0] == longer[1]:
        return False
    is_double = longer[place] in (longer[place - 1], longer[place + 1])
    return len(longer) > (MIN_LETTERS if is_double else MIN_LETTERS_LOST - 1)
