"""Compare numbers as they are written: the same digits, unless separators make them different."""

import re

# Separators of thousands that are never a decimal separator.
GROUPING = "'\u2019\u00a0\u2007\u2008\u2009\u200a\u202f"
DECIMAL = ".,"
NUMBER = re.compile(rf"\d+(?:[{DECIMAL}{GROUPING}]\d+)*")
SEPARATOR = re.compile(r"\D")
GROUP_DIGITS = 3


def same_number(first: str, second: str) -> bool:
    """Return whether two numbers are the same beyond doubt; 1,000 may be one or a thousand."""
    value = _value(first)
    return value is not None and value == _value(second)


def _value(number: str) -> tuple[str, str] | None:
    """Return the digits before and behind the decimal separator, or None if it is not clear which one that is."""
    if not NUMBER.fullmatch(number):
        return None
    signs = ["'" if sign in GROUPING else sign for sign in SEPARATOR.findall(number)]
    parts = SEPARATOR.split(number)
    if _has_decimals(signs, parts):
        signs, whole, decimals = signs[:-1], parts[:-1], parts[-1]
    else:
        whole, decimals = parts, ""
    is_clear = len(set(signs)) <= 1 and (not signs or _is_grouped(whole)) and not _is_ambiguous(signs, decimals)
    return ("".join(whole), decimals) if is_clear else None


def _has_decimals(signs: list[str], parts: list[str]) -> bool:
    """Return whether the last separator is a decimal one: it occurs once, and what follows cannot be a group."""
    if not signs or signs[-1] not in DECIMAL or signs.count(signs[-1]) > 1:
        return False
    is_group = len(parts[-1]) == GROUP_DIGITS and len(parts[0]) <= GROUP_DIGITS and parts[0] != "0"
    return len(signs) > 1 or not is_group


def _is_ambiguous(signs: list[str], decimals: str) -> bool:
    """Return whether the only separator may be one of thousands or a decimal one."""
    return len(signs) == 1 and signs[0] in DECIMAL and not decimals


def _is_grouped(parts: list[str]) -> bool:
    return len(parts[0]) <= GROUP_DIGITS and all(len(part) == GROUP_DIGITS for part in parts[1:])
