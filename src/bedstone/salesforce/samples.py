"""Sample records: valid against the schema, linked to each other, and the same for the same seed."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

from bedstone.salesforce.graph.model import AUDIT_FIELDS, Choice, Field, ObjectSchema, SchemaGraph
from bedstone.salesforce.ids import make_id

FIRST_NAMES = ("Ada", "Bruno", "Chidi", "Dana", "Elif", "Femi", "Greta", "Hana", "Ivo", "Jonas", "Karin", "Leila")
LAST_NAMES = ("Adler", "Brandt", "Costa", "Dunn", "Ek", "Fischer", "Grant", "Holm", "Ito", "Jensen", "Khan", "Lopez")
COMPANIES = (
    *("Northwind", "Bluebird", "Cedar", "Delta", "Evergreen"),
    *("Foundry", "Granite", "Harbour", "Ironside", "Juniper"),
)
KINDS = ("Logistics", "Textiles", "Foods", "Energy", "Software", "Tools", "Media", "Health")
CITIES = (
    *(("Hamburg", "Germany"), ("Lyon", "France"), ("Leeds", "United Kingdom")),
    *(("Porto", "Portugal"), ("Graz", "Austria")),
)
SUBJECTS = (
    *("Follow up on the offer", "Question about an invoice", "Part does not fit"),
    *("Plan the next visit", "Renew the contract"),
)
WORDS = ("steady", "amber", "harvest", "signal", "meadow", "compass", "lantern", "granite", "willow", "summit")
TODAY = date(2026, 1, 15)
MAX_RELATED = 3
FILL_RATE = 0.8  # of optional custom fields
TRUE_RATE = 0.3  # of flags
USUAL_PARENTS = ("AccountId", "ContactId", "OpportunityId", "Product2Id")
NEVER_FILLED = frozenset({"isdeleted", "masterrecordid", "systemmodstamp", "probability"}) | AUDIT_FIELDS
OBSCURE_NAMES = ("forecastcategory", "geocodeaccuracy", "latitude", "longitude", "countrycode", "statecode", "jigsaw")
FILLED_TYPES = frozenset(
    "string picklist email phone url date datetime boolean currency double int percent textarea multipicklist "  # noqa: SIM905
    "combobox time".split()
)


@dataclass
class Samples:
    """Records of one object, and related records by object: parents before their children."""

    object: str
    records: list[dict[str, Any]] = field(default_factory=list)
    related: dict[str, list[dict[str, Any]]] = field(default_factory=dict)


class SampleMaker:
    """Makes records for one schema."""

    def __init__(self, graph: SchemaGraph, seed: int = 0) -> None:
        self._graph = graph
        self._seed = seed
        self._chance = random.Random(seed)  # noqa: S311 - invented records
        self._numbers: dict[str, int] = {}
        self._unique: set[tuple[str, str]] = set()

    def make(self, item: ObjectSchema, count: int, *, related: bool = False) -> Samples:
        """Return records of an object; with `related`, also their parents and a few children."""
        self._chance.seed(f"{self._seed}:{item.name}")  # each object gets records of its own
        samples = Samples(item.name)
        pool: dict[str, list[str]] = {}
        self._make_parents(item, samples, pool, depth=0, related=related)
        for number in range(count):
            record = self._record(item, number, pool)
            samples.records.append(record)
            pool.setdefault(item.name, []).append(record["Id"])
        if related:
            self._make_children(item, samples, pool)
        return samples

    def _make_parents(
        self, item: ObjectSchema, samples: Samples, pool: dict[str, list[str]], depth: int, *, related: bool
    ) -> None:
        """Make the parents that an object requires, and with `related` those that its records usually have."""
        for link in item.fields:
            if not link.reference_to or not _is_filled(link) or depth > 2:  # noqa: PLR2004
                continue
            is_usual = link.relationship_type == "MASTER_DETAIL" or link.name in USUAL_PARENTS
            if not _is_required(link) and not (related and depth == 0 and is_usual):
                continue
            parent = next((found for name in link.reference_to if (found := self._graph.get(name))), None)
            if parent is None or parent is item or parent.name in pool or not parent.createable:
                continue
            if parent.name == "User":
                continue
            self._make_parents(parent, samples, pool, depth + 1, related=False)
            rows = [self._record(parent, number, pool) for number in range(2)]
            samples.related.setdefault(parent.name, []).extend(rows)
            pool[parent.name] = [row["Id"] for row in rows]

    def _make_children(self, item: ObjectSchema, samples: Samples, pool: dict[str, list[str]]) -> None:
        named = [child for child in item.children if child.relationship]
        wanted = ("Contact", "Opportunity", "Case", "OpportunityLineItem", "CaseComment", "Asset")
        chosen = sorted(
            named, key=lambda child: (child.object not in wanted and not child.object.endswith("__c"), child.object)
        )
        made = 0
        for child in chosen:
            found = self._graph.get(child.object)
            link = found.field(child.field) if found is not None else None
            if found is None or link is None or not found.createable or not _is_filled(link) or found.name in pool:
                continue
            if link.reference_to != (item.name,):
                continue
            self._make_parents(found, samples, pool, 1, related=False)
            if any(
                _is_required(other) and not self._can_point(other, pool) for other in found.fields if other.reference_to
            ):
                continue
            rows = []
            for number, parent in enumerate(pool[item.name][:MAX_RELATED]):
                rows.append(self._record(found, number, pool) | {link.name: parent})
            samples.related.setdefault(found.name, []).extend(rows)
            pool[found.name] = [row["Id"] for row in rows]
            made += 1
            if made >= MAX_RELATED:
                return

    def _can_point(self, link: Field, pool: Mapping[str, list[str]]) -> bool:
        return any(name in pool for name in link.reference_to)

    # One record

    def _record(self, item: ObjectSchema, number: int, pool: Mapping[str, list[str]]) -> dict[str, Any]:
        serial = self._numbers[item.name] = self._numbers.get(item.name, 0) + 1
        record_id = make_id(item.prefix or "000", 900_000 + serial)
        record: dict[str, Any] = {"attributes": {"type": item.name}, "Id": record_id}
        person = (self._chance.choice(FIRST_NAMES), self._chance.choice(LAST_NAMES))
        company = f"{self._chance.choice(COMPANIES)} {self._chance.choice(KINDS)}"
        began = TODAY - timedelta(days=self._chance.randint(30, 700))
        city = self._chance.choice(CITIES)
        facts = {"person": person, "company": company, "began": began, "number": serial, "city": city}
        for entry in item.fields:
            if not _is_filled(entry):
                continue
            value = self._reference(entry, pool) if entry.reference_to else self._value(entry, item, record, facts)
            if value is not None:
                record[entry.name] = value
        return record

    def _reference(self, entry: Field, pool: Mapping[str, list[str]]) -> str | None:
        for name in entry.reference_to:
            if name in pool and name != "User":
                return self._chance.choice(pool[name])
        return None

    def _value(self, entry: Field, item: ObjectSchema, record: Mapping[str, Any], facts: Mapping[str, Any]) -> Any:  # noqa: PLR0911
        if entry.type == "base64" and _is_required(entry):
            return "U2FtcGxl"
        if entry.type not in FILLED_TYPES:
            return None
        is_wanted = _is_required(entry) or entry.is_name or entry.unique or not entry.is_custom
        if not is_wanted and self._chance.random() > FILL_RATE:
            return None
        match entry.type:
            case "picklist" | "combobox" | "multipicklist":
                return self._choice(entry, item, record)
            case "boolean":
                return entry.name == "IsActive" or (
                    not entry.name.startswith("Is") and self._chance.random() < TRUE_RATE
                )
            case "int":
                return self._chance.randint(1, 99)
            case "double" | "currency" | "percent":
                return self._number(entry)
            case "date":
                return self._day(entry, facts).isoformat()
            case "datetime":
                return self._moment(entry, facts)
            case "time":
                return f"{self._chance.randint(8, 17):02}:00:00.000Z"
        return self._text(entry, facts)

    def _choice(self, entry: Field, item: ObjectSchema, record: Mapping[str, Any]) -> str | None:
        active = [choice for choice in entry.choices if choice.is_active]
        if entry.controller:
            controlling = item.field(entry.controller)
            given = record.get(controlling.name) if controlling is not None else None
            active = [choice for choice in active if controlling is not None and _allows(choice, controlling, given)]
        if not active:
            return None
        return self._chance.choice(active).value

    def _number(self, entry: Field) -> float:
        if entry.type == "percent":
            return float(self._chance.randint(5, 95))
        if "latitude" in entry.name.lower() or "longitude" in entry.name.lower():
            return round(self._chance.uniform(-60, 60), 4)
        digits = max(1, (entry.precision or 18) - entry.scale)
        most = min(10 ** min(digits, 6) - 1, 250_000)
        return round(self._chance.uniform(1, most), min(entry.scale, 2))

    def _day(self, entry: Field, facts: Mapping[str, Any]) -> date:
        name = entry.name.lower()
        began: date = facts["began"]
        if "birth" in name:
            return date(self._chance.randint(1955, 2003), self._chance.randint(1, 12), self._chance.randint(1, 28))
        if any(word in name for word in ("close", "end", "due", "expir", "activity", "delivery")):
            return began + timedelta(days=self._chance.randint(30, 200))
        return began + timedelta(days=self._chance.randint(0, 10))

    def _moment(self, entry: Field, facts: Mapping[str, Any]) -> str:
        day = self._day(entry, facts)
        made = datetime(day.year, day.month, day.day, self._chance.randint(8, 17), 0, tzinfo=UTC)
        return made.strftime("%Y-%m-%dT%H:%M:%S.000+0000")

    def _text(self, entry: Field, facts: Mapping[str, Any]) -> str | None:
        text = self._typed_text(entry, facts) or self._named_text(entry, facts)
        if text is None:
            return None
        shown = text[: entry.length] if entry.length else text
        if entry.unique or entry.is_external_id:
            room = max(1, (entry.length or 255) - 6)
            shown = f"{shown[:room]}-{self._chance.randint(10000, 99999)}"
            while (entry.name, shown) in self._unique:
                shown = f"{shown[:room]}-{self._chance.randint(10000, 99999)}"
            self._unique.add((entry.name, shown))
        return shown

    def _typed_text(self, entry: Field, facts: Mapping[str, Any]) -> str | None:
        first, last = facts["person"]
        domain = facts["company"].split()[0].lower()
        name = entry.name.lower()
        if entry.type == "email" or "username" in name or "nickname" in name:
            return f"{first}.{last}.{facts['number']}@{domain}.example.com".lower()
        if entry.type == "phone":
            return f"+49 40 555 {self._chance.randint(1000, 9999)}"
        return f"https://www.{domain}.example.com" if entry.type == "url" else None

    def _named_text(self, entry: Field, facts: Mapping[str, Any]) -> str | None:
        first, last = facts["person"]
        city, country = facts["city"]
        name = entry.name.lower()
        if entry.is_name and name == "name":
            return f"{facts['company']} {facts['number']}"
        for word, text in (
            ("firstname", first),
            ("lastname", last),
            ("company", facts["company"]),
            ("subject", self._chance.choice(SUBJECTS)),
            ("street", f"{last} Street {facts['number']}"),
            ("city", city),
            ("country", country),
            ("postal", f"{10000 + facts['number']}"),
        ):
            if word in name:
                return str(text)
        if name == "title":
            return "Head of Purchasing"
        if entry.is_name or entry.unique or entry.is_external_id or _is_required(entry):
            return f"{entry.label.split()[0]}-{facts['number']:05}"
        if entry.type == "textarea" or entry.is_custom:
            return " ".join(self._chance.choice(WORDS) for _ in range(4)).capitalize() + "."
        return None


def _is_filled(entry: Field) -> bool:
    """Whether a new record may set a field."""
    if not entry.createable or entry.is_calculated or entry.is_auto_number or entry.type == "id":
        return False
    name = entry.name.lower()
    is_obscure = any(word in name for word in OBSCURE_NAMES) and entry.nillable and not entry.is_custom
    return name not in NEVER_FILLED and not entry.is_deprecated and not is_obscure


def _is_required(entry: Field) -> bool:
    return not entry.nillable and not entry.is_defaulted and _is_filled(entry)


def _allows(choice: Choice, controlling: Field, given: Any) -> bool:
    """Whether a dependent value is valid for the value of the controlling field."""
    if choice.valid_for is None:
        return True
    values = ["false", "true"] if controlling.type == "boolean" else [entry.value for entry in controlling.choices]
    wanted = str(given).lower() if controlling.type == "boolean" else given
    return wanted in values and values.index(wanted) in choice.valid_for
