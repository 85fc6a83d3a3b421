"""The command palette: jump to a page, a document, an object, a tool, or do something with what was typed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlencode

import anyio
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from bedstone.services.service import NamedPage
from bedstone.web.frame import Pages, error_message

MAX_CHARACTERS = 100
PER_GROUP = 5
ACTIONS_ONLY = ">"


@dataclass(frozen=True)
class Entry:
    """A line of the palette."""

    icon: str
    title: Markup
    address: str
    detail: str = ""
    is_search: bool = False


@dataclass(frozen=True)
class Group:
    title: str
    entries: Sequence[Entry]


def palette_routes(pages: Pages) -> list[BaseRoute]:
    """Return /palette, a part that the script of every page shows."""
    icons = {label: spec.navigation[0].icon for label, spec in pages.specs.items() if spec.navigation}

    async def show_palette(request: Request) -> Response:
        text = request.query_params.get("q", "").strip()[:MAX_CHARACTERS]
        only_actions = text.startswith(ACTIONS_ONLY)
        text = text.removeprefix(ACTIONS_ONLY).strip()
        found = await _find_everywhere(pages, text) if text and not only_actions else {}
        groups = [
            Group(pages.services.sources.get(label, label), [_entry(icons[label], page, text) for page in named])
            for label, named in found.items()
        ]
        groups += (
            []
            if only_actions
            else [Group("Pages", list(_places(pages, text))), Group("Tools", list(_tools(pages, text)))]
        )
        groups.sort(key=lambda group: _rank(group, text))
        groups.append(Group("Do", list(_actions(pages, text, found))))
        return pages.render_fragment("palette.html", groups=[group for group in groups if group.entries])

    return [Route("/palette", show_palette)]


async def _find_everywhere(pages: Pages, text: str) -> Mapping[str, Sequence[NamedPage]]:
    """Ask every source for names at once; one that fails hides no other."""
    found: dict[str, Sequence[NamedPage]] = {}

    async def find(label: str) -> None:
        try:
            found[label] = await (await pages.services[label].open()).find_names(text, PER_GROUP)
        except Exception as error:  # noqa: BLE001 - the page of the source says what is wrong
            error_message(error)

    async with anyio.create_task_group() as tasks:
        for label in pages.services.sources:
            tasks.start_soon(find, label)
    return {label: found[label] for label in pages.services.sources if found.get(label)}


def _rank(group: Group, text: str) -> int:
    """Return where a group stands: pages that begin with the text, other names that do, then all others."""
    begins = any(entry.title.striptags().lower().startswith(text.lower()) for entry in group.entries)
    return (0 if group.title == "Pages" else 1) if begins else 2


def _places(pages: Pages, text: str) -> Iterator[Entry]:
    for group in pages.menu.groups:
        for item in group.items:
            if text.lower() in item.title.lower():
                yield Entry(item.icon, _mark(item.title, text), item.address)


def _tools(pages: Pages, text: str) -> Iterator[Entry]:
    tools = [tool for toolset in pages.toolsets.values() for tool in toolset.tools.values()] if text else []
    matching = [tool for tool in tools if text.lower() in tool.name.lower() or text.lower() in tool.title.lower()]
    for tool in matching[:PER_GROUP]:
        yield Entry("tools", _mark(tool.name, text), f"/tools/{quote(tool.name)}", tool.title)


def _actions(pages: Pages, text: str, found: Mapping[str, Sequence[NamedPage]]) -> Iterator[Entry]:
    """Yield what can be done with the typed text, and with the first object that has it."""
    for named in found.get("salesforce_graph", ())[:1]:
        query = urlencode({"q": f"SELECT Id FROM {named.detail} LIMIT 20"})  # noqa: S608 - text for an editor
        yield Entry("soql", Markup("Query ") + _mark(named.title, text), f"/salesforce/soql?{query}", "SOQL")
        path = f"/salesforce/paths?{urlencode({'from': named.detail})}"
        yield Entry("path", Markup("Find a path from ") + _mark(named.title, text) + " to …", path, "Schema")
    if "knowledge" in pages.toolsets and not pages.options.read_only and text.lower() in "add files":
        yield Entry("upload", _mark("Add files", text), "/documents", "Documents")
    if text.lower() in "connect a client":
        yield Entry("plug", _mark("Connect a client", text), "/#connect", "Home")
    if text:
        title = Markup("Search everything for “{}”").format(text)
        yield Entry("search", title, f"/search?{urlencode({'q': text})}", is_search=True)


def _entry(icon: str, page: NamedPage, text: str) -> Entry:
    return Entry(icon, _mark(page.title, text), page.address, page.detail)


def _mark(title: str, text: str) -> Markup:
    """Return a title with the typed text marked and everything else escaped."""
    start = title.lower().find(text.lower()) if text else -1
    if start < 0:
        return escape(title)
    end = start + len(text)
    return escape(title[:start]) + Markup("<mark>{}</mark>").format(title[start:end]) + escape(title[end:])
