"""What a word of a question stands for in an org: a value, a date, a record, an object; with evidence or not at all."""

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Any, Literal

from bedstone.errors import InvalidInput
from bedstone.salesforce.graph.categories import UNKNOWN_WEIGHT, WEIGHTS, category_of
from bedstone.salesforce.graph.model import Field, ObjectSchema, SchemaGraph
from bedstone.salesforce.graph.names import distance, squeezed
from bedstone.salesforce.ids import long_id
from bedstone.salesforce.soql.literals import COUNTED_DATE_LITERALS, PLAIN_DATE_LITERALS
from bedstone.salesforce.soql.quoting import like_string, soql_string
from bedstone.services.schema.search import SchemaSearch

EntityType = Literal["company", "person", "status", "priority", "unknown"]
MOST = 10
GROUNDED = 0.5  # from which a value counts as grounded
ELSEWHERE = 0.6  # what a match in another object than the one asked for counts
LEAST_ALIKE, MOST_SLIPS = 0.75, 2
EMAIL = re.compile(r"[\w.+-]+@[\w-]+(\.[\w-]+)+")
URL = re.compile(r"(https?://|www\.)\S+", re.IGNORECASE)
PHONE = re.compile(r"(?=.*[+\s()/-])\+?\(?\d[\d\s()/-]{6,}\d")
DATE_LIKE = re.compile(r"\d{4}-\d\d?-\d\d?|\d\d?[/.-]\d\d?[/.-]\d{2,4}")
# Picklists of the machinery: nobody means them.
TECHNICAL = re.compile(
    r"sobject|recurrence|template|timezone|locale|language|encoding|isocode|geocode|sidkey|permission", re.IGNORECASE
)
NARROWED = {
    "status": ("status", "stage", "phase", "outcome", "state"),
    "priority": ("priority", "severity", "urgency", "rating"),
}
COMPARED = (
    ("at least ", ">="), ("at most ", "<="), ("more than ", ">"), ("less than ", "<"), ("greater than ", ">"),
    ("over ", ">"), ("above ", ">"), ("under ", "<"), ("below ", "<"), ("after ", ">"), ("before ", "<"),
    ("since ", ">="),
)  # fmt: skip
UNREACHED = 0.4  # what a match in an object counts that the one asked for has no way to
MONEY = re.compile(
    r"(?:(?P<sign>[$€£])|(?P<code>[A-Z]{3})\s?)?(?P<number>\d[\d,]*(?:\.\d+)?)\s*"
    r"(?P<unit>k|m|mn|bn|b|thousand|million|billion)?(?:\s*(?P<after>dollars|euros|usd|eur))?",
    re.IGNORECASE,
)
UNITS = {
    "k": 1e3, "thousand": 1e3, "m": 1e6, "mn": 1e6, "million": 1e6, "b": 1e9, "bn": 1e9, "billion": 1e9,
}  # fmt: skip
ISO = re.compile(r"\d{4}-\d\d-\d\d")
RELATIVE = re.compile(r"(?:in\s+)?(?:the\s+)?(last|past|previous|next)\s+(\d+)\s+(day|week|month|quarter|year)s?")
SINGLE = re.compile(
    r"(?:in\s+)?(?:the\s+)?(last|past|previous|this|current|next)\s+"
    r"(week|month|quarter|year|fiscal year|fiscal quarter)"
)
AGO = re.compile(r"(\d+)\s+(day|week|month|quarter|year)s?\s+ago")
WORDED = {"today": "TODAY", "yesterday": "YESTERDAY", "tomorrow": "TOMORROW"}
# Words that mean a value of a picklist, if the picklist has it.
MEANT = {
    "urgent": ("Priority", "High", 0.9),
    "critical": ("Priority", "High", 0.9),
    "important": ("Priority", "High", 0.9),
    "won": ("StageName", "Closed Won", 0.85),
    "lost": ("StageName", "Closed Lost", 0.85),
    "closed won": ("StageName", "Closed Won", 0.95),
    "closed lost": ("StageName", "Closed Lost", 0.95),
}
TYPE_NAMES = {
    "Account": "account_name",
    "Contact": "contact_name",
    "Lead": "lead_name",
    "Opportunity": "opportunity_name",
    "User": "user_name",
    "Case": "case_subject",
    "Campaign": "campaign_name",
    "Product2": "product_name",
}
MAIN_DATES = {"Opportunity": "CloseDate", "Task": "ActivityDate", "Event": "ActivityDate", "Order": "EffectiveDate"}
MAIN_AMOUNTS = {"Opportunity": "Amount", "Account": "AnnualRevenue", "Lead": "AnnualRevenue", "Order": "TotalAmount"}


