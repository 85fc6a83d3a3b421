"""What the groups of tools share: the graph of an org, objects by name, errors in the contract's words."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from bedstone.errors import InvalidInput, NotFound
from bedstone.toolkit import Toolset

if TYPE_CHECKING:  # the engine is imported when it is first asked, not when the server starts
    from bedstone.salesforce.graph.model import Field, ObjectSchema
    from bedstone.services.schema.service import GraphService, OrgGraph


class ObjectNotFound(NotFound):
    """No object has that name."""

    code = "NOT_FOUND"


class GraphTools(Toolset):
    """Base of the groups. `categories` are those the operator gave to objects."""

    def __init__(
        self, make_service: "Callable[[], GraphService]", categories: Mapping[str, str], *, read_only: bool = False
    ) -> None:
        super().__init__(read_only=read_only)
        self._make_service = make_service
        self._made: GraphService | None = None
        self._categories = categories

    @property
    def _service(self) -> "GraphService":
        """The schemas, opened when they are first asked for."""
        if self._made is None:
            self._made = self._make_service()
        return self._made

    async def _close(self) -> None:
        if self._made is not None:
            await self._made.close()
            self._made = None

    def orgs(self) -> list[str]:
        """The names of all orgs."""
        return [org.name for org in self._service.known()]

    async def graph(self, org_id: str | None = None) -> "OrgGraph":
        """An org's graph, for whoever shows more of it than a tool does."""
        return await self._service.graph(org_id)

    async def _org(self, org_id: str | None) -> "OrgGraph":
        return await self.graph(org_id)


def object_of(org: "OrgGraph", name: str) -> "ObjectSchema":
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


def target_of(org: "OrgGraph", name: str | None) -> "ObjectSchema | None":
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
