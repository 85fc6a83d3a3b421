"""Lists that take several pages."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlencode

from starlette.requests import Request

Item = TypeVar("Item")
MAX_DIGITS = 9


@dataclass(frozen=True)
class Pager:
    """The page of a list that an address asks for, and the address of the others."""

    number: int
    total: int
    size: int
    address: str  # the number of the page is appended

    @classmethod
    def of(cls, request: Request, total: int, size: int, default: int = 1, parameter: str = "page") -> "Pager":
        """Read the page number from an address and keep its other parameters."""
        number = parse_page_number(request.query_params.get(parameter, str(default)))
        rest = [(key, value) for key, value in request.query_params.multi_items() if key != parameter and value]
        return cls(number, total, size, f"?{urlencode([*rest, (parameter, '')])}")

    @property
    def last(self) -> int:
        """Return the number of the last page."""
        return max(1, -(-self.total // self.size))

    def cut(self, items: Sequence[Item]) -> Sequence[Item]:
        """Return the items of this page."""
        return items[(self.number - 1) * self.size : self.number * self.size]


def parse_page_number(text: str, minimum: int = 1) -> int:
    """Parse a number in an address; return the minimum for anything else."""
    is_number = text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS
    return max(minimum, int(text)) if is_number else minimum
