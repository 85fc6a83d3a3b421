"""The pages of the diary: every entry, and one."""

from datetime import date

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from acme_diary.service import DiaryService, EntryNotFound
from bedstone.services.service import Handle
from bedstone.web.frame import Pages


def diary_routes(pages: Pages) -> list[BaseRoute]:
    """Return /diary and /diary/{day}."""
    diary: Handle[DiaryService] = pages.services["diary"]

    async def list_entries(request: Request) -> Response:
        entries = await diary.run(lambda service: service.entries())
        return pages.render(request, "diary/entries.html", page="diary", entries=entries)

    async def show_entry(request: Request) -> Response:
        day = _parse_day(request.path_params["day"])
        entry = await diary.run(lambda service: service.entry(day))
        return pages.render(request, "diary/entry.html", page="diary", entry=entry)

    return [Route("/diary", list_entries), Route("/diary/{day}", show_entry)]


def _parse_day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise EntryNotFound(f"Not a day: {text!r}. Write it as YYYY-MM-DD.") from error
