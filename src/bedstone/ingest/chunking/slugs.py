"""Turn headings into parts of chunk ids, exactly as existing corpora have them."""

import re

NOT_ASCII_SLUG = re.compile(r"[^a-z0-9 -]+")


def slug(heading: str) -> str:
    """Return a heading in ASCII; one in another script keeps its letters and digits."""
    text = heading.lower()
    ascii_slug = _join(NOT_ASCII_SLUG.sub("", text))
    if ascii_slug:
        return ascii_slug
    letters = "".join(character if character.isalnum() else " " for character in text)
    return _join(letters) or "section"


def _join(text: str) -> str:
    return re.sub(r"-+", "-", text.replace(" ", "-")).strip("-")
