"""What a phrase of a question means in an org: a value, a date, a record, an object; with evidence or not at all."""

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

from bedstone.errors import InvalidInput
from bedstone.salesforce.graph.columns import build_select
from bedstone.salesforce.graph.folding import fold
from bedstone.salesforce.graph.model import Field, ObjectSchema, SchemaGraph
from bedstone.salesforce.graph.names import squeeze
from bedstone.salesforce.graph.object_names import ObjectNames, split_camel_case
from bedstone.salesforce.ids import long_id
from bedstone.salesforce.questions.periods import parse_period
from bedstone.salesforce.questions.values import (
    VALUE_SYNONYMS,
    best_choice,
    choice_condition,
    field_literal,
    main_amount,
    main_date,
    parse_amount,
    similarity,
    split_comparison,
)
from bedstone.salesforce.soql.quoting import like_string, soql_string

EntityType = Literal["company", "person", "status", "priority", "unknown"]
MAX_GROUNDINGS = 10
MIN_GROUNDED = 0.5  # confidence from which a value counts as grounded
MIN_VALUE_FOR_NAME = 0.9  # confidence from which an unknown name is taken for a picklist value
MIN_FUZZY_LENGTH = 4  # too many short values are similar
MIN_PHONE_DIGITS = 7
RELATED_FACTOR = 0.6  # for a value of an object that the target points to
UNRELATED_FACTOR = 0.4  # for a value of any other object
EMAIL = re.compile(r"[\w.+-]+@[\w-]+(\.[\w-]+)+")
URL = re.compile(r"(https?://|www\.)\S+", re.IGNORECASE)
PHONE = re.compile(r"(?=.*[+\s()/-])\+?\(?\d[\d\s()/-]{6,}\d")
DATE_LIKE = re.compile(r"\d{4}-\d\d?-\d\d?|\d\d?[/.-]\d\d?[/.-]\d{2,4}")
FIELD_SUFFIX = re.compile(r"\s+(priority|status|stage|rating|industry|type)$")
# Picklists that questions do not ask about.
TECHNICAL = re.compile(
    r"sobject|recurrence|template|timezone|locale|language|encoding|isocode|geocode|sidkey|permission", re.IGNORECASE
)
TEXT_TYPES = frozenset({"string", "textarea", "email", "phone", "url", "picklist", "combobox"})
# Parts of field names that an entity type allows.
FIELDS_BY_ENTITY = {
    "status": ("status", "stage", "phase", "outcome", "state"),
    "priority": ("priority", "severity", "urgency", "rating"),
}
OBJECTS_BY_ENTITY = {"company": ("Account",), "person": ("Contact", "Lead", "User")}
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


@dataclass(frozen=True)
class Grounding:
    """One meaning of a value: the filter it becomes, how sure that is, and the evidence."""

    type: str
    filter: str
    confidence: float
    evidence: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    counted_by: str = ""  # the statement whose rows show whether it holds

    @property
    def is_grounded(self) -> bool:
        return self.confidence >= MIN_GROUNDED


class FieldFilter(NamedTuple):
    """A condition on one field, whether its value is one of a picklist, and how sure that is."""

    soql: str
    is_picklist_value: bool
    confidence: float


class ChoiceMatch(NamedTuple):
    """A picklist value that a text means, before the object of the query is considered."""

    object: ObjectSchema
    field: Field
    value: str
    confidence: float


# Records by name, from the org: object, name, id.
FoundRecords = Iterable[tuple[str, str, str]]


