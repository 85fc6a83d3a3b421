"""The settings: what can be set, where values come from, and where things are stored."""

from bedstone.settings.loading import (
    CONFIG_VARIABLE,
    DATA_NAME,
    Configuration,
    environment_name,
    installed_sections,
    load_settings,
    local_config,
    setting_fields,
)
from bedstone.settings.sections import CorpusTuning, EmbeddingSettings, LimitSettings, LogSettings, Section, Settings

__all__ = [
    "CONFIG_VARIABLE",
    "DATA_NAME",
    "Configuration",
    "CorpusTuning",
    "EmbeddingSettings",
    "LimitSettings",
    "LogSettings",
    "Section",
    "Settings",
    "environment_name",
    "installed_sections",
    "load_settings",
    "local_config",
    "setting_fields",
]
