"""Record ids: 15 characters that tell case apart, or 18 with a checksum that says which letters are capitals."""

import re

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
CHECKS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ012345"
SHAPE = re.compile(r"[A-Za-z0-9]{15}(?:[A-Za-z0-9]{3})?")


def checksum(short: str) -> str:
    """The three characters that make 18 of 15."""
    return "".join(
        CHECKS[sum(1 << place for place, sign in enumerate(short[start : start + 5]) if "A" <= sign <= "Z")]
        for start in (0, 5, 10)
    )


def long_id(text: str) -> str | None:
    """An id in its 18 characters; None if it cannot be one. Of 18 given, letters may have lost their case."""
    if not SHAPE.fullmatch(text):
        return None
    if len(text) == 15:  # noqa: PLR2004
        return text + checksum(text)
    short = _cased(text)
    return short + checksum(short) if short is not None else None


def make_id(prefix: str, number: int) -> str:
    """The id of a record: its object's prefix, then a number in base 62."""
    digits = ""
    while number:
        number, rest = divmod(number, 62)
        digits = ALPHABET[rest] + digits
    short = prefix + digits.rjust(12, "0")
    return short + checksum(short)


def _cased(text: str) -> str | None:
    """The first 15 characters with the case their checksum tells."""
    made = ""
    for block, check in enumerate(text[15:].upper()):
        if check not in CHECKS:
            return None
        bits = CHECKS.index(check)
        for place in range(5):
            sign = text[block * 5 + place]
            made += sign.upper() if bits >> place & 1 else sign.lower()
            if sign.isdigit() and bits >> place & 1:
                return None
    return made
