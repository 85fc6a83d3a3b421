"""Values as people write them, and as SOQL does: dates, amounts of money, picklist values."""

import re
from datetime import date

from bedstone.salesforce.graph.folding import WORD_SIGNS, fold
from bedstone.salesforce.graph.model import Field, ObjectSchema
from bedstone.salesforce.graph.names import distance
from bedstone.salesforce.ids import long_id
from bedstone.salesforce.soql.literals import COUNTED_DATE_LITERALS, PLAIN_DATE_LITERALS
from bedstone.salesforce.soql.quoting import soql_string

MIN_SIMILARITY = 0.75
MAX_TYPOS = 2
AMOUNT_TYPES = frozenset({"int", "double", "currency", "percent"})
DATE_TYPES = frozenset({"date", "datetime"})
MAIN_DATES = {"Opportunity": "CloseDate", "Task": "ActivityDate", "Event": "ActivityDate", "Order": "EffectiveDate"}
MAIN_AMOUNTS = {"Opportunity": "Amount", "Account": "AnnualRevenue", "Lead": "AnnualRevenue", "Order": "TotalAmount"}
COMPARISON_PHRASES = {
    "at least ": ">=", "at most ": "<=", "more than ": ">", "less than ": "<", "greater than ": ">", "over ": ">",
    "above ": ">", "under ": "<", "below ": "<", "after ": ">", "before ": "<", "since ": ">=", "until ": "<=",
    "up to ": "<=", "no more than ": "<=", "fewer than ": "<", ">= ": ">=", "<= ": "<=", "> ": ">", "< ": "<",
    "exceeding ": ">", "in ": "=",
}  # fmt: skip
# Words for a value of a picklist, if the picklist has it.
VALUE_SYNONYMS = {
    "urgent": ("Priority", "High", 0.9),
    "critical": ("Priority", "High", 0.9),
    "important": ("Priority", "High", 0.9),
    "won": ("StageName", "Closed Won", 0.85),
    "lost": ("StageName", "Closed Lost", 0.85),
    "closed won": ("StageName", "Closed Won", 0.95),
    "closed lost": ("StageName", "Closed Lost", 0.95),
}
MONEY = re.compile(
    r"(?:(?P<sign>[$€£])|(?P<code>[A-Z]{3})\s?)?(?P<number>\d[\d,]*(?:\.\d+)?)\s*"
    r"(?P<unit>k|m|mn|bn|b|thousand|million|billion)?(?:\s*(?P<after>dollars|euros|usd|eur))?",
    re.IGNORECASE,
)
MULTIPLIERS = {
    "k": 1e3, "thousand": 1e3, "m": 1e6, "mn": 1e6, "million": 1e6, "b": 1e9, "bn": 1e9, "billion": 1e9,
}  # fmt: skip
ISO_DAY = re.compile(r"\d{4}-\d\d-\d\d")
SEVERAL_PERIODS = re.compile(
    r"(?:in\s+)?(?:the\s+)?(last|past|previous|next|coming)\s+(\d+)\s+(day|week|month|quarter|year)s?"
)
ONE_PERIOD = re.compile(
    r"(?:in\s+)?(?:the\s+)?(last|past|previous|this|current|next|coming)\s+"
    r"(week|month|quarter|year|fiscal year|fiscal quarter)"
)
PERIODS_AGO = re.compile(r"(\d+)\s+(day|week|month|quarter|year)s?\s+ago")
DAYS_OF_PERIODS = {"week": 7, "month": 30, "quarter": 90, "year": 365}
DIRECTIONS = {"next": "NEXT", "coming": "NEXT", "this": "THIS", "current": "THIS"}
WORD = re.compile(rf"[{WORD_SIGNS}]+")


def date_literal(text: str) -> str | None:
    """Return a day or a period as SOQL writes it: LAST_N_DAYS:30 for `last 30 days`."""
    folded = " ".join(text.lower().replace("_", " ").split())
    upper = folded.upper().replace(" ", "_")
    if upper in PLAIN_DATE_LITERALS:
        return upper
    name, _, count = upper.partition(":")
    if name in COUNTED_DATE_LITERALS and count.isdigit():
        return f"{name}:{int(count)}"
    return _relative_period(folded) or _iso_day(folded)


def _relative_period(folded: str) -> str | None:
    if found := SEVERAL_PERIODS.fullmatch(folded):
        return f"{DIRECTIONS.get(found[1], 'LAST')}_N_{found[3].upper()}S:{int(found[2])}"
    if found := ONE_PERIOD.fullmatch(folded):
        days = DAYS_OF_PERIODS.get(found[2])
        if days and (found[1] == "past" or folded.endswith("the last year")):  # up to today, not a calendar period
            return f"LAST_N_DAYS:{days}"
        return f"{DIRECTIONS.get(found[1], 'LAST')}_{found[2].upper().replace(' ', '_')}"
    if found := PERIODS_AGO.fullmatch(folded):
        return f"N_{found[2].upper()}S_AGO:{int(found[1])}"
    return None


