"""Fields in which records may have a text: titles, departments, cities, countries, mail domains, web sites."""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from bedstone.salesforce.graph.model import ObjectSchema, SchemaGraph
from bedstone.salesforce.questions.gazetteer import COMMON_NAMES, COUNTRIES, REGIONS
from bedstone.salesforce.questions.grounding import Grounding, count_statement
from bedstone.salesforce.soql.quoting import like_string, soql_string

DOMAIN = re.compile(r"@?(?:[\w-]+\.)+[a-z]{2,}", re.IGNORECASE)
MAX_WORDS = 5
STEP = 0.02  # confidence that each less likely field loses
RELATED = 0.15  # confidence that a field of a parent loses against one of the target
PLACES = {
    "City": ("Account.BillingCity", "Contact.MailingCity", "Lead.City", "User.City"),
    "State": ("Account.BillingState", "Contact.MailingState", "Lead.State", "User.State"),
    "Country": ("Account.BillingCountry", "Contact.MailingCountry", "Lead.Country", "User.Country"),
}
TITLES = ("Contact.Title", "Lead.Title", "User.Title", "Contact.Department", "User.Department", "Lead.Company")
MAILS = ("Contact.Email", "Lead.Email", "User.Email")
SITES = ("Account.Website", "Lead.Website")


class Candidate(NamedTuple):
    """A field that may have a text, the condition for it, the type of the text, and how sure that would be."""

    path: str
    condition: str
    type: str
    confidence: float


def text_grounds(
    text: str, graph: SchemaGraph, target: ObjectSchema | None, path_to: Callable[[ObjectSchema], str | None]
) -> Iterator[Grounding]:
    """Yield what a text may mean if records have it; each is a claim only after its rows are counted.

    `path_to` returns the relationship that leads from the target to an object, with its dot.
    """
    for candidate in _candidates(text):
        name, _, field_name = candidate.path.partition(".")
        owner = graph.get(name)
        field = owner.field(field_name) if owner is not None else None
        prefix = "" if owner is target else path_to(owner) if owner is not None and target is not None else f"{name}."
        if owner is None or field is None or not field.filterable or prefix is None:
            continue
        base, shown = (target, prefix) if target is not None else (owner, "")
        yield Grounding(
            candidate.type,
            f"{prefix}{field.name} {candidate.condition}",
            round(candidate.confidence - (RELATED if target is not None and owner is not target else 0), 2),
            {"source": "records", "object": owner.name, "field": field.name, "value": text},
            count_statement(base, f"{shown}{field.name} {candidate.condition}"),
        )


def _candidates(text: str) -> Iterator[Candidate]:
    if DOMAIN.fullmatch(text):
        pattern = like_string(f"@{text.removeprefix('@')}", before=True, after=False)
        yield from _rank_fields(MAILS, f"LIKE {pattern}", "email_domain", 0.9)
        if not text.startswith("@"):
            yield from _rank_fields(SITES, f"LIKE {like_string(text, before=True)}", "website", 0.85)
        return
    if not text or len(text.split()) > MAX_WORDS or not any(sign.isalpha() for sign in text):
        return
    folded = text.casefold()
    kind = "Country" if folded in COUNTRIES else "State" if folded in REGIONS else "City"
    name = COMMON_NAMES.get(folded, text)
    yield from _rank_fields(PLACES[kind], f"= {soql_string(name)}", kind.lower(), 0.92 if kind != "City" else 0.9)
    yield from _rank_fields(TITLES, f"= {soql_string(text)}", "text_value", 0.88)


def _rank_fields(paths: tuple[str, ...], condition: str, kind: str, confidence: float) -> Iterator[Candidate]:
    for place, path in enumerate(paths):
        yield Candidate(path, condition, kind, round(confidence - STEP * place, 2))
