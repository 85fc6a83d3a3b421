"""What the groups of tools share: the graph of an org, objects by name, errors in the contract's words."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bedstone.errors import InvalidInput, NotFound
from bedstone.toolkit import Toolset

if TYPE_CHECKING:  # the engine is imported when it is first asked, not when the server starts
    from bedstone.salesforce.graph.model import Field, ObjectSchema
    from bedstone.services.schema.service import OrgSchema, SchemaService
    from bedstone.services.service import Handle


class ObjectNotFound(NotFound):
    """No object has that name."""

    code = "NOT_FOUND"


class GraphTools(Toolset):
    """Base of the groups of tools. `categories` are the operator's overrides, by object name."""

    def __init__(
        self, schemas: "Handle[SchemaService]", categories: Mapping[str, str], *, read_only: bool = False
    ) -> None:
        super().__init__(schemas, read_only=read_only)
        self._schemas = schemas
        self._categories = categories

    async def _org(self, org_id: str | None) -> "OrgSchema":
        return await (await self._schemas.open()).org(org_id)


def object_of(org: "OrgSchema", name: str) -> "ObjectSchema":
    """An object by its name, whatever the case."""
    found = org.graph.get(name.strip())
    if found is None:
        from bedstone.salesforce.validation.scope import suggest_object  # noqa: PLC0415 - with the engine

        near = suggest_object(name, org.graph).names
        meant = f" Did you mean {near[0]}?" if near else ""
        reason = org.graph.problems.get(name)
        why = f" It could not be synced: {reason}" if reason else ""
        raise ObjectNotFound(
            f"Object {name!r} does not exist in this org.{meant}{why}", details={"suggestions": list(near)}
        )
    return found


def target_of(org: "OrgSchema", name: str | None) -> "ObjectSchema | None":
    """An optional object."""
    return object_of(org, name) if name else None


def field_of(item: "ObjectSchema", name: str) -> "Field":
    """A field by its name, whatever the case."""
    found = item.field(name.strip())
    if found is None:
        from bedstone.salesforce.graph.names import suggest  # noqa: PLC0415 - with the engine

        near = suggest(name, {field.name: field.label for field in item.fields}).names
        meant = f" Nearest: {', '.join(near)}." if near else ""
        raise InvalidInput(
            f"Field {name!r} does not exist on {item.name}.{meant}", parameter="field", suggestions=list(near)
        )
    return found
