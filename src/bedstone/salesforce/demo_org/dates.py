"""Date literals as half-open ranges of local days; tests set the clock."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from bedstone.salesforce.soql.tree import DateLiteral

COUNTED = re.compile(r"(LAST|NEXT)_N_(\w+)S|N_(\w+)S_AGO")
NAMED = re.compile(r"(LAST|THIS|NEXT)_(\w+)")


@dataclass(frozen=True)
class Calendar:
    """The org's clock, time zone and fiscal year; weeks begin on Sunday."""

    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    zone: str = "America/Los_Angeles"
    fiscal_start: int = 1

    def today(self) -> date:
        """Return the local day."""
        return self.now().astimezone(ZoneInfo(self.zone)).date()

    def range(self, literal: DateLiteral) -> tuple[date, date]:  # noqa: PLR0911 - one per literal
        """Return the first day of a literal and the day after the last."""
        today = self.today()
        count = literal.count or 0
        match literal.name:
            case "YESTERDAY":
                return today - timedelta(1), today
            case "TODAY":
                return today, today + timedelta(1)
            case "TOMORROW":
                return today + timedelta(1), today + timedelta(2)
            case "LAST_90_DAYS":
                return today - timedelta(90), today + timedelta(1)
            case "NEXT_90_DAYS":
                return today + timedelta(1), today + timedelta(91)
            case "LAST_N_DAYS":
                return today - timedelta(count), today + timedelta(1)
            case "NEXT_N_DAYS":
                return today + timedelta(1), today + timedelta(count + 1)
        return self._units(literal.name, count, today)

    def _units(self, name: str, count: int, today: date) -> tuple[date, date]:
        counted = COUNTED.fullmatch(name)
        if counted and counted[3]:
            return self._unit(counted[3], -count, today)
        if counted:
            first, last = (-count, -1) if counted[1] == "LAST" else (1, count)
            return self._unit(counted[2], first, today)[0], self._unit(counted[2], last, today)[1]
        named = NAMED.fullmatch(name)
        if not named:
            raise ValueError(name)
        return self._unit(named[2], {"LAST": -1, "THIS": 0, "NEXT": 1}[named[1]], today)

    def _unit(self, unit: str, offset: int, today: date) -> tuple[date, date]:
        """Return the day, week, month, quarter or year `offset` units from the current one."""
        if unit == "DAY":
            return today + timedelta(offset), today + timedelta(offset + 1)
        if unit == "WEEK":
            start = today - timedelta((today.weekday() + 1) % 7) + timedelta(7 * offset)
            return start, start + timedelta(7)
        months = {"MONTH": 1, "QUARTER": 3, "YEAR": 12, "FISCAL_QUARTER": 3, "FISCAL_YEAR": 12}[unit]
        shift = self.fiscal_start - 1 if unit.startswith("FISCAL") else 0
        index = today.year * 12 + today.month - 1 - shift
        start_index = (index // months + offset) * months + shift
        return _first_of_month(start_index), _first_of_month(start_index + months)

    def start_of(self, day: date) -> str:
        """Return the start of a local day as it is stored."""
        return format_moment(datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(self.zone)))

    def fiscal(self, day: date) -> tuple[int, int, int]:
        """Return the fiscal year, quarter and month of a day."""
        index = day.year * 12 + day.month - self.fiscal_start
        year, month = divmod(index, 12)
        ends_in = year + (self.fiscal_start > 1)
        return ends_in, month // 3 + 1, month + 1


def _first_of_month(index: int) -> date:
    year, month = divmod(index, 12)
    return date(min(max(year, 1), 9998), month + 1, 1)


def format_moment(moment: datetime) -> str:
    """Format a time as an org writes it, in UTC."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.000+0000")


def parse_moment(text: str) -> datetime:
    """Parse a time of SOQL or JSON."""
    plain = re.sub(r"([+-]\d\d)(\d\d)$", r"\1:\2", text.upper().replace("Z", "+00:00"))
    moment = datetime.fromisoformat(plain)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