@dataclass(frozen=True)
class Grounding:
    """One reading of a value: the filter it becomes, how sure it is, and where that comes from."""

    type: str
    filter: str
    confidence: float
    evidence: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def is_grounded(self) -> bool:
        return self.confidence >= GROUNDED


# Records by name, from the org: object, name, id.
FoundRecords = Iterable[tuple[str, str, str]]


class Grounder:
    """Reads values against one schema; records only as somebody found them in the org."""

    def __init__(self, graph: SchemaGraph, search: SchemaSearch, companies: Iterable[str] = ()) -> None:
        self._graph = graph
        self._search = search
        self._companies = {name.casefold(): name for name in companies}  # as the last sync saw them
        self._squeezed_companies = {squeezed(name): name for name in self._companies.values()}

    def ground(
        self,
        value: str,
        *,
        target: ObjectSchema | None = None,
        kind: EntityType = "unknown",
        records: FoundRecords = (),
    ) -> list[Grounding]:
        """Every reading, the surest first."""
        text = value.strip().strip("\"'")
        found = [
            *self._patterns(text, target),
            *(self._values(text, target, kind) if kind not in ("company", "person") else ()),
            *self._records(text, target, kind, records),
            *(self._known_company(text, target) if kind in ("company", "unknown") and not records else ()),
            *(self._objects(text) if kind == "unknown" else ()),
        ]
        if not any(item.confidence >= GROUNDED for item in found) and text[:1].isupper():
            found.append(self._guess(text, kind, target))
        best: dict[str, Grounding] = {}
        for item in found:
            if item.filter not in best or best[item.filter].confidence < item.confidence:
                best[item.filter] = item
        return sorted(best.values(), key=lambda item: (-item.confidence, len(item.filter), item.filter))[:MOST]

    def in_field(self, item: ObjectSchema, field: Field, value: str) -> tuple[str, bool, float]:
        """A filter on one field: the SOQL, whether it is a value of the picklist, and how sure that is.

        Raises `InvalidInput` where no filter on that field says this: none is better than a wrong one.
        """
        text = value.strip().strip("\"'")
        if field.type in ("address", "location") or not field.filterable:
            parts = [other.name for other in item.fields if other.compound == field.name]
            hint = f" Filter on {', '.join(parts[:3])} instead." if parts else ""
            raise InvalidInput(f"{field.name} ({field.type}) cannot be filtered.{hint}", parameter="field")
        if field.choices:
            choice, score = _best_choice(field, text)
            if choice is not None:
                operator = "INCLUDES" if field.type == "multipicklist" else "="
                written = f"({soql_string(choice)})" if field.type == "multipicklist" else soql_string(choice)
                return f"{field.name} {operator} {written}", True, score
        literal = self.literal(field, text)
        if literal is not None:
            shown = literal if literal.startswith("(") else f"{field.name} {literal}"
            return shown, False, 0.9
        if field.type == "reference" and field.relationship:
            return self._by_parent_name(field, text)
        if field.type in ("string", "textarea", "email", "phone", "url", "picklist", "combobox"):
            return f"{field.name} LIKE {like_string(text, before=True)}", False, 0.3 if field.choices else 0.5
        raise InvalidInput(f"{value!r} is no value of {field.name}, which is {field.type}.", parameter="value")

    def _by_parent_name(self, field: Field, text: str) -> tuple[str, bool, float]:
        target = self._graph.get(field.reference_to[0]) if len(field.reference_to) == 1 else None
        name = "Name" if target is None else target.name_field.name if target.name_field is not None else None
        if name is None:
            raise InvalidInput(f"{field.name} holds ids, and what it points to has no name.", parameter="value")
        return f"{field.relationship}.{name} LIKE {like_string(text, before=True)}", False, 0.5

    def literal(self, field: Field, text: str) -> str | None:  # noqa: PLR0911 - one for each type
        """An operator and a literal that fit a field's type, if the text is one."""
        if field.type == "boolean":
            folded = text.lower()
            if folded in ("true", "yes", "1", "on"):
                return "= true"
            return "= false" if folded in ("false", "no", "0", "off") else None
        operator, rest = "=", text
        for words, sign in COMPARED:
            if text.lower().startswith(words):
                operator, rest = sign, text[len(words) :]
        if field.type in ("date", "datetime"):
            moment = date_literal(rest)
            if moment is None:
                return None
            if field.type == "date" or not ISO.fullmatch(moment):
                return f"{operator} {moment}"
            if operator == "=":  # one day of a field that knows the time
                return f"({field.name} >= {moment}T00:00:00Z AND {field.name} <= {moment}T23:59:59Z)"
            return f"{operator} {moment}T{'23:59:59' if operator in ('>', '<=') else '00:00:00'}Z"
        if field.type in ("int", "double", "currency", "percent"):
            number = amount(rest)
            return f"{operator} {number}" if number is not None else None
        if field.type in ("id", "reference"):
            record = long_id(text)
            return f"= {soql_string(record)}" if record else None
        return None

    # Patterns

    def _patterns(self, text: str, target: ObjectSchema | None) -> Iterable[Grounding]:
        record = long_id(text) if any(sign.isdigit() for sign in text) else None
        owner = self._graph.by_prefix.get(record[:3]) if record else None
        if record is not None and owner is not None:
            evidence = {"source": "pattern", "pattern": "id", "object": owner.name}
            yield Grounding("record_id", f"{_prefix(owner, target)}Id = {soql_string(record)}", 0.95, evidence)
            return
        moment = date_literal(text)
        if moment is not None:
            yield self._moment(text, moment, target)
            return
        if EMAIL.fullmatch(text):
            yield from self._typed(text, "email", 0.95, target, ("Contact", "Lead", "User"))
        elif URL.fullmatch(text):
            yield from self._typed(text, "url", 0.95, target, ("Account", "Lead"))
        elif (
            PHONE.fullmatch(text) and not DATE_LIKE.fullmatch(text) and sum(sign.isdigit() for sign in text) >= 7  # noqa: PLR2004
        ):
            yield from self._typed(text, "phone", 0.85, target, ("Account", "Contact", "Lead"))
        elif (number := amount(text, only_money=True)) is not None:
            yield from self._amount(number, target)

    def _moment(self, text: str, literal: str, target: ObjectSchema | None) -> Grounding:
        owner = target or self._graph.get("Opportunity")
        name = MAIN_DATES.get(owner.name, "CreatedDate") if owner else "CreatedDate"
        found = owner.field(name) if owner else None
        if found is None and owner is not None:
            found = owner.field("CreatedDate") or next(
                (f for f in owner.fields if f.type in ("date", "datetime")), None
            )
        name = found.name if found else "CreatedDate"
        is_day = bool(ISO.fullmatch(literal))
        if is_day and found is not None and found.type == "datetime":
            shown = f"{name} >= {literal}T00:00:00Z AND {name} <= {literal}T23:59:59Z"
        else:
            shown = f"{name} = {literal}"
        confidence = 0.98 if text.upper().replace(" ", "_") == literal else 0.95
        return Grounding("date", shown, confidence, {"source": "pattern", "pattern": "date", "value": literal})

    def _typed(
        self, text: str, kind: str, confidence: float, target: ObjectSchema | None, likely: tuple[str, ...]
    ) -> Iterable[Grounding]:
        owners = [target] if target is not None else [self._graph.get(name) for name in likely]
        for place, owner in enumerate(owners):
            found = (
                next((item for item in owner.fields if item.type == kind and item.filterable), None) if owner else None
            )
            if owner is not None and found is not None:
                evidence = {"source": "pattern", "pattern": kind, "object": owner.name, "field": found.name}
                shown = f"{_prefix(owner, target)}{found.name} = {soql_string(text)}"
                yield Grounding(kind, shown, round(confidence - 0.05 * place, 2), evidence)

    def _amount(self, number: str, target: ObjectSchema | None) -> Iterable[Grounding]:
        owner = target or self._graph.get("Opportunity")
        if owner is None:
            return
        found = owner.field(MAIN_AMOUNTS.get(owner.name, "Amount")) or next(
            (item for item in owner.fields if item.type == "currency"), None
        )
        if found is not None:
            evidence = {"source": "pattern", "pattern": "amount", "object": owner.name, "field": found.name}
            yield Grounding("amount", f"{_prefix(owner, target)}{found.name} >= {number}", 0.9, evidence)

    # Picklists

    @cached_property
    def _choices(self) -> Mapping[str, list[tuple[ObjectSchema, Field, str]]]:
        """Fields by their values, in lower case; audit and time zone lists are nobody's question."""
        made: dict[str, list[tuple[ObjectSchema, Field, str]]] = {}
        for item in self._graph.objects.values():
            for field in item.fields:
                if not field.filterable or TECHNICAL.search(field.name):
                    continue
                for choice in field.choices:
                    if choice.is_active:
                        for text in {choice.value.casefold(), choice.label.casefold()}:
                            made.setdefault(text, []).append((item, field, choice.value))
        return made

    def _values(self, text: str, target: ObjectSchema | None, kind: EntityType) -> Iterable[Grounding]:
        folded = text.casefold()
        variants = {folded, folded.replace("-", " "), folded.replace(" ", "-")}
        bare = re.sub(r"\s+(priority|status|stage|rating|industry|type)$", "", folded)
        words = NARROWED.get(kind, ())
        exact = [
            entry
            for variant in sorted(variants)
            for entry in self._choices.get(variant, ())
            if not words or any(word in entry[1].name.lower() for word in words)
        ]
        for item, field, value in exact:
            yield self._choice(item, field, value, 0.95, target)
        is_known = any(target is None or item is target for item, _, _ in exact)
        if not is_known and bare != folded:
            word = folded[len(bare) :].strip()
            for item, field, value in self._choices.get(bare, ()):
                if word in field.name.lower() or word in field.label.lower():
                    yield self._choice(item, field, value, 0.9, target)
        meant = MEANT.get(folded) or MEANT.get(bare)
        if meant is not None and not is_known:
            name, value, confidence = meant
            for item, field, known in self._choices.get(value.casefold(), ()):
                if field.name.lower() == name.lower() and (not words or any(word in name.lower() for word in words)):
                    yield self._choice(item, field, known, confidence, target)
        elif not exact and len(folded) >= 4 and not words:  # noqa: PLR2004 - of shorter ones too many are alike
            yield from self._fuzzy(folded, target)

    def _fuzzy(self, folded: str, target: ObjectSchema | None) -> Iterable[Grounding]:
        for known, entries in self._choices.items():
            if abs(len(known) - len(folded)) > 2 or known[0] != folded[0]:  # noqa: PLR2004 - a slip of the pen
                continue
            away = distance(folded, known, 2)
            alike = 1 - away / max(len(folded), len(known))
            if alike >= LEAST_ALIKE and away <= 2:  # noqa: PLR2004
                for item, field, value in entries:
                    yield self._choice(item, field, value, 0.8 * alike, target)

    def _choice(
        self, item: ObjectSchema, field: Field, value: str, confidence: float, target: ObjectSchema | None
    ) -> Grounding:
        sure = confidence * self._weight(item)
        prefix = _prefix(item, target)
        if target is not None and item is not target:
            link = self._link(item, target)
            sure *= ELSEWHERE if link is not None else UNREACHED
            prefix = f"{link}." if link is not None else prefix
        operator = f"INCLUDES ({soql_string(value)})" if field.type == "multipicklist" else f"= {soql_string(value)}"
        evidence = {"source": "picklist", "object": item.name, "field": field.name, "value": value}
        return Grounding("picklist_value", f"{prefix}{field.name} {operator}", round(sure, 3), evidence)

    def _weight(self, item: ObjectSchema) -> float:
        return WEIGHTS.get(category_of(item, self._graph), UNKNOWN_WEIGHT)

    # Records and objects

    def _records(
        self, text: str, target: ObjectSchema | None, kind: EntityType, records: FoundRecords
    ) -> Iterable[Grounding]:
        wanted = {"company": ("Account",), "person": ("Contact", "Lead", "User")}.get(kind)
        seen: set[tuple[str, str]] = set()
        for name, label, record in records:
            owner = self._graph.get(name)
            if owner is None or owner.name_field is None or (wanted and owner.name not in wanted):
                continue
            is_exact = label.casefold() == text.casefold()
            written = soql_string(label) if is_exact else like_string(text)
            operator = "=" if is_exact else "LIKE"
            if (owner.name, written) in seen:
                continue
            seen.add((owner.name, written))
            path = self._path_to(owner, target)
            evidence = {"source": "sosl_verified", "object": owner.name, "value": label, "id": record}
            confidence = 0.92 if is_exact else 0.85
            type_name = TYPE_NAMES.get(owner.name, f"{owner.name.lower()}_name")
            yield Grounding(type_name, f"{path}{owner.name_field.name} {operator} {written}", confidence, evidence)

    def _known_company(self, text: str, target: ObjectSchema | None) -> Iterable[Grounding]:
        name = self._companies.get(text.casefold())
        owner = self._graph.get("Account")
        if name is not None and owner is not None:
            evidence = {"source": "semantic", "object": "Account", "value": name, "why": "a name the last sync saw"}
            path = self._path_to(owner, target)
            yield Grounding("account_name", f"{path}Name = {soql_string(name)}", 0.85, evidence)

    def company(self, text: str) -> str | None:
        """A company that is called so, or whose name begins with that word."""
        folded = text.casefold()
        if folded in self._companies:
            return self._companies[folded]
        return next((name for key, name in self._companies.items() if key.split()[:1] == [folded]), None)

    def company_filter(self, words: Sequence[str], target: ObjectSchema) -> tuple[str, str] | None:
        """Field and value for a company whose whole name these words are, in a query of an object that points to it."""
        name, owner = self._squeezed_companies.get(squeezed("".join(words))), self._graph.get("Account")
        if name is None or owner is None or (target is not owner and self._link(owner, target) is None):
            return None
        return f"{self._path_to(owner, target)}Name", soql_string(name)

    def _path_to(self, owner: ObjectSchema, target: ObjectSchema | None) -> str:
        """How a filter of one object is written in a query of another."""
        if target is None:
            return f"{owner.name}."
        if target is owner:
            return ""
        return f"{self._link(owner, target) or owner.name}."

    def _link(self, owner: ObjectSchema, target: ObjectSchema) -> str | None:
        """The relationship by which one object points to another."""
        links = [edge.field for edge in self._graph.parents(target.name) if edge.parent == owner.name]
        plain = [str(link.relationship) for link in links if len(link.reference_to) == 1 and link.relationship]
        return owner.name if owner.name in plain else plain[0] if plain else None

    def _objects(self, text: str) -> Iterable[Grounding]:
        for item, score, why in self._search.objects_named(text)[:2]:
            evidence = {"source": "semantic", "object": item.name, "why": why}
            yield Grounding("object", f"FROM {item.name}", round(score * (0.7 + 0.3 * self._weight(item)), 3), evidence)

    def _guess(self, text: str, kind: EntityType, target: ObjectSchema | None) -> Grounding:
        owner = self._graph.get("Contact" if kind == "person" else "Account") or target
        path = self._path_to(owner, target) if owner is not None else ""
        name = owner.name_field.name if owner is not None and owner.name_field else "Name"
        type_name = TYPE_NAMES.get(owner.name, "unknown") if owner is not None else "unknown"
        return Grounding(type_name, f"{path}{name} LIKE {like_string(text)}", 0.4, {"source": "none", "value": text})


