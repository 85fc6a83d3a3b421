"""What a search for a quotation finds."""

from dataclasses import dataclass
from typing import Literal

MAX_TEXT = 1_000  # characters of the stretch that is shown
Kind = Literal["exact", "normalised", "nearest", "absent"]


@dataclass(frozen=True)
class Difference:
    """Words that differ, as the quotation and as the source has them; one of them may be empty."""

    quote: str
    source: str


@dataclass(frozen=True)
class QuoteMatch:
    """Where a text has a quotation, or what comes nearest to it.

    `start` and `end` are its range in the text, of which `text` is the beginning. `distance` is the share of words that
    differ: 0 for the same, 1 for nothing in common.
    """

    kind: Kind
    start: int = 0
    end: int = 0
    text: str = ""
    distance: float = 0.0
    differences: tuple[Difference, ...] = ()

    @property
    def is_confirmed(self) -> bool:
        """Return whether the text has the quotation."""
        return self.kind in ("exact", "normalised")


ABSENT = QuoteMatch("absent", distance=1.0)
