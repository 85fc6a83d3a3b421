"""Headings as parts of chunk ids, exactly as existing corpora have them."""

import re

FOREIGN = re.compile(r"[^a-z0-9 -]+")


def slug(heading: str) -> str:
    """A heading in ASCII; one in another script keeps its letters and digits."""
    text = heading.lower()
    ascii_slug = _join(FOREIGN.sub("", text))
    if ascii_slug:
        return ascii_slug
    letters = "".join(character if character.isalnum() else " " for character in text)
    return _join(letters) or "section"


def _join(text: str) -> str:
    return re.sub(r"-+", "-", text.replace(" ", "-")).strip("-")
