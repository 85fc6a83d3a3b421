"""Merge flags, environment variables and configuration files, and remember where each value came from."""

import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from shlex import quote
from typing import Any, get_args

import platformdirs
from pydantic import BaseModel, SecretStr, ValidationError
from pydantic.fields import FieldInfo

from bedstone.errors import BedstoneError, InvalidInput, InvalidSetting
from bedstone.extensions import Kind
from bedstone.permissions import is_exposed
from bedstone.settings.sections import Section, Settings, as_list
from bedstone.user_paths import parse_path

logger = logging.getLogger(__name__)

CONFIG_NAME = "bedstone.toml"
DATA_NAME = ".bedstone"
PREFIX = "BEDSTONE_"
CONFIG_VARIABLE = "BEDSTONE_CONFIG"
PASSWORD = re.compile(r"://[^\s/@]*:[^\s/@]+@|[?&]password=")  # in an address
EXCLUSIVE = {
    "mcp.token": "mcp.token_file",
    "mcp.token_file": "mcp.token",
    "mcp.secret": "mcp.secret_file",
    "mcp.secret_file": "mcp.secret",
}

Fields = Mapping[str, FieldInfo]
Sections = Mapping[str, type[Section]]


@dataclass(frozen=True)
class Configuration:
    """The settings in force, the source of each value that was set, and warnings about likely typos."""

    settings: Settings
    sources: Mapping[str, str] = field(default_factory=dict)
    warnings: Sequence[str] = ()


@dataclass(frozen=True)
class _Layer:
    """Values by dotted key from one source; relative paths in it start from `folder`."""

    values: Mapping[str, Any]
    sources: Mapping[str, str]
    folder: Path
    file: Path | None = None


