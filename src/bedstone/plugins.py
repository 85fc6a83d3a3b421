"""Find an extension by name: our own table first, then the entry points of other packages."""

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from bedstone.errors import InvalidSetting, MissingExtra


def names(kind: str, builtin: Mapping[str, str]) -> list[str]:
    """Every extension of a kind, built-in ones first."""
    return [*builtin, *(point.name for point in entry_points(group=f"bedstone.{kind}") if point.name not in builtin)]


def load(kind: str, name: str, builtin: Mapping[str, str]) -> Any:
    """Import the object a name stands for; nothing else of its kind is imported."""
    target = builtin.get(name) or _installed(kind, name)
    if target is None:
        raise InvalidSetting(unknown(kind, name, names(kind, builtin)))
    module, _, attribute = target.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        missing = error.name or module
        raise MissingExtra(
            f"{name!r} needs the package {missing!r}. Install it with: pip install 'bedstone[{name}]'", package=missing
        ) from error


def unknown(kind: str, name: str, valid: list[str]) -> str:
    """The sentence for a name nobody knows, with the nearest one and the whole list."""
    near = get_close_matches(name, valid, n=1)
    guess = f" Did you mean {near[0]!r}?" if near else ""
    return f"Unknown name in {kind}: {name!r}.{guess} Valid names: {', '.join(valid)}"


def _installed(kind: str, name: str) -> str | None:
    return next((point.value for point in entry_points(group=f"bedstone.{kind}", name=name)), None)