def date_literal(text: str) -> str | None:  # noqa: PLR0911 - one for each way to say it
    """A stretch of time as SOQL calls it, or a day."""
    folded = " ".join(text.lower().replace("_", " ").split())
    upper = folded.upper().replace(" ", "_")
    if upper in PLAIN_DATE_LITERALS:
        return upper
    name, _, count = upper.partition(":")
    if name in COUNTED_DATE_LITERALS and count.isdigit():
        return f"{name}:{int(count)}"
    if folded in WORDED:
        return WORDED[folded]
    if found := RELATIVE.fullmatch(folded):
        way = "NEXT" if found[1] == "next" else "LAST"
        return f"{way}_N_{found[3].upper()}S:{int(found[2])}"
    if found := SINGLE.fullmatch(folded):
        way = {"next": "NEXT", "this": "THIS", "current": "THIS"}.get(found[1], "LAST")
        return f"{way}_{found[2].upper().replace(' ', '_')}"
    if found := AGO.fullmatch(folded):
        return f"N_{found[2].upper()}S_AGO:{int(found[1])}"
    if ISO.fullmatch(folded):
        try:
            return date.fromisoformat(folded).isoformat()
        except ValueError:
            return None
    return None


def amount(text: str, *, only_money: bool = False) -> str | None:
    """A number as SOQL writes it: $1.5m is 1500000. Only money: with a sign, a unit or a currency."""
    found = MONEY.fullmatch(text.strip())
    if found is None:
        return None
    if only_money and not (found["sign"] or found["code"] or found["unit"] or found["after"]):
        return None
    value = float(found["number"].replace(",", "")) * UNITS.get((found["unit"] or "").lower(), 1.0)
    return str(int(value)) if value.is_integer() else f"{value:.6f}".rstrip("0")


