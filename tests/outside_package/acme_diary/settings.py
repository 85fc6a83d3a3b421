"""The section `[diary]` of the configuration."""

from pathlib import Path

from pydantic import Field

from bedstone.settings import Section


class DiarySettings(Section):
    folder: Path | None = Field(None, description="Folder of the diary, one file per day, such as 2031-05-04.txt")
