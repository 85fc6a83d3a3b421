"""Find an extension by name: our own table first, then the entry points of other packages."""

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from bedstone.errors import InvalidSetting, MissingExtra


def names(kind: str, builtin: Mapping[str, str]) -> list[str]:
    """Every extension of a kind, built-in ones first."""
    return [*builtin, *(name for name in _installed(kind) if name not in builtin)]


def find(kind: str, name: str, builtin: Mapping[str, str]) -> str:
    """The import path a name stands for; other packages are searched only for names we do not have."""
    if target := builtin.get(name) or _installed(kind).get(name):
        return target
    valid = names(kind, builtin)
    near = get_close_matches(name, valid, n=1)
    guess = f" Did you mean {near[0]!r}?" if near else ""
    raise InvalidSetting(f"Unknown name in {kind}: {name!r}.{guess} Valid names: {', '.join(valid)}")


def load(kind: str, name: str, builtin: Mapping[str, str]) -> Any:
    """Import the object a name stands for; nothing else of its kind is imported."""
    module, _, attribute = find(kind, name, builtin).partition(":")
    try:
        return getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        missing = error.name or module
        raise MissingExtra(
            f"{name!r} needs the package {missing!r}. Install it with: pip install 'bedstone[{name}]'", package=missing
        ) from error


def _installed(kind: str) -> dict[str, str]:
    from importlib.metadata import entry_points  # noqa: PLC0415 - reads the metadata of every installed package

    return {point.name: point.value for point in entry_points(group=f"bedstone.{kind}")}
