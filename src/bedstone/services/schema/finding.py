"""Objects and fields as a source of the search over everything, scored like passages of text."""

from collections.abc import Sequence
from heapq import nsmallest
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from bedstone.salesforce.graph.model import Field, ObjectSchema
from bedstone.salesforce.graph.names import suggest
from bedstone.salesforce.validation.scope import suggest_object
from bedstone.search.matching import Matcher
from bedstone.search.relevance import QueryTerms, nearness, relevance
from bedstone.search.snippets import snippet
from bedstone.services.catalog import STEP, FetchedText, FindRequest, Found, FoundItem
from bedstone.services.schema.errors import UnknownName
from bedstone.services.schema.search import Match, SchemaSearch
from bedstone.services.service import NamedPage, format_count, parse_time

if TYPE_CHECKING:
    from bedstone.services.schema.service import OrgSchema

OBJECT = "object"
FIELD = "field"
SCHEMES = (OBJECT, FIELD)
MAX_VALUES = 20  # of a picklist, in a line
MIN_CANDIDATES = 60  # of each kind that are scored: the search for names ranks by other evidence than the scores
MAX_NEAREST = 3
TYPE_NAMES = {
    "string": "Text",
    "double": "Number",
    "int": "Number",
    "boolean": "Checkbox",
    "reference": "Reference",
    "datetime": "Date and time",
    "multipicklist": "Multi-select picklist",
}


def find_names(org: "OrgSchema", request: FindRequest, prefix: str = "") -> Found:
    """Return the best objects and fields; `prefix` begins the ids of an org that is not the default one."""
    candidates = max(MIN_CANDIDATES, request.limit)
    matches = [
        match
        for kind in ("objects", "fields")
        for match in org.search.search(request.query, kind, limit=candidates, mode=request.mode)
    ]
    matcher = Matcher(request.query)
    terms = QueryTerms(matcher.terms, org.search.entry_count, org.search.document_frequency)
    scored = sorted(
        ((_score(org.search, match, matcher, terms), match) for match in matches), key=lambda pair: -pair[0]
    )
    return Found([_to_item(org, match, score, request, prefix) for score, match in scored[: request.limit]])


def item_id(match: Match, prefix: str = "") -> str:
    """Return the id of an object or field: `field:Account.Industry`."""
    item, field = match.object, match.field
    return f"{FIELD}:{prefix}{item.name}.{field.name}" if field is not None else f"{OBJECT}:{prefix}{item.name}"


def _score(search: SchemaSearch, match: Match, matcher: Matcher, terms: QueryTerms) -> float:
    """Return the relevance of an object or field, by the model that scores passages."""
    names, rest = _names(match), _description(match)
    near = nearness(match.cosine, search.min_similarity)
    evidence = terms.weigh(matcher.find(f"{rest}\n{names}"), len(rest), near)
    return relevance(terms, evidence, "hybrid" if near is not None else "keyword")


def _names(match: Match) -> str:
    item, field = match.object, match.field
    own = (field.label, field.name, _words(field.name)) if field is not None else (item.plural,)
    return "\n".join((*own, item.label, item.name, _words(item.name)))


def _words(name: str) -> str:
    return name.removesuffix("__c").replace("_", " ")


def _description(match: Match) -> str:
    return describe_field(match.object, match.field) if match.field is not None else describe_object(match.object)


def _to_item(org: "OrgSchema", match: Match, score: float, request: FindRequest, prefix: str) -> FoundItem:
    item, field = match.object, match.field
    text = _description(match)
    own_label, own_name = (field.label, field.name) if field is not None else (item.label, item.name)
    return FoundItem(
        id=item_id(match, prefix),
        title=own_label if own_label == own_name else f"{own_label} ({own_name})",
        location=f"Schema{STEP}{item.name}" if field is not None else "Schema",
        address=page_address(item, field, prefix, request.query),
        snippet=snippet(text, Matcher(request.query)),
        matched_by=_matched_by(match),
        why="" if match.why == "meaning" else match.why,
        score=round(score, 4),
        origin=f"org {org.name}",
        anchor=field.name if field is not None else None,
        span=(0, len(text)),
        section=item.name,
        text=text if field is None else describe_holding(field),  # so that a field that many objects have is shown once
        changed_at=parse_time(org.facts.get("synced_at")),
    )


def _matched_by(match: Match) -> str:
    if match.why == "meaning":
        return "semantic"
    return "keyword" if match.cosine is None else "keyword and semantic"