def _iso_day(text: str) -> str | None:
    if not ISO_DAY.fullmatch(text):
        return None
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        return None


def is_day(literal: str) -> bool:
    return ISO_DAY.fullmatch(literal) is not None


def day_boundary(day: str, operator: str) -> str:
    """Return the moment that a comparison with a day means for a field with a time."""
    return f"{day}T{'23:59:59' if operator in ('>', '<=') else '00:00:00'}Z"


def within_day(name: str, day: str) -> str:
    """Return the condition that a field with a time is within a day."""
    return f"{name} >= {day_boundary(day, '>=')} AND {name} <= {day_boundary(day, '<=')}"


def parse_amount(text: str, *, only_money: bool = False) -> str | None:
    """Return a number as SOQL writes it: 1500000 for $1.5m. Only money: with a sign, a unit or a currency."""
    found = MONEY.fullmatch(text.strip())
    if found is None:
        return None
    if only_money and not (found["sign"] or found["code"] or found["unit"] or found["after"]):
        return None
    value = float(found["number"].replace(",", "")) * MULTIPLIERS.get((found["unit"] or "").lower(), 1.0)
    return str(int(value)) if value.is_integer() else f"{value:.6f}".rstrip("0")


def field_literal(field: Field, text: str) -> str | None:
    """Return an operator and a literal that fit a field's type, if the text has them."""
    if field.type == "boolean":
        return _boolean(text.lower())
    if field.type in ("id", "reference"):
        record = long_id(text)
        return f"= {soql_string(record)}" if record else None
    operator, rest = split_comparison(text)
    if field.type in DATE_TYPES:
        return _date_condition(field, operator, rest)
    number = parse_amount(rest) if field.type in AMOUNT_TYPES else None
    return f"{operator} {number}" if number is not None else None


def split_comparison(text: str) -> tuple[str, str]:
    """Return the operator that a text begins with, and the rest of it: `>` and `1 million` for `over 1 million`."""
    folded = text.lower()
    words = next((words for words in COMPARISON_PHRASES if folded.startswith(words)), "")
    return (COMPARISON_PHRASES[words], text[len(words) :]) if words else ("=", text)


def _boolean(folded: str) -> str | None:
    if folded in ("true", "yes", "1", "on"):
        return "= true"
    return "= false" if folded in ("false", "no", "0", "off") else None


def _date_condition(field: Field, operator: str, text: str) -> str | None:
    literal = date_literal(text)
    if literal is None:
        return None
    if field.type == "date" or not is_day(literal):
        return f"{operator} {literal}"
    if operator == "=":
        return f"({within_day(field.name, literal)})"
    return f"{operator} {day_boundary(literal, operator)}"


def best_choice(field: Field, text: str) -> tuple[str | None, float]:
    """Return the value of a picklist that a text means, and how sure that is."""
    folded = fold(text)
    active = [choice for choice in field.choices if choice.is_active]
    for choice in active:
        if folded in (fold(choice.value), fold(choice.label)):
            return choice.value, 0.95
    synonym = VALUE_SYNONYMS.get(folded)
    for choice in active:
        if synonym is not None and synonym[1].casefold() == choice.value.casefold():
            return choice.value, synonym[2]
    words = set(WORD.findall(folded))
    holding = [choice for choice in active if words and words <= set(WORD.findall(fold(choice.value)))]
    if len(holding) == 1:
        return holding[0].value, 0.8
    scored = [(similarity(folded, choice.value), choice.value) for choice in active]
    score, value = max(scored, default=(0.0, ""))
    return (value, round(0.8 * score, 3)) if score else (None, 0.0)


def similarity(folded: str, value: str) -> float:
    """Return the share of a value's letters that a text has; 0 below 0.75, or with more than two typos."""
    known = fold(value)
    if abs(len(folded) - len(known)) > MAX_TYPOS:
        return 0.0
    typos = distance(folded, known, MAX_TYPOS)
    score = 1 - typos / max(len(folded), len(value), 1)
    return score if typos <= MAX_TYPOS and score >= MIN_SIMILARITY else 0.0


def choice_condition(field: Field, value: str) -> tuple[str, str]:
    """Return the operator and the literal that select a value of a picklist."""
    is_multiple = field.type == "multipicklist"
    return ("INCLUDES", f"({soql_string(value)})") if is_multiple else ("=", soql_string(value))


def main_amount(item: ObjectSchema) -> Field | None:
    """Return the field that an amount of money without a field name means."""
    return item.field(MAIN_AMOUNTS.get(item.name, "Amount"))


def main_date(item: ObjectSchema) -> Field | None:
    """Return the field that a date without a field name means."""
    usual = item.field(MAIN_DATES.get(item.name, "Date__c")) or item.field("CreatedDate")
    return usual or next((field for field in item.fields if field.type in DATE_TYPES), None)