class Grounder:
    """Grounds values in one schema; records only as a search of the org found them."""

    def __init__(self, graph: SchemaGraph, names: ObjectNames, companies: Iterable[str] = ()) -> None:
        self._graph = graph
        self._names = names
        self._companies = {fold(name): name for name in companies}  # as of the last sync
        self._squeezed_companies = {key: name for name in self._companies.values() if (key := squeeze(name))}

    def ground(
        self,
        value: str,
        *,
        target: ObjectSchema | None = None,
        kind: EntityType = "unknown",
        records: FoundRecords = (),
    ) -> list[Grounding]:
        """Return every meaning of a value, the most likely first."""
        text = _clean(value)
        found = [
            *self._patterns(text, target),
            *(self._choices(text, target, kind) if kind not in ("company", "person") else ()),
            *(self._states(text, target) if kind in ("status", "unknown") else ()),
            *self._records(text, target, kind, records),
            *(self._known_company(text, target) if kind in ("company", "unknown") and not records else ()),
            *(self._objects(text) if kind == "unknown" else ()),
        ]
        if not any(item.is_grounded for item in found) and text[:1].isupper():
            found.append(self._guess(text, kind, target))
        return ordered_groundings(found)[:MAX_GROUNDINGS]

    def path_to(self, owner: ObjectSchema, target: ObjectSchema) -> str | None:
        """Return the relationship that leads from one object to another, with its dot."""
        link = self._link(owner, target)
        return f"{link}." if link is not None else None

    def in_field(self, item: ObjectSchema, field: Field, value: str) -> FieldFilter:
        """Return a condition on one field.

        Raises `InvalidInput` if the field cannot be filtered by this value: no filter is better than a wrong one.
        """
        text = _clean(value)
        if field.type in ("address", "location") or not field.filterable:
            parts = [other.name for other in item.fields if other.compound == field.name]
            hint = f" Filter on {', '.join(parts[:3])} instead." if parts else ""
            raise InvalidInput(f"{field.name} ({field.type}) cannot be filtered.{hint}", parameter="field")
        choice, score = best_choice(field, text) if field.choices else (None, 0.0)
        if choice is not None:
            return FieldFilter(f"{field.name} {' '.join(choice_condition(field, choice))}", True, score)
        literal = field_literal(field, text)
        if literal is not None:
            return FieldFilter(literal if literal.startswith("(") else f"{field.name} {literal}", False, 0.9)
        if field.type == "reference" and field.relationship:
            return FieldFilter(f"{self._parent_name(field)} LIKE {like_string(text, before=True)}", False, 0.5)
        if field.type in TEXT_TYPES:
            confidence = 0.3 if field.choices else 0.5
            return FieldFilter(f"{field.name} LIKE {like_string(text, before=True)}", False, confidence)
        raise InvalidInput(f"Invalid value {value!r} for {field.name} ({field.type}).", parameter="value")

    def _parent_name(self, field: Field) -> str:
        target = self._graph.get(field.reference_to[0]) if len(field.reference_to) == 1 else None
        if target is None:
            return f"{field.relationship}.Name"
        if target.name_field is None:
            raise InvalidInput(f"{field.name} holds ids, and what it points to has no name.", parameter="value")
        return f"{field.relationship}.{target.name_field.name}"

    # Patterns

    def _patterns(self, text: str, target: ObjectSchema | None) -> Iterator[Grounding]:
        record = long_id(text) if any(sign.isdigit() for sign in text) else None
        owner = self._graph.by_prefix.get(record[:3]) if record else None
        if record is not None and owner is not None:
            evidence = {"source": "pattern", "pattern": "id", "object": owner.name}
            yield Grounding("record_id", f"{_prefix(owner, target)}Id = {soql_string(record)}", 0.95, evidence)
        elif (dated := self._date(text, target)) is not None:
            yield dated
        elif EMAIL.fullmatch(text):
            yield from self._ground_by_type(text, "email", 0.95, target, ("Contact", "Lead", "User"))
        elif URL.fullmatch(text):
            yield from self._ground_by_type(text, "url", 0.95, target, ("Account", "Lead"))
        elif _is_phone(text):
            yield from self._ground_by_type(text, "phone", 0.85, target, ("Account", "Contact", "Lead"))
        else:
            operator, rest = split_comparison(text)
            number = parse_amount(rest, only_money=operator == "=")
            if number is not None:
                yield from self._amount(operator if operator != "=" else ">=", number, target)

    def _date(self, text: str, target: ObjectSchema | None) -> Grounding | None:
        """Read `last week`, `March 2024`, `since Q1 2024`, `2024`."""
        operator, rest = split_comparison(text)
        period = parse_period(rest, is_year_enough=True)
        owner = target or self._graph.get("Opportunity")
        field = main_date(owner) if owner is not None else None
        if period is None:
            return None
        conditions = period.conditions(field or Field("CreatedDate", "Created Date", "datetime"), operator)
        condition = " AND ".join(" ".join(parts) for parts in conditions)
        value = period.literal or (period.first if period.first == period.last else f"{period.first}/{period.last}")
        is_literal = text.upper().replace(" ", "_") == period.literal
        confidence = 0.98 if is_literal else 0.8 if rest.isdecimal() else 0.95
        return Grounding("date", condition, confidence, {"source": "pattern", "pattern": "date", "value": value})

    def _states(self, text: str, target: ObjectSchema | None) -> Iterator[Grounding]:
        """Read `open` and `closed`, which most objects have as a field."""
        word = fold(text).removesuffix(" status")
        if word not in ("open", "closed"):
            return
        owners = [target] if target is not None else [self._graph.get(name) for name in ("Case", "Opportunity", "Task")]
        for place, owner in enumerate(owners):
            field = owner.field("IsClosed") if owner is not None else None
            if owner is not None and field is not None:
                condition = f"{_prefix(owner, target)}{field.name} = {str(word == 'closed').lower()}"
                evidence = {"source": "category", "object": owner.name, "field": field.name, "value": word}
                is_value = any("Status" in entry.name and word in map(fold, entry.values) for entry in owner.fields)
                confidence = 0.96 if target is not None and not is_value else round(0.92 - 0.02 * place, 2)
                yield Grounding("state", condition, confidence, evidence)

    def _ground_by_type(
        self, text: str, kind: str, confidence: float, target: ObjectSchema | None, likely: tuple[str, ...]
    ) -> Iterator[Grounding]:
        """Ground a value in the field of its type, of the target or of the objects that usually have one."""
        owners = [target] if target is not None else [self._graph.get(name) for name in likely]
        for place, owner in enumerate(owners):
            fields = owner.fields if owner is not None else ()
            found = next((item for item in fields if item.type == kind and item.filterable), None)
            if owner is not None and found is not None:
                evidence = {"source": "pattern", "pattern": kind, "object": owner.name, "field": found.name}
                condition = f"{found.name} = {soql_string(text)}"
                counted_by = count_statement(owner, condition)
                shown = f"{_prefix(owner, target)}{condition}"
                yield Grounding(kind, shown, round(confidence - 0.05 * place, 2), evidence, counted_by)

    def _amount(self, operator: str, number: str, target: ObjectSchema | None) -> Iterator[Grounding]:
        owner = target or self._graph.get("Opportunity")
        if owner is None:
            return
        found = main_amount(owner) or next((item for item in owner.fields if item.type == "currency"), None)
        if found is not None:
            evidence = {"source": "pattern", "pattern": "amount", "object": owner.name, "field": found.name}
            yield Grounding("amount", f"{_prefix(owner, target)}{found.name} {operator} {number}", 0.9, evidence)

    # Picklists

    @cached_property
    def _fields_by_value(self) -> Mapping[str, list[tuple[ObjectSchema, Field, str]]]:
        """Fields by their picklist values and labels, in lower case."""
        fields: dict[str, list[tuple[ObjectSchema, Field, str]]] = {}
        for item in self._graph.objects.values():
            for field in item.fields:
                if not field.filterable or TECHNICAL.search(field.name):
                    continue
                for choice in field.choices:
                    if choice.is_active:
                        for text in {fold(choice.value), fold(choice.label)}:
                            fields.setdefault(text, []).append((item, field, choice.value))
        return fields

    @cached_property
    def _values_by_letter(self) -> Mapping[str, list[str]]:
        values: dict[str, list[str]] = {}
        for value in self._fields_by_value:
            values.setdefault(value[:1], []).append(value)
        return values

    def best_value(self, text: str, item: ObjectSchema) -> ChoiceMatch | None:
        """Return the picklist value of one object that a text most likely means."""
        matches = [
            match._replace(confidence=round(match.confidence * self._names.weight(item), 3))
            for match in self._choice_matches(_clean(text), item, "unknown")
            if match.object is item
        ]
        return min(matches, key=_choice_order, default=None)

    def _choices(self, text: str, target: ObjectSchema | None, kind: EntityType) -> Iterator[Grounding]:
        for match in self._choice_matches(text, target, kind):
            item, field, value, confidence = match
            confidence *= self._names.weight(item)
            prefix = _prefix(item, target)
            if target is not None and item is not target:
                link = self._link(item, target)
                confidence *= RELATED_FACTOR if link is not None else UNRELATED_FACTOR
                prefix = f"{link}." if link is not None else prefix
            condition = f"{prefix}{field.name} {' '.join(choice_condition(field, value))}"
            evidence = {"source": "picklist", "object": item.name, "field": field.name, "value": value}
            yield Grounding("picklist_value", condition, round(confidence, 3), evidence)

    def _choice_matches(self, text: str, target: ObjectSchema | None, kind: EntityType) -> Iterator[ChoiceMatch]:
        folded = fold(text)
        bare = FIELD_SUFFIX.sub("", folded)
        parts = FIELDS_BY_ENTITY.get(kind, ())
        exact = [
            entry
            for variant in sorted({folded, folded.replace("-", " "), folded.replace(" ", "-")})
            for entry in self._fields_by_value.get(variant, ())
            if not parts or any(part in entry[1].name.lower() for part in parts)
        ]
        for entry in exact:
            yield ChoiceMatch(*entry, 0.95)
        is_known = any(target is None or item is target for item, _, _ in exact)
        if not is_known and bare != folded:
            word = folded[len(bare) :].strip()
            for item, field, value in self._fields_by_value.get(bare, ()):
                if word in field.name.lower() or word in field.label.lower():
                    yield ChoiceMatch(item, field, value, 0.9)
        synonym = VALUE_SYNONYMS.get(folded) or VALUE_SYNONYMS.get(bare)
        if synonym is not None and not is_known:
            yield from self._synonym_matches(*synonym, parts)
        elif not exact and len(folded) >= MIN_FUZZY_LENGTH and not parts:
            yield from self._fuzzy_matches(folded)

    def _synonym_matches(self, name: str, value: str, confidence: float, parts: Sequence[str]) -> Iterator[ChoiceMatch]:
        if parts and not any(part in name.lower() for part in parts):
            return
        for item, field, known in self._fields_by_value.get(fold(value), ()):
            if field.name.lower() == name.lower():
                yield ChoiceMatch(item, field, known, confidence)

    def _fuzzy_matches(self, folded: str) -> Iterator[ChoiceMatch]:
        """Find values with a typo or two; the first letter is right."""
        for known in self._values_by_letter.get(folded[0], ()):
            if score := similarity(folded, known):
                for entry in self._fields_by_value[known]:
                    yield ChoiceMatch(*entry, 0.8 * score)

    # Records and objects

    def _records(
        self, text: str, target: ObjectSchema | None, kind: EntityType, records: FoundRecords
    ) -> Iterator[Grounding]:
        allowed = OBJECTS_BY_ENTITY.get(kind)
        for name, label, record in records:
            owner = self._graph.get(name)
            if owner is None or owner.name_field is None or (allowed and owner.name not in allowed):
                continue
            condition, confidence = _name_condition(text, label)
            if not condition:
                continue
            evidence = {"source": "sosl_verified", "object": owner.name, "value": label, "id": record}
            type_name = TYPE_NAMES.get(owner.name, f"{owner.name.lower()}_name")
            name_path = owner.name_field.name
            path = f"{self._path_to(owner, target)}{name_path}"
            counted_by = "" if condition.startswith("=") else count_statement(owner, f"{name_path} {condition}")
            yield Grounding(type_name, f"{path} {condition}", confidence, evidence, counted_by)

    def _known_company(self, text: str, target: ObjectSchema | None) -> Iterator[Grounding]:
        name = self._companies.get(fold(text))
        owner = self._graph.get("Account")
        if name is not None and owner is not None:
            evidence = {"source": "semantic", "object": "Account", "value": name, "why": "a name the last sync saw"}
            path = self._path_to(owner, target)
            condition = f"Name = {soql_string(name)}"
            counted_by = count_statement(owner, condition)
            yield Grounding("account_name", f"{path}{condition}", 0.85, evidence, counted_by)

    def company(self, text: str) -> str | None:
        """Return the company with this name, or one whose name begins with this word."""
        folded = fold(text)
        if folded in self._companies:
            return self._companies[folded]
        return next((name for key, name in self._companies.items() if key.split()[:1] == [folded]), None)

    def company_filter(self, words: Sequence[str], target: ObjectSchema) -> tuple[str, str] | None:
        """Return the path and the value that select a company by its whole name, if the target points to companies."""
        name, owner = self._squeezed_companies.get(squeeze("".join(words))), self._graph.get("Account")
        if name is None or owner is None or (target is not owner and self._link(owner, target) is None):
            return None
        return f"{self._path_to(owner, target)}Name", soql_string(name)

    def _path_to(self, owner: ObjectSchema, target: ObjectSchema | None) -> str:
        """Return the prefix that fields of one object have in a query of another."""
        if target is owner:
            return ""
        link = self._link(owner, target) if target is not None else None
        return f"{link or owner.name}."

    def _link(self, owner: ObjectSchema, target: ObjectSchema) -> str | None:
        """Return the relationship by which one object points to another."""
        links = [edge.field for edge in self._graph.parents(target.name) if edge.parent == owner.name]
        plain = [str(link.relationship) for link in links if len(link.reference_to) == 1 and link.relationship]
        return owner.name if owner.name in plain else plain[0] if plain else None

    def _objects(self, text: str) -> Iterator[Grounding]:
        for item, score, why in self._names.find(text)[:2]:
            evidence = {"source": "semantic", "object": item.name, "why": why}
            confidence = round(score * (0.7 + 0.3 * self._names.weight(item)), 3)
            yield Grounding("object", f"FROM {item.name}", confidence, evidence)

    def _guess(self, text: str, kind: EntityType, target: ObjectSchema | None) -> Grounding:
        owner = self._graph.get("Contact" if kind == "person" else "Account") or target
        path = self._path_to(owner, target) if owner is not None else ""
        name = owner.name_field.name if owner is not None and owner.name_field else "Name"
        type_name = TYPE_NAMES.get(owner.name, "unknown") if owner is not None else "unknown"
        return Grounding(type_name, f"{path}{name} LIKE {like_string(text)}", 0.4, {"source": "none", "value": text})

    def explain_unknown_name(self, name: str, owner: ObjectSchema) -> str | None:
        """Return what the validator says of an unknown name that is really a value."""
        if not name[:1].isupper() or "__" in name:
            return None
        text = split_camel_case(name)
        target = owner if owner.fields else None
        for item in self.ground(text, target=target):
            if item.type == "picklist_value" and item.confidence >= MIN_VALUE_FOR_NAME:
                return f'"{name}" looks like a picklist value, not a field or object. Use {item.filter}.'
        company = self.company(text)
        if company is None:
            return None
        kind = f"a field of {owner.name}" if owner.fields else "an object"
        condition = f"Account.Name LIKE {like_string(text)}"
        return f'"{name}" looks like the name of a company ({company}), not {kind}. Use {condition}.'


