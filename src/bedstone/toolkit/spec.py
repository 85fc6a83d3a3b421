"""How the product finds a toolset: its settings, its service, its pages, and when it is on."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from bedstone.toolkit.links import Links

if TYPE_CHECKING:
    from bedstone.services.service import Handle, Service, ServiceContext
    from bedstone.settings import Section, Settings
    from bedstone.toolkit.toolset import Toolset


@dataclass(frozen=True)
class ToolsetContext:
    """What a toolset is built from; `service` is the handle of its own service, if it declares one."""

    settings: "Settings"
    service: "Handle[Any] | None" = None

    @property
    def read_only(self) -> bool:
        """Return whether calls that change something are refused."""
        return self.settings.read_only

    @property
    def links(self) -> Links:
        """Return how answers link to pages."""
        return Links.of(self.settings)


@dataclass(frozen=True)
class NavigationItem:
    """An entry of the page's menu; `icon` is the name of a symbol in `web/static/icons.svg`."""

    key: str
    address: str
    title: str
    icon: str = "file"
    group: Literal["sources", "work"] = "sources"


@dataclass(frozen=True)
class ToolsetSpec:
    """Declares a toolset. References are `module:attribute` and imported when they are needed.

    `toolset` names a class with a classmethod `build(context: ToolsetContext)`. `service` names a function from a
    `ServiceContext` to a `Service`; a server opens it at once if `starts_at_once` says so. `pages` names a function
    from the web frame to routes; they render the files in the folder `templates` of the package `templates` as
    `label/NAME`. `settings` is the section `[label]` of the configuration. `source_title` makes the service a source of
    the search over everything.
    """

    label: str
    toolset: "str | type[Toolset]"
    is_configured: "Callable[[Settings], bool]" = lambda _: False
    settings: "type[Section] | None" = None
    service: "str | Callable[[ServiceContext], Service] | None" = None
    starts_at_once: "Callable[[Settings], bool]" = lambda _: False
    source_title: str | None = None
    pages: str | None = None
    templates: str | None = None
    navigation: tuple[NavigationItem, ...] = ()


def resolve(reference: Any) -> Any:
    """Return what a `module:attribute` reference names; anything else is the thing itself."""
    if not isinstance(reference, str):
        return reference
    module, _, attribute = reference.partition(":")
    return getattr(import_module(module), attribute)
