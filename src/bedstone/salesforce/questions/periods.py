"""Days and stretches of days as people write them: `January 1 2024`, `March 2024`, `Q1 2024`, `last 30 days`."""

import calendar
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from bedstone.salesforce.graph.model import Field
from bedstone.salesforce.questions.values import date_literal, day_boundary, is_day

MONTHS = {name.lower(): number for number, name in enumerate(calendar.month_name) if name}
MONTHS |= {name[:3]: number for name, number in MONTHS.items()} | {"sept": 9}
QUARTERS = {"first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4, "last": 4}
MONTH = rf"(?P<month>{'|'.join(sorted(MONTHS, key=len, reverse=True))})"
DAY = r"(?P<day>\d{1,2})(?:st|[nr]d|th)?"
YEAR = r"(?P<year>(?:19|20)\d\d)"
DAYS = (
    re.compile(rf"(?:on )?(?:the )?{MONTH} {DAY},? {YEAR}"),
    re.compile(rf"(?:on )?(?:the )?{DAY}(?: of)? {MONTH},? {YEAR}"),
)
SPANS = (
    re.compile(rf"{MONTH}(?: of)?,? {YEAR}"),
    re.compile(rf"q(?P<quarter>[1-4])(?: of)? {YEAR}"),
    re.compile(rf"{YEAR} q(?P<quarter>[1-4])"),
    re.compile(rf"(?:the )?(?P<ordinal>{'|'.join(QUARTERS)}) quarter(?: of)? {YEAR}"),
    re.compile(rf"(?:the )?year(?: of)? {YEAR}"),
)
NUMERIC_DAY = re.compile(r"(\d{1,2})([/.])(\d{1,2})[/.]((?:19|20)\d\d)")
BARE_YEAR = re.compile(YEAR)
LAST_MONTH_OF_YEAR = 12


@dataclass(frozen=True)
class Period:
    """A stretch of days: a date literal of SOQL, or its first and last day."""

    literal: str = ""
    first: str = ""
    last: str = ""

    def conditions(self, field: Field, operator: str) -> Iterator[tuple[str, str, str]]:
        """Yield the path, operator and value of each condition that a comparison of a field with the period means."""
        if self.literal:
            yield field.name, operator, self.literal
        elif operator == "=" and (year := self._year()):
            yield f"CALENDAR_YEAR({field.name})", "=", year
        elif operator == "=" and (field.type == "datetime" or self.first != self.last):
            yield field.name, ">=", self._boundary(field, ">=")
            yield field.name, "<=", self._boundary(field, "<=")
        else:
            yield field.name, operator, self._boundary(field, operator)

    def _boundary(self, field: Field, operator: str) -> str:
        day = self.last if operator in (">", "<=") else self.first
        return day_boundary(day, operator) if field.type == "datetime" else day

    def _year(self) -> str:
        is_year = self.first.endswith("-01-01") and self.last == f"{self.first[:4]}-12-31"
        return self.first[:4] if is_year else ""


def parse_period(text: str, *, is_year_enough: bool = False) -> Period | None:
    """Return the period a text names; a number alone only where nothing but a year can be meant."""
    folded = " ".join(text.lower().replace(" ,", ",").split())
    literal = date_literal(folded)
    if literal is not None:
        return Period(first=literal, last=literal) if is_day(literal) else Period(literal)
    for pattern in DAYS:
        if found := pattern.fullmatch(folded):
            return _day(int(found["year"]), MONTHS[found["month"]], int(found["day"]))
    for pattern in SPANS:
        if found := pattern.fullmatch(folded):
            return _span(found.groupdict())
    if found := NUMERIC_DAY.fullmatch(folded):
        return _numeric_day(int(found[1]), int(found[3]), int(found[4]), found[2])
    found = BARE_YEAR.fullmatch(folded) if is_year_enough else None
    return _span(found.groupdict()) if found else None


def _numeric_day(one: int, two: int, year: int, sign: str) -> Period | None:
    """Read 31.01.2024 and 1/31/2024; 1/2/2024 is a day in January or in February."""
    if sign == ".":
        return _day(year, two, one)
    if one == two or two > LAST_MONTH_OF_YEAR:
        return _day(year, one, two)
    return _day(year, two, one) if one > LAST_MONTH_OF_YEAR else None


def _day(year: int, month: int, day: int) -> Period | None:
    try:
        shown = date(year, month, day).isoformat()
    except ValueError:
        return None
    return Period(first=shown, last=shown)


def _span(parts: dict[str, str | None]) -> Period:
    year, month, ordinal = int(parts["year"] or 0), parts.get("month"), parts.get("ordinal")
    quarter = int(parts.get("quarter") or QUARTERS.get(ordinal or "", 0))
    first, last = (1, LAST_MONTH_OF_YEAR)
    if month:
        first = last = MONTHS[month]
    elif quarter:
        first, last = 3 * quarter - 2, 3 * quarter
    days = calendar.monthrange(year, last)[1]
    return Period(first=date(year, first, 1).isoformat(), last=date(year, last, days).isoformat())