def count_statement(item: ObjectSchema, condition: str) -> str:
    """Return the statement that counts the records of an object for which a condition holds."""
    return build_select(["COUNT()"], item.name, [f"WHERE {condition}"])


def ordered_groundings(found: Iterable[Grounding]) -> list[Grounding]:
    """Return each filter once, the most likely first."""
    best: dict[str, Grounding] = {}
    for item in found:
        if item.filter not in best or best[item.filter].confidence < item.confidence:
            best[item.filter] = item
    return sorted(best.values(), key=lambda item: (-item.confidence, len(item.filter), item.filter))


def _name_condition(text: str, label: str) -> tuple[str, float]:
    """Return the condition on a name that a search found, and how sure it is; none if another field matched."""
    given, found = fold(text), fold(label)
    if given == found:
        return f"= {soql_string(label)}", 0.92
    if found.startswith(given):
        return f"LIKE {like_string(text)}", 0.85
    if given in found:
        return f"LIKE {like_string(text, before=True)}", 0.8
    is_reordered = sorted(given.split()) == sorted(found.split())
    return (f"= {soql_string(label)}", 0.85) if is_reordered else ("", 0.0)


def _clean(value: str) -> str:
    return value.strip().strip("\"'")


def _is_phone(text: str) -> bool:
    digits = sum(sign.isdigit() for sign in text)
    return digits >= MIN_PHONE_DIGITS and bool(PHONE.fullmatch(text)) and not DATE_LIKE.fullmatch(text)


def _choice_order(match: ChoiceMatch) -> tuple[float, int, str]:
    """The most likely first, then the shortest condition."""
    condition = f"{match.field.name} {' '.join(choice_condition(match.field, match.value))}"
    return -match.confidence, len(condition), condition


def _prefix(item: ObjectSchema, target: ObjectSchema | None) -> str:
    return "" if target is item else f"{item.name}."