def _best_choice(field: Field, text: str) -> tuple[str | None, float]:
    folded = text.casefold()
    active = [choice for choice in field.choices if choice.is_active]
    for choice in active:
        if folded in (choice.value.casefold(), choice.label.casefold()):
            return choice.value, 0.95
    meant = MEANT.get(folded)
    for choice in active:
        if meant is not None and meant[1].casefold() == choice.value.casefold():
            return choice.value, meant[2]
    words = set(re.findall(r"\w+", folded))
    holding = [choice for choice in active if words and words <= set(re.findall(r"\w+", choice.value.casefold()))]
    if len(holding) == 1:
        return holding[0].value, 0.8
    scored = []
    for choice in active:
        away = distance(folded, choice.value.casefold(), MOST_SLIPS)
        if away <= MOST_SLIPS:
            scored.append((1 - away / max(len(folded), len(choice.value), 1), choice.value))
    best = max(scored, default=(0.0, ""))
    return (best[1], round(0.8 * best[0], 3)) if best[0] >= LEAST_ALIKE else (None, 0.0)


def _prefix(item: ObjectSchema, target: ObjectSchema | None) -> str:
    return "" if target is item else f"{item.name}."


def hallucination(grounder: Grounder) -> Callable[[str, ObjectSchema], str | None]:
    """What the validator says of a name that is really a value."""

    def ground(name: str, owner: ObjectSchema) -> str | None:
        if not name[:1].isupper() or "__" in name:
            return None
        spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
        target = owner if owner.fields else None
        for item in grounder.ground(spaced, target=target):
            if item.type == "picklist_value" and item.confidence >= 0.9:  # noqa: PLR2004 - surely that
                return f'"{name}" looks like a picklist value, not a field or object. Use {item.filter}.'
        company = grounder.company(spaced)
        if company is not None:
            what = f"a field of {owner.name}" if owner.fields else "an object"
            meant = f"Account.Name LIKE {like_string(spaced)}"
            return f'"{name}" looks like the name of a company ({company}), not {what}. Use {meant}.'
        return None

    return ground
