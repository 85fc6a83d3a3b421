"""The diary toolset, declared."""

from acme_diary.settings import DiarySettings
from bedstone.toolkit import NavigationItem, ToolsetSpec

SPEC = ToolsetSpec(
    "diary",
    "acme_diary.toolset:DiaryToolset",
    is_configured=lambda settings: settings.section("diary", DiarySettings).folder is not None,
    settings=DiarySettings,
    service="acme_diary.service:open_diary",
    source_title="Diary",
    pages="acme_diary.pages:diary_routes",
    templates="acme_diary",
    navigation=(NavigationItem("diary", "/diary", "Diary"),),
)
