"""Claims about records, settled by how many rows they match."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from bedstone.salesforce.questions.grounding import MAX_GROUNDINGS, Grounding, ordered_groundings

SURE = 0.9  # confidence of a meaning from which nothing else needs to be counted
UNCHECKED = 0.45  # most confidence of a claim that could not be counted: too little to be one
UNCHECKED_NAME = 0.6  # the same for a name that the last sync saw
NO_ROWS = 0.3
MAX_COUNTS = 20  # statements, in one call


def statements_to_count(found: Iterable[Grounding]) -> list[str]:
    """Return the statements that settle which meanings hold; none if one is sure without."""
    claims = list(found)
    if any(not item.counted_by and item.confidence >= SURE for item in claims):
        return []
    return list(dict.fromkeys(item.counted_by for item in claims if item.counted_by))[:MAX_COUNTS]


def settle(found: Iterable[Grounding], rows: Mapping[str, int]) -> list[Grounding]:
    """Return the meanings, the most likely first; those without rows, or without a count, are less likely."""
    claims = list(found)
    is_settled = not statements_to_count(claims)
    settled = [
        _settle_one(item, rows) for item in claims if not (is_settled and item.evidence.get("source") == "records")
    ]
    kept = [item for item in settled if item.evidence.get("source") != "records" or item.evidence.get("rows") != 0]
    return ordered_groundings(kept)[:MAX_GROUNDINGS]


def _settle_one(item: Grounding, rows: Mapping[str, int]) -> Grounding:
    if not item.counted_by:
        return item
    count = rows.get(item.counted_by)
    if count is None:
        most = UNCHECKED_NAME if item.evidence.get("source") in ("semantic", "pattern") else UNCHECKED
        return replace(item, confidence=min(item.confidence, most), evidence={**item.evidence, "checked": False})
    evidence = {**item.evidence, "checked": True, "rows": count}
    return replace(item, confidence=item.confidence if count else NO_ROWS, evidence=evidence)