def page_address(item: ObjectSchema, field: Field | None, prefix: str = "", query: str = "") -> str:
    """Return the page of an object, with a field of it highlighted."""
    org = prefix.rstrip("/")
    at = f"/salesforce/orgs/{quote(org, safe='')}" if org else "/salesforce"
    given = {"fields": field.name if field is not None else "", "q": query}
    chosen = urlencode({key: value for key, value in given.items() if value})
    anchor = f"#field-{field.name}" if field is not None else ""
    return f"{at}/objects/{quote(item.name)}{'?' if chosen else ''}{chosen}{anchor}"


def find_objects(org: "OrgSchema", text: str, limit: int, prefix: str = "") -> list[NamedPage]:
    """Return the objects whose labels or names have a text; those that begin with it come first."""
    text = text.lower()
    names = ((item.label.lower(), name, item) for name, item in org.graph.objects.items())
    found = (
        (not label.startswith(text), not name.startswith(text), len(label), name, item)
        for label, name, item in names
        if text in label or text in name
    )
    best = [item for *_, item in nsmallest(limit, found)]
    return [NamedPage(item.label, page_address(item, None, prefix), item.name) for item in best]


def fetch_name(org: "OrgSchema", scheme: str, name: str, prefix: str = "") -> FetchedText:
    """Return an object with its fields, or one field, as text."""
    object_name, _, field_name = name.partition(".")
    item = org.graph.get(object_name)
    field = item.field(field_name) if item is not None and field_name else None
    if item is None or (scheme == FIELD) != (field is not None):
        raise UnknownName(_explain(org, scheme, name))
    facts = {"org": org.name, "synced": org.facts.get("synced_at", "")}
    identity = f"{scheme}:{prefix}{item.name}{f'.{field.name}' if field is not None else ''}"
    address = page_address(item, field, prefix)
    if field is not None:
        title = f"{item.name}.{field.name}"
        return FetchedText(identity, title, describe_field(item, field), address, f"org {org.name}", facts=facts)
    lines = [describe_object(item), "", "Fields:", *(f"- {_field_line(other)}" for other in item.fields)]
    if children := [child for child in item.children if child.relationship]:
        lines += ["", "Child relationships:"]
        lines += [f"- {child.relationship}: {child.object}.{child.field}" for child in children]
    return FetchedText(identity, item.label, "\n".join(lines), address, f"org {org.name}", facts=facts)


def describe_object(item: ObjectSchema) -> str:
    """Return what an object is, in a sentence or two."""
    kind = "Custom object" if item.is_custom else "Standard object"
    targets = list(dict.fromkeys(target for field in item.fields for target in field.reference_to))
    points = f" References {_join_names(targets)}." if targets else ""
    return (
        f"{kind} {item.label} ({item.name}), plural {item.plural}, {format_count(len(item.fields), 'field')}.{points}"
    )


def describe_field(item: ObjectSchema, field: Field) -> str:
    """Return what a field holds, in a sentence or two."""
    return f"{field.label} ({field.name}) of {item.label} ({item.name}). {describe_holding(field)}"


def describe_holding(field: Field) -> str:
    """Return what a field holds, in any object that has it."""
    parts = [f"{TYPE_NAMES.get(field.type, field.type.capitalize())} {field.label}."]
    if field.help:
        parts.append(field.help.strip())
    if field.reference_to:
        parts.append(f"References {_join_names(field.reference_to)}.")
    if field.values:
        parts.append(f"Values: {_join_names(field.values)}.")
    return " ".join(parts)


def _field_line(field: Field) -> str:
    holds = [f"references {_join_names(field.reference_to)}"] if field.reference_to else []
    holds += [f"values {_join_names(field.values)}"] if field.values else []
    holds += [] if field.nillable else ["required"]
    return f"{field.name} ({field.label}): {'; '.join([field.type, *holds])}"


def _join_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_VALUES} more" if len(names) > MAX_VALUES else ""
    return ", ".join(names[:MAX_VALUES]) + more


def _explain(org: "OrgSchema", scheme: str, name: str) -> str:
    """Say that a name is unknown, with the nearest ones."""
    object_name, _, field_name = name.partition(".")
    item = org.graph.get(object_name)
    if item is not None and field_name:
        names = suggest(field_name, {field.name: field.label for field in item.fields}).names
        near = [f"{FIELD}:{item.name}.{other}" for other in names]
    else:
        alike = list(suggest_object(object_name, org.graph).names)
        found = [match.object.name for match in org.search.search(object_name, "objects", limit=MAX_NEAREST)]
        near = [f"{OBJECT}:{other}" for other in dict.fromkeys([*alike, *found])][:MAX_NEAREST]
    guess = f" Nearest: {', '.join(near)}." if near else ""
    return f"{org.name} has no {scheme} {name!r}.{guess}"
