"""The diary: a folder with one text file per day."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from pathlib import Path

from anyio import to_thread

from acme_diary.settings import DiarySettings
from bedstone.errors import InvalidSetting, NotFound
from bedstone.search.matching import Matcher
from bedstone.search.snippets import snippet
from bedstone.services.catalog import FetchedText, FindRequest, Found, FoundItem
from bedstone.services.service import Service, ServiceContext, Summary, format_count


class EntryNotFound(NotFound):
    """The diary has no entry for that day."""


@dataclass(frozen=True)
class Entry:
    """The text of one day."""

    day: date
    text: str


class DiaryService(Service):
    """Reads, writes and searches the entries."""

    schemes = ("diary",)  # ids in the search over everything begin with it

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def entries(self) -> list[Entry]:
        """Return every entry, the newest first."""
        paths = sorted(self._folder.glob("????-??-??.txt"), reverse=True)
        return [Entry(date.fromisoformat(path.stem), path.read_text(encoding="utf-8")) for path in paths]

    def entry(self, day: date) -> Entry:
        """Return the entry of a day."""
        path = self._path(day)
        if not path.is_file():
            raise EntryNotFound(f"No entry for {day}. Call diary-list for the days with an entry.", day=str(day))
        return Entry(day, path.read_text(encoding="utf-8"))

    def append(self, day: date, text: str) -> Entry:
        """Add a paragraph to the entry of a day."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with self._path(day).open("a", encoding="utf-8") as file:
            file.write(f"{text.strip()}\n\n")
        return self.entry(day)

    def problems(self) -> Sequence[str]:
        """Return what keeps the diary from working; `/readyz` and the home page report it."""
        return [] if self._folder.is_dir() else [f"The diary folder {self._folder} does not exist."]

    async def summary(self) -> Summary:
        """Return what the home page and the menu show."""
        entries = await to_thread.run_sync(self.entries)
        newest = datetime.combine(entries[0].day, time.min, UTC) if entries else None
        return Summary(format_count(len(entries), "entry", "entries"), len(entries), newest, is_empty=not entries)

    async def find(self, request: FindRequest) -> Found:
        """Return the entries with the most terms of a query: a source of the search over everything."""
        return await to_thread.run_sync(self._find, request)

    def _find(self, request: FindRequest) -> Found:
        matcher = Matcher(request.query)
        items = []
        for entry in self.entries():
            terms = {term for _, _, term in matcher.find(entry.text)}
            if terms:
                items.append(_item(entry, matcher, len(terms) / len(matcher.terms)))
        items.sort(key=lambda item: -(item.score or 0))
        return Found(items[: request.limit])

    async def fetch(self, scheme: str, name: str) -> FetchedText:
        """Return the text of an id that `find` returned."""
        try:
            entry = await to_thread.run_sync(self.entry, date.fromisoformat(name))
        except ValueError:
            raise EntryNotFound(f"{name!r} is not a day. Use an id such as diary:2031-05-04.") from None
        return FetchedText(f"diary:{entry.day}", _title(entry), entry.text, f"/diary/{entry.day}", is_markdown=False)

    def _path(self, day: date) -> Path:
        return self._folder / f"{day}.txt"


def open_diary(context: ServiceContext) -> DiaryService:
    """Open the configured diary."""
    folder = context.settings.section("diary", DiarySettings).folder
    if folder is None:
        raise InvalidSetting("No diary is configured. Set diary.folder, or BEDSTONE_DIARY__FOLDER.")
    return DiaryService(folder)


def _item(entry: Entry, matcher: Matcher, score: float) -> FoundItem:
    return FoundItem(
        id=f"diary:{entry.day}",
        title=_title(entry),
        location="Diary",
        address=f"/diary/{entry.day}",
        snippet=snippet(entry.text, matcher),
        matched_by="keyword",
        score=score,
        text=entry.text,
    )


def _title(entry: Entry) -> str:
    return entry.day.strftime("%d %B %Y")
