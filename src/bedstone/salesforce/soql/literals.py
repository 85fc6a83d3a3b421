"""Date literals, and which of them take a number."""

_UNITS = ("WEEK", "MONTH", "QUARTER", "YEAR", "FISCAL_QUARTER", "FISCAL_YEAR")
_COUNTED = ("DAYS", "WEEKS", "MONTHS", "QUARTERS", "YEARS", "FISCAL_QUARTERS", "FISCAL_YEARS")

PLAIN_DATE_LITERALS = frozenset(
    {
        *("YESTERDAY", "TODAY", "TOMORROW", "LAST_90_DAYS", "NEXT_90_DAYS"),
        *(f"{when}_{unit}" for when in ("LAST", "THIS", "NEXT") for unit in _UNITS),
    }
)
COUNTED_DATE_LITERALS = frozenset(
    {
        *(f"{when}_N_{unit}" for when in ("LAST", "NEXT") for unit in _COUNTED),
        *(f"N_{unit}_AGO" for unit in _COUNTED),
    }
)
DATE_LITERALS = PLAIN_DATE_LITERALS | COUNTED_DATE_LITERALS
