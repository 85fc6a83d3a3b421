"""Find an extension by kind and name: the built-in table first, then the entry points of other packages."""

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Generic, TypeVar, cast

from bedstone.errors import InvalidSetting, MissingExtra

T = TypeVar("T")


class Kind(Generic[T]):
    """One kind of extension. Tables map a name to `module:attribute`, so nothing is imported before it is used.

    Other packages register theirs under the entry point group `bedstone.<kind>`. `extras` names the optional
    dependency group that installs what a built-in extension needs. `hidden` extensions load by name and are never
    listed.
    """

    def __init__(
        self,
        name: str,
        builtin: Mapping[str, str],
        *,
        extras: Mapping[str, str] | None = None,
        hidden: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.builtin = builtin
        self._extras = extras or {}
        self._hidden = hidden or {}

    def names(self) -> list[str]:
        """Return every listed name, built-in ones first."""
        return [*self.builtin, *(name for name in self.find_installed() if name not in self.builtin)]

    def check(self, name: str) -> None:
        """Raise an error with the nearest name if there is no such extension."""
        self._target(name)

    def load(self, name: str) -> T:
        """Import the extension with this name and nothing else of its kind."""
        target = self._target(name)
        module, _, attribute = target.partition(":")
        try:
            return cast("T", getattr(import_module(module), attribute))
        except ModuleNotFoundError as error:
            missing = error.name or module
            if missing.partition(".")[0] in ("bedstone", module.partition(".")[0]):
                raise  # a defect of the extension itself
            extra = self._extras.get(name)
            install = f"pip install 'bedstone[{extra}]'" if extra else f"pip install {missing.partition('.')[0]}"
            raise MissingExtra(
                f"{name!r} needs the package {missing!r}. Install it with: {install}", package=missing
            ) from error

    def find_installed(self) -> dict[str, str]:
        """Return the extensions that other packages register."""
        from importlib.metadata import entry_points  # noqa: PLC0415 - reads the metadata of every installed package

        return {point.name: point.value for point in entry_points(group=f"bedstone.{self.name}")}

    def _target(self, name: str) -> str:
        if target := self.builtin.get(name) or self._hidden.get(name) or self.find_installed().get(name):
            return target
        valid = self.names()
        near = get_close_matches(name, valid, n=1)
        guess = f" Did you mean {near[0]!r}?" if near else ""
        raise InvalidSetting(f"Unknown name in {self.name}: {name!r}.{guess} Valid names: {', '.join(valid)}")
