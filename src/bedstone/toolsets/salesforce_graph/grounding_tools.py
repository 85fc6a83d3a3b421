"""Tools that read what people say: entities, values, whole questions."""

from typing import TYPE_CHECKING

from anyio import to_thread

from bedstone.toolkit import tool
from bedstone.toolsets.salesforce_graph.base import GraphTools, field_of, object_of, target_of
from bedstone.toolsets.salesforce_graph.contract import (
    FilterRecommendation,
    GroundedEntity,
    GroundEntity,
    Intent,
    IntentFilter,
    MediateIntent,
    RecommendedFilter,
    ResolvedEntity,
    ResolveEntity,
)

if TYPE_CHECKING:
    from bedstone.salesforce.questions.draft import QueryDraft

MAX_VALUES = 50


class GroundingTools(GraphTools):
    """Values and questions."""

    @tool(
        "mediate-query-intent",
        "Analyzes natural language to identify entities, user intent, and required filters.",
        title="Understand a question",
    )
    async def mediate(self, arguments: MediateIntent) -> Intent:
        """The object that is meant, the filters, and what was not understood."""
        from bedstone.salesforce.questions.draft import describe_filters  # noqa: PLC0415 - with the engine

        org = await self._org(arguments.org_id)
        draft = await to_thread.run_sync(org.interpreter.interpret, arguments.query)
        if draft is None:
            return Intent(primary_entity=None, explanation="No object of this org was made out.", filters=[])
        return Intent(
            primary_entity=(draft.subject or draft.object).name,
            explanation=_explain(draft),
            filters=[IntentFilter.model_validate(row) for row in describe_filters(draft.all_filters)],
            intent=draft.intent,
            confidence=draft.confidence,
            ungrounded_terms=draft.ungrounded,
        )

    @tool(
        "resolve-entity",
        "Resolves a specific entity name (company, person, status) to valid SOQL filter patterns using the semantic "
        "grounding service.",
        title="Resolve an entity",
        open_world=True,
    )
    async def resolve(self, arguments: ResolveEntity) -> ResolvedEntity:
        """The surest reading, and others; records are looked up in the org."""
        from bedstone.toolsets.salesforce_graph.views import alternative  # noqa: PLC0415

        org = await self._org(arguments.org_id)
        target = target_of(org, arguments.target_object)
        is_by_name = arguments.entity_type in ("company", "person", "unknown")
        found = await self._schemas.get().ground(
            org, arguments.entity_name, target, arguments.entity_type, by_name=is_by_name
        )
        best = found[0] if found else None
        is_found = best is not None and best.is_grounded
        return ResolvedEntity(
            found=is_found,
            type=best.type if best else None,
            confidence=best.confidence if best else 0.0,
            suggested_filter=best.filter if best else None,
            alternatives=[alternative(item) for item in found[1:]],
            rows=best.evidence.get("rows") if best else None,
        )

    @tool(
        "ground-entity",
        "Ground a value against org data to determine the correct SOQL filter pattern.",
        title="Ground a value",
        open_world=True,
    )
    async def ground(self, arguments: GroundEntity) -> GroundedEntity:
        """A reading with its evidence, or none: a wrong one is worse."""
        from bedstone.toolsets.salesforce_graph.views import alternative  # noqa: PLC0415

        org = await self._org(arguments.org_id)
        target = target_of(org, arguments.target_object)
        found = await self._schemas.get().ground(org, arguments.value, target, by_name=arguments.enable_sosl_fallback)
        best = found[0] if found else None
        return GroundedEntity(
            is_grounded=best is not None and best.is_grounded,
            type=best.type if best else None,
            suggested_filter=best.filter if best else None,
            confidence=best.confidence if best else 0.0,
            evidence=dict(best.evidence) if best else {"source": "none"},
            alternatives=[alternative(item) for item in found[1:]] or None,
        )

    @tool(
        "get-filter-recommendation",
        "Recommends valid SOQL filter syntax for a given field and natural language value, checking against active "
        "picklist values.",
        title="Recommend a filter",
    )
    async def recommend(self, arguments: FilterRecommendation) -> RecommendedFilter:
        """A filter on that field; where the value is none of its values, those are listed."""
        org = await self._org(arguments.org_id)
        item = object_of(org, arguments.sobject)
        field = field_of(item, arguments.field)
        shown, is_picklist, confidence = org.grounder.in_field(item, field, arguments.value)
        values = field.values[:MAX_VALUES] if field.choices and not is_picklist else None
        return RecommendedFilter(
            recommended_filter=shown, is_standard_picklist=is_picklist, confidence=confidence, valid_values=values
        )


def _explain(draft: "QueryDraft") -> str:
    """Why this object is meant, and which words are in no filter."""
    unknown = ", ".join(draft.ungrounded)
    return f"{draft.explanation} Not understood: {unknown}." if unknown else draft.explanation
