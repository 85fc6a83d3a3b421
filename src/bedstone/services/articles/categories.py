"""The data categories of an org: which there are, and those that a search names."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bedstone.errors import InvalidInput

MAX_LISTED = 40


@dataclass(frozen=True)
class Categories:
    """The names of all categories by group, without the suffix of API names."""

    groups: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> "Categories":
        """Parse the list of category groups that an org sends."""
        groups = answer.get("categoryGroups") or []
        return cls({str(group["name"]): tuple(_names(group.get("topCategories") or ())) for group in groups})

    @classmethod
    def of_keys(cls, keys: Iterable[str]) -> "Categories":
        """Parse `Group.Category` keys."""
        groups: dict[str, tuple[str, ...]] = {}
        for key in keys:
            group, _, name = key.partition(".")
            groups[group] = (*groups.get(group, ()), name)
        return cls(groups)

    def resolve(self, wanted: Mapping[str, str]) -> dict[str, str]:
        """Return categories in the spelling of the org; raise InvalidInput for unknown ones, with those there are."""
        return {
            (group := _find(name, self.groups, "data category group", "Groups")): _find(
                category, self.groups[group], f"data category of {group}", "Categories"
            )
            for name, category in wanted.items()
        }


def bare_name(name: str) -> str:
    """Return a name without the suffix of API names."""
    return name.removesuffix("__c")


def _find(wanted: str, known: Iterable[str], kind: str, heading: str) -> str:
    names = {name.lower(): name for name in known}
    found = names.get(bare_name(wanted).lower())
    if found is None:
        listed = sorted(names.values())
        more = f" and {len(listed) - MAX_LISTED} more" if len(listed) > MAX_LISTED else ""
        choices = ", ".join(listed[:MAX_LISTED]) or "none"
        message = f"data_categories: unknown {kind} {wanted!r}. {heading}: {choices}{more}"
        raise InvalidInput(message, parameter="data_categories")
    return found


def _names(categories: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    for category in categories:
        yield str(category["name"])
        yield from _names(category.get("childCategories") or ())
