"""Routes of the REST API, and what they share: the org, its faults, and the objects a user can see."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TypeVar

from bedstone.salesforce.demo_org.content.objects import KNOWLEDGE
from bedstone.salesforce.demo_org.errors import ApiError, not_found
from bedstone.salesforce.demo_org.faults import Faults
from bedstone.salesforce.demo_org.org import DemoOrg
from bedstone.salesforce.demo_org.rest.messages import Response
from bedstone.salesforce.demo_org.schema import ObjectType
from bedstone.salesforce.soql import SyntaxProblem

Handler = Callable[..., Response]  # called with the request, the path of the API version, and the groups of the pattern
Method = TypeVar("Method", bound=Handler)


def route(methods: str, pattern: str) -> Callable[[Method], Method]:
    """Declare the HTTP methods of a handler, and the pattern of the path below the API version."""

    def declare(handler: Method) -> Method:
        handler.route = (methods, pattern)  # type: ignore[attr-defined]
        return handler

    return declare


class ApiState:
    """The org behind the API; `calls` counts against the daily limit."""

    def __init__(self, org: DemoOrg) -> None:
        self.org = org
        self.faults = Faults()
        self.calls = 0

    @property
    def objects(self) -> list[ObjectType]:
        """Every object a user can see."""
        return [item for item in self.org.schema.objects.values() if self._is_visible(item)]

    def object(self, name: str) -> ObjectType:
        """Return an object by its name."""
        item = self.org.object(name)
        if not self._is_visible(item):
            raise not_found()
        return item

    def _is_visible(self, item: ObjectType) -> bool:
        return item.name != "Name" and not (item.feature == KNOWLEDGE and "knowledge-off" in self.faults)

    def check_knowledge(self, names: Callable[[], Iterable[str]]) -> None:
        """Reject a statement that names an object of Knowledge while that is off or not permitted."""
        if not ("knowledge-off" in self.faults or "no-permission" in self.faults):
            return
        with suppress(SyntaxProblem):  # running the statement reports it
            for name in names():
                item = self.org.schema.get(name)
                if item is not None and item.feature == KNOWLEDGE:
                    raise ApiError("INVALID_TYPE", f"sObject type '{item.name}' is not supported.")


class Routes:
    """A group of handlers."""

    def __init__(self, state: ApiState) -> None:
        self._state = state
        self._org = state.org

    def routes(self) -> Iterator[tuple[str, str, Handler]]:
        """Yield the method, pattern and handler of every route in the group."""
        for name, function in vars(type(self)).items():
            if hasattr(function, "route"):
                methods, pattern = function.route
                for method in methods.split():
                    yield method, pattern, getattr(self, name)
