"""The diary toolset: list, read and write entries."""

from datetime import date

from pydantic import Field

from acme_diary.service import DiaryService, Entry
from bedstone.services.service import Handle
from bedstone.toolkit import Arguments, NoArguments, Result, Toolset, tool


class ReadEntry(Arguments):
    day: date = Field(description="Day of the entry, as YYYY-MM-DD")


class WriteEntry(Arguments):
    day: date = Field(description="Day of the entry, as YYYY-MM-DD")
    text: str = Field(description="Paragraph to add to the entry", min_length=1, max_length=10_000)


class EntryText(Result):
    day: date
    text: str = Field(description="The whole entry")

    @classmethod
    def of(cls, entry: Entry) -> "EntryText":
        return cls(day=entry.day, text=entry.text)


class Days(Result):
    days: list[date] = Field(description="Days with an entry, the newest first")


class DiaryToolset(Toolset):
    """Offers the diary to agents."""

    label = "diary"
    title = "Diary"
    server_name = "acme-diary"
    instructions = "A diary: diary-list names the days with an entry, diary-read returns the entry of a day."

    def __init__(self, diary: Handle[DiaryService], *, read_only: bool = False) -> None:
        super().__init__(diary, read_only=read_only)
        self._diary = diary

    @tool("diary-list", "List the days that have an entry, the newest first.", title="List entries")
    async def list_days(self, _: NoArguments) -> Days:
        """List the days with an entry."""
        entries = await self._diary.run(lambda diary: diary.entries())
        return Days(days=[entry.day for entry in entries])

    @tool("diary-read", "Read the entry of one day.", title="Read an entry")
    async def read(self, arguments: ReadEntry) -> EntryText:
        """Return the entry of a day; `EntryNotFound` becomes the error `entry_not_found`."""
        return EntryText.of(await self._diary.run(lambda diary: diary.entry(arguments.day)))

    @tool("diary-write", "Add a paragraph to an entry.", title="Write an entry", read_only=False, idempotent=False)
    async def write(self, arguments: WriteEntry) -> EntryText:
        """Add a paragraph; with --read-only, Bedstone refuses the call before it comes here."""
        return EntryText.of(await self._diary.run(lambda diary: diary.append(arguments.day, arguments.text)))