def load_settings(
    flags: Mapping[str, Any] | None = None,
    *,
    config: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> Configuration:
    """Return the settings: flags win over the environment, then a local and a user's configuration file."""
    environ = os.environ if environ is None else environ
    local = config or _path(environ.get(CONFIG_VARIABLE)) or local_config()
    files = list(_file_layers(local))
    extra = installed_sections() if _has_unknown_section(files, environ) else {}
    fields = dict(setting_fields()) | {
        key: info for name, section in extra.items() for key, info in setting_fields(section, f"{name}.")
    }
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for layer in reversed([_flag_layer(flags or {}), _environment_layer(environ, fields), *files]):
        for key, value in layer.values.items():
            values[key] = _resolve(fields.get(key), value, layer.folder)
            sources[key] = layer.sources[key]
            values.pop(EXCLUSIVE.get(key, ""), None)  # the stronger source decides
    if local:
        values.setdefault("data_dir", local.resolve().parent / DATA_NAME)
    settings = _validate(_build_tree(values), sources, extra, fields)
    settings = settings.with_config_files(layer.file for layer in files if layer.file is not None)
    warnings = [*_unknown_variables(environ, fields), *_exposed_secrets(values, sources, fields)]
    return Configuration(settings, sources, warnings)


def local_config() -> Path | None:
    """Return the configuration file of the working directory."""
    path = Path.cwd() / CONFIG_NAME
    return path if path.is_file() else None


def setting_fields(section: type[BaseModel] = Settings, prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Yield every setting of a section by its dotted key."""
    for name, info in section.model_fields.items():
        if isinstance(info.annotation, type) and issubclass(info.annotation, Section):
            yield from setting_fields(info.annotation, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", info


def environment_name(key: str) -> str:
    """Return the environment variable of a setting."""
    return PREFIX + key.replace(".", "__").upper()


def installed_sections() -> Sections:
    """Return the sections that toolsets of other packages declare, by the names of the toolsets."""
    toolsets: Kind[Any] = Kind("toolsets", {})
    sections: dict[str, type[Section]] = {}
    for name in toolsets.find_installed():
        try:
            section = getattr(toolsets.load(name), "settings", None)
        except (ImportError, AttributeError, BedstoneError) as error:
            logger.warning("Ignoring the toolset %r of another package: %s", name, error)
            continue
        if section is not None and name not in Settings.model_fields:
            sections[name] = section
    return sections


def _has_unknown_section(files: Sequence[_Layer], environ: Mapping[str, str]) -> bool:
    """Return whether a section may belong to another package: only then is the metadata of packages read."""
    named = {key.partition(".")[0] for layer in files for key in layer.values if "." in key}
    named |= {
        name.removeprefix(PREFIX).partition("__")[0].lower()
        for name in environ
        if name.startswith(PREFIX) and "__" in name
    }
    return not named <= Settings.model_fields.keys()


def _validate(tree: dict[str, Any], sources: Mapping[str, str], extra: Sections, fields: Fields) -> Settings:
    prefix = ""
    try:
        sections = {}
        for name, section in extra.items():
            if name in tree:
                prefix = f"{name}."
                sections[name] = section.model_validate(tree.pop(name))
        prefix = ""
        return Settings.model_validate(tree).with_sections(sections)
    except ValidationError as error:
        raise InvalidSetting(_explain(error, prefix, sources, fields)) from None


def _unknown_variables(environ: Mapping[str, str], fields: Fields) -> Iterator[str]:
    known = [CONFIG_VARIABLE, *map(environment_name, fields)]
    for name in environ:
        if name.startswith(PREFIX) and name not in known:
            near = get_close_matches(name, known, n=1)
            yield f"Unknown environment variable {name}." + (f" Did you mean {near[0]}?" if near else "")


def _exposed_secrets(values: Mapping[str, Any], sources: Mapping[str, str], fields: Fields) -> Iterator[str]:
    """Yield a warning for each secret in a file that other users can read."""
    for key, source in sources.items():
        info = fields.get(key)
        is_secret = info is not None and SecretStr in (info.annotation, *get_args(info.annotation))
        if is_secret or PASSWORD.search(str(values.get(key, ""))):
            file = Path(source)
            if file.is_absolute() and file.is_file() and is_exposed(file):
                yield f"Other users can read {key} in {file}. Protect it with: chmod 600 {quote(source)}"


def _flag_layer(flags: Mapping[str, Any]) -> _Layer:
    return _Layer(flags, dict.fromkeys(flags, "flag"), Path.cwd())


def _environment_layer(environ: Mapping[str, str], fields: Fields) -> _Layer:
    variables = {key: environment_name(key) for key in fields if environ.get(environment_name(key))}
    return _Layer({key: environ[name] for key, name in variables.items()}, variables, Path.cwd())


def _file_layers(local: Path | None) -> Iterator[_Layer]:
    if local:
        yield _file_layer(local.resolve())
    user = Path(platformdirs.user_config_dir("bedstone", appauthor=False)) / CONFIG_NAME
    if user.is_file():
        yield _file_layer(user)


def _file_layer(path: Path) -> _Layer:
    import tomllib  # noqa: PLC0415 - most starts read no file

    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidSetting(f"Cannot read the configuration file {path}: {error}") from error
    values = dict(_flat(tree))
    return _Layer(values, dict.fromkeys(values, str(path)), path.parent, path)


def _flat(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _build_tree(values: Mapping[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for key, value in values.items():
        *sections, name = key.split(".")
        node = tree
        for section in sections:
            inner = node.setdefault(section, {})
            if not isinstance(inner, dict):
                raise InvalidSetting(f"{section} is a section, not a value: write [{section}] above its settings.")
            node = inner
        node[name] = value
    return tree


def _resolve(info: FieldInfo | None, value: Any, folder: Path) -> Any:
    """Return a path relative to where it was written, and any other value unchanged."""
    if info is not None and info.annotation == list[Path] and value is not None:
        return [_resolve_path(item, folder) for item in as_list(value)]
    if info is not None and info.annotation in (Path, Path | None):
        return _resolve_path(value, folder)
    return value


def _resolve_path(value: Any, folder: Path) -> Any:
    return Path(os.path.normpath(folder / _expand_home(value))) if isinstance(value, str | Path) else value


def _expand_home(value: str | Path) -> Path:
    try:
        return parse_path(str(value))
    except InvalidInput as error:
        raise InvalidSetting(error.message) from error


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None


def _explain(error: ValidationError, prefix: str, sources: Mapping[str, str], fields: Fields) -> str:
    problem = error.errors(include_url=False, include_input=False)[0]
    key = prefix + ".".join(str(part) for part in problem["loc"])
    source = next((sources[name] for name in sources if name == key or name.startswith(f"{key}.")), "the settings")
    if problem["type"] == "extra_forbidden":
        sections = dict.fromkeys(name.partition(".")[0] for name in fields)
        near = get_close_matches(key, [*fields, *sections], n=1)
        guess = f" Did you mean {near[0]}?" if near else " `bedstone settings` lists all of them."
        return f"Unknown setting {key} (from {source}).{guess}"
    return f"Invalid value for {key} (from {source}): {problem['msg']}"
