"""The data categories of an org: which there are, those that a search names, and the articles in each."""

from collections.abc import Iterable, Mapping, Sequence
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


@dataclass(frozen=True)
class Category:
    """A data category with the ids of the articles in it and below it; `key` is `Group.Category`."""

    key: str
    label: str
    articles: frozenset[str]
    children: tuple["Category", ...] = ()

    def find(self, key: str) -> "tuple[Category, ...]":
        """Return the way down to a category, with this one; empty if it is not below."""
        if key == self.key:
            return (self,)
        below = next((way for child in self.children if (way := child.find(key))), ())
        return (self, *below) if below else ()

    def lowest(self, article_id: str) -> "list[Category]":
        """Return the lowest categories with an article, from this one down."""
        if article_id not in self.articles:
            return []
        return [found for child in self.children for found in child.lowest(article_id)] or [self]


@dataclass(frozen=True)
class CategoryGroup:
    """A group of data categories, as a tree."""

    name: str
    label: str
    categories: tuple[Category, ...]

    def find(self, key: str) -> tuple[Category, ...]:
        """Return the way from the top down to a category; empty if the group does not have it."""
        return next((way for category in self.categories if (way := category.find(key))), ())

    def lowest(self, article_id: str) -> list[Category]:
        """Return the lowest categories with an article."""
        return [found for category in self.categories for found in category.lowest(article_id)]


def build_tree(stored: Mapping[str, Any]) -> list[CategoryGroup]:
    """Return the groups that a mirror stores; one that was synced by an earlier version has no labels."""
    below: Mapping[str, list[str]] = stored["below"]
    labels: Mapping[str, str] = stored.get("labels") or {}
    direct: Mapping[str, Sequence[str]] = stored["articles"]

    def build(group: str, name: str) -> Category:
        key = f"{group}.{name}"
        names, children, at = below[key], [], 1  # a category comes first, then each child with all below it
        while at < len(names):
            children.append(build(group, names[at]))
            at += len(below[f"{group}.{names[at]}"])
        inside = frozenset(direct.get(key, ())).union(*(child.articles for child in children))
        return Category(key, labels.get(key, name), inside, tuple(children))

    groups = []
    for group, names in Categories.of_keys(below).groups.items():
        nested = {name for key in names for name in below[f"{group}.{key}"][1:]}
        tops = tuple(build(group, name) for name in names if name not in nested)
        groups.append(CategoryGroup(group, labels.get(group, group), tops))
    return groups


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
