"""Record ids: 15 case-sensitive characters, or 18 with a checksum that encodes the case."""

import re

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
CHECKS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ012345"
SHAPE = re.compile(r"[A-Za-z0-9]{15}(?:[A-Za-z0-9]{3})?")


def checksum(short: str) -> str:
    """Return the three characters that extend an id from 15 to 18."""
    return "".join(
        CHECKS[sum(1 << place for place, sign in enumerate(short[start : start + 5]) if "A" <= sign <= "Z")]
        for start in (0, 5, 10)
    )


def long_id(text: str) -> str | None:
    """Return an id with 18 characters, or None if it is invalid; restores the case of 18 given characters."""
    if not SHAPE.fullmatch(text):
        return None
    if len(text) == 15:  # noqa: PLR2004
        return text + checksum(text)
    short = _restore_case(text)
    return short + checksum(short) if short is not None else None


def make_id(prefix: str, number: int) -> str:
    """Return the id of a record: the prefix of its object, then a number in base 62."""
    digits = ""
    while number:
        number, rest = divmod(number, 62)
        digits = ALPHABET[rest] + digits
    short = prefix + digits.rjust(12, "0")
    return short + checksum(short)


def _restore_case(text: str) -> str | None:
    """Return the first 15 characters with the case that the checksum encodes."""
    restored = ""
    for block, check in enumerate(text[15:].upper()):
        if check not in CHECKS:
            return None
        bits = CHECKS.index(check)
        for place in range(5):
            sign = text[block * 5 + place]
            restored += sign.upper() if bits >> place & 1 else sign.lower()
            if sign.isdigit() and bits >> place & 1:
                return None
    return restored
