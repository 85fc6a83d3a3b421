"""Shared by the groups of tools: the schema of an org, and lookups of objects and fields by name."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bedstone.errors import InvalidInput, NotFound
from bedstone.toolkit import Toolset

if TYPE_CHECKING:  # the engine is imported on first use, not when a server starts
    from bedstone.salesforce.graph.model import Field, ObjectSchema
    from bedstone.services.schema.service import OrgSchema, SchemaService
    from bedstone.services.service import Handle


class ObjectNotFound(NotFound):
    """No object has this name."""


class GraphTools(Toolset):
    """Base of the groups of tools. `categories` overrides the category of objects, by name."""

    def __init__(
        self, schemas: "Handle[SchemaService]", categories: Mapping[str, str], *, read_only: bool = False
    ) -> None:
        super().__init__(schemas, read_only=read_only)
        self._schemas = schemas
        self._categories = categories

    async def _org(self, org_id: str | None) -> "OrgSchema":
        return await (await self._schemas.open()).org(org_id)


def object_of(org: "OrgSchema", name: str) -> "ObjectSchema":
    """Return an object by its name, ignoring case."""
    found = org.graph.get(name.strip())
    if found is None:
        from bedstone.salesforce.validation.scope import suggest_object  # noqa: PLC0415 - with the engine

        near = suggest_object(name, org.graph).names
        hint = f" Did you mean {near[0]}?" if near else ""
        reason = org.graph.problems.get(name)
        problem = f" It could not be synced: {reason}" if reason else ""
        raise ObjectNotFound(
            f"Object {name!r} does not exist in this org.{hint}{problem}", details={"suggestions": list(near)}
        )
    return found


def target_of(org: "OrgSchema", name: str | None) -> "ObjectSchema | None":
    """Return an object by its name, or None without a name."""
    return object_of(org, name) if name else None


def field_of(item: "ObjectSchema", name: str) -> "Field":
    """Return a field by its name, ignoring case."""
    found = item.field(name.strip())
    if found is None:
        from bedstone.salesforce.graph.names import suggest  # noqa: PLC0415 - with the engine

        near = suggest(name, {field.name: field.label for field in item.fields}).names
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise InvalidInput(
            f"Field {name!r} does not exist on {item.name}.{hint}", parameter="field", suggestions=list(near)
        )
    return found
