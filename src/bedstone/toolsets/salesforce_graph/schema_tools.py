"""Tools about objects, fields and the paths between them."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from anyio import to_thread

from bedstone.toolkit import Reply, tool
from bedstone.toolsets.salesforce_graph.base import GraphTools, field_of, object_of, target_of
from bedstone.toolsets.salesforce_graph.contract import (
    Category,
    CategoryAlternative,
    CompareSchemas,
    ExploreRelationships,
    FindObject,
    FindRelated,
    FoundObject,
    FoundPaths,
    GetObject,
    GraphArguments,
    GraphStatus,
    ListObjects,
    ObjectDetails,
    OrgLine,
    OrgList,
    RelatedObjects,
    SchemaCategory,
    SchemaChange,
    SchemaChanges,
    SemanticSearch,
)
from bedstone.toolsets.salesforce_graph.cursor import make_cursor, parse_cursor

MAX_CHANGES = 500


class SchemaTools(GraphTools):
    """Tools for objects, their fields and their relationships."""

    @tool("list-objects", "Lists all Salesforce objects in the metadata graph.", title="List objects")
    async def list_objects(self, arguments: ListObjects) -> Reply:
        """Compact rows, at most a thousand at once."""
        from bedstone.toolsets.salesforce_graph.views import object_line  # noqa: PLC0415 - with the engine

        org = await self._org(arguments.org_id)
        wanted = (arguments.search or "").lower()
        rows = [
            line
            for item in org.graph.objects.values()
            if wanted in item.name.lower() or wanted in item.label.lower()
            if (line := object_line(item, org.graph))["category"] == (arguments.category or line["category"])
        ]
        start = parse_cursor(arguments.cursor)
        page = rows[start : start + arguments.limit]
        end = start + len(page)
        cursor = make_cursor(end) if end < len(rows) else None
        structured: dict[str, Any] = {"items": page, "nextCursor": cursor, "truncated": cursor is not None}
        is_cut = cursor is not None and "limit" not in arguments.model_fields_set  # callers know their own limit
        note = f"Objects {start + 1:,} to {end:,} of {len(rows):,}. For the next ones pass cursor {cursor!r}."
        return Reply(page, structured=structured, note=note if is_cut else None)

    @tool("get-object", "Gets detailed information about a specific Salesforce object.", title="Get object", large=True)
    async def get_object(self, arguments: GetObject) -> ObjectDetails:
        """Object, fields, relationships; of a large object a page of those that match."""
        from bedstone.toolsets.salesforce_graph.views import Part, object_details  # noqa: PLC0415

        org = await self._org(arguments.org_id)
        item = object_of(org, arguments.api_name)
        start = parse_cursor(arguments.cursor)
        part = Part((arguments.search or "").strip(), (arguments.type or "").strip(), start, arguments.limit)
        return await to_thread.run_sync(object_details, item, org.graph, part)

    @tool(
        "find-object",
        "Checks if a specific Salesforce object exists in the graph and returns summary information. Useful for "
        "verifying object API names before query planning.",
        title="Find object",
    )
    async def find_object(self, arguments: FindObject) -> FoundObject:
        """Yes with its neighbours, or no with the nearest names."""
        from bedstone.salesforce.validation.scope import suggest_object  # noqa: PLC0415
        from bedstone.toolsets.salesforce_graph.views import hints  # noqa: PLC0415

        org = await self._org(arguments.org_id)
        item = org.graph.get(arguments.object_api_name.strip())
        if item is None:
            near = list(suggest_object(arguments.object_api_name, org.graph).names)
            named = [found.name for found, _, _ in org.search.names.find(arguments.object_api_name)[:3]]
            return FoundObject(
                found=False,
                api_name=None,
                label=None,
                relationship_hints=[],
                suggestions=list(dict.fromkeys([*named, *near])),
            )
        related, left_out = hints(item, org.graph)
        return FoundObject(
            found=True,
            api_name=item.name,
            label=item.label,
            relationship_hints=related,
            relationship_hints_left_out=left_out or None,
        )

    @tool(
        "explore-relationships",
        "Finds paths between two Salesforce objects in the metadata graph. Returns SOQL-ready metadata for generating "
        "relationship queries.",
        title="Explore relationships",
    )
    async def explore(self, arguments: ExploreRelationships) -> FoundPaths:
        """The best ways, both directions; never all of them."""
        from bedstone.toolsets.salesforce_graph.views import path  # noqa: PLC0415

        org = await self._org(arguments.org_id)
        source = object_of(org, arguments.source_object_api_name)
        target = object_of(org, arguments.target_object_api_name)
        found = await to_thread.run_sync(
            lambda: org.paths.find(
                source.name,
                target.name,
                max_depth=arguments.max_depth,
                limit=arguments.max_paths,
                audit=arguments.include_audit,
            )
        )
        return FoundPaths(
            source_object=source.name,
            target_object=target.name,
            path_count=len(found.paths),
            paths=[path(item, org.graph) for item in found.paths],
            truncated=found.truncated or None,
        )

    @tool(
        "find-related-objects",
        "Finds all objects related to a specific Salesforce object.",
        title="Find related objects",
    )
    async def find_related(self, arguments: FindRelated) -> RelatedObjects:
        """Objects by distance; of very many, a page of the nearest."""
        from bedstone.toolsets.salesforce_graph.views import related_objects  # noqa: PLC0415

        org = await self._org(arguments.org_id)
        item = object_of(org, arguments.object_api_name)
        start = parse_cursor(arguments.cursor)
        rings, _ = await to_thread.run_sync(
            org.paths.find_related, item.name, arguments.max_depth, len(org.graph.objects)
        )
        return related_objects(item.name, rings, start, arguments.limit, arguments.max_depth)

    @tool("semantic-search", "Find objects or fields using semantic similarity search.", title="Search the schema")
    async def semantic_search(self, arguments: SemanticSearch) -> Reply:
        """Objects, or fields, with why they match."""
        org = await self._org(arguments.org_id)
        target = target_of(org, arguments.target_object)
        kind = "fields" if target is not None else arguments.search_type
        matches = await to_thread.run_sync(
            lambda: org.search.search(arguments.query, kind, target=target, limit=arguments.top_k)
        )
        rows = [
            {
                "type": "field" if match.field else "object",
                "object": match.object.name,
                "apiName": match.field.name if match.field else match.object.name,
                "label": match.field.label if match.field else match.object.label,
                "score": match.score,
                "why": match.why,
            }
            for match in matches
        ]
        return Reply(rows, structured={"items": rows, "nextCursor": None, "truncated": False})

    @tool(
        "get-schema-category",
        "Get the semantic category of an object or field based on graph structure analysis.",
        title="Schema category",
    )
    async def schema_category(self, arguments: SchemaCategory) -> Category:
        """The category that counts, and the others that fit."""
        from bedstone.salesforce.graph.categories import field_verdicts, object_verdicts  # noqa: PLC0415

        org = await self._org(arguments.org_id)
        item = object_of(org, arguments.object_name)
        if arguments.field_name is not None:
            verdicts = field_verdicts(field_of(item, arguments.field_name))
        else:
            verdicts = object_verdicts(item, org.graph)
        first, *others = verdicts
        manual = self._categories.get(item.name) if arguments.field_name is None else None
        if manual is not None:
            return Category(category=manual, confidence=1.0, source="manual")
        rest = {
            verdict.category: verdict.confidence for verdict in reversed(others) if verdict.category != first.category
        }
        return Category(
            category=first.category,
            confidence=first.confidence,
            source="heuristic",
            reason=first.reason,
            alternatives=[CategoryAlternative(category=name, confidence=value) for name, value in rest.items()] or None,
        )

    # Additions

    @tool("check-graph-status", "Tells what the graph holds, from where and how old it is.", title="Graph status")
    async def status(self, arguments: GraphArguments) -> GraphStatus:
        """Counts, age, objects that could not be read."""
        from bedstone.services.schema.sync import ORG_ID, SOURCE, SYNCED_AT  # noqa: PLC0415

        org = await self._org(arguments.org_id)
        known = self._schemas.get().find_org(org.name)
        synced = org.facts.get(SYNCED_AT)
        age = None
        if synced:
            age = round((datetime.now(UTC) - datetime.fromisoformat(synced)).total_seconds() / 3600, 2)
        capabilities = ["validate", "search", "paths", "samples", *(["execute", "verify"] if known.org else [])]
        return GraphStatus(
            org=org.name,
            org_id=org.facts.get(ORG_ID) or None,
            source=org.facts.get(SOURCE),
            objects=len(org.graph.objects),
            fields=org.graph.field_count,
            last_sync=synced,
            age_hours=age,
            errors=dict(org.graph.problems),
            capabilities=capabilities,
        )

    @tool("list-orgs", "Lists the orgs this server knows.", title="List orgs")
    async def list_orgs(self, _: GraphArguments) -> OrgList:
        """Orgs that were logged into, and imported schemas."""
        from bedstone.services.schema.sync import ORG_ID, SYNCED_AT  # noqa: PLC0415

        lines = []
        for known in await self._schemas.run(lambda schemas: schemas.known_orgs()):
            facts = known.store.facts()
            lines.append(
                OrgLine(
                    alias=known.name,
                    org_id=facts.get(ORG_ID) or None,
                    instance=known.org.url or None if known.org else None,
                    read_only=known.org.read_only if known.org else True,
                    synced=bool(facts.get(SYNCED_AT)),
                )
            )
        return OrgList(orgs=lines)

    @tool(
        "compare-schemas",
        "Compares two orgs' schemas: what the other org has more, less or otherwise.",
        title="Compare schemas",
    )
    async def compare(self, arguments: CompareSchemas) -> SchemaChanges:
        """From this org to the other one."""
        from bedstone.salesforce.graph.compare import compare_schemas  # noqa: PLC0415

        mine = await self._org(arguments.org_id)
        theirs = await self._org(arguments.other_org_id)
        if arguments.object_api_name is not None:
            names = [object_of(mine, arguments.object_api_name).name.lower()]
        else:
            names = sorted({*mine.graph.objects, *theirs.graph.objects})
        changes = compare_schemas(mine.graph, theirs.graph, names)
        return SchemaChanges(
            changes=[SchemaChange.model_validate(asdict(change)) for change in changes[:MAX_CHANGES]],
            truncated=len(changes) > MAX_CHANGES or None,
            changes_left_out=len(changes[MAX_CHANGES:]) or None,
        )
