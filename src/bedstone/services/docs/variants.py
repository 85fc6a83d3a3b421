"""Tell which chunks say the same: copies, and one section of several versions or ports of a page."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from bedstone.records import ChunkHead
from bedstone.search.hits import SearchRequest
from bedstone.search.versions import VERSION, preference, versions_in, without_versions
from bedstone.store.engine import Store

PART = re.compile(r"[-_]part-[0-9-]+$")
IN_TITLE = re.compile(r"\bv?\d+(?:\.\d+)+\b", re.IGNORECASE)
WORD = re.compile(r"[\w.]+")
MIN_SHARED = 0.5  # of the different words of two texts together
MIN_CHARACTERS = 80  # of texts that are compared: shorter ones are forms, filled in


class Variants:
    """The variants among the pages of one corpus, by their paths, and among its chunks, by their texts."""

    def __init__(self, store: Store, paths: Iterable[str]) -> None:
        self._store = store
        self._patterns, self._families = _find_families(paths)
        self._plain = lru_cache(maxsize=1024)(lambda rowid: store.plain_texts([rowid]).get(rowid, ""))
        self._words = lru_cache(maxsize=256)(lambda rowid: frozenset(self._plain(rowid).split()))

    @property
    def has_versions(self) -> bool:
        """Whether pages exist in several versions."""
        return bool(self._families)

    def key(self, head: ChunkHead, request: SearchRequest) -> tuple[Any, ...]:
        """Return what variants of a chunk share: those with the same key can be variants."""
        part = PART.search(head.id) if "part-" in head.id else None
        number = part[0] if part else ""
        if request.collapsed_facets and (path := _collapse(head, request)):
            return path, head.heading, number
        return self._trail(head) or head.document_id.rpartition("/")[2], number

    def are_same(self, first: ChunkHead, other: ChunkHead, request: SearchRequest) -> bool:
        """Return whether two chunks with the same key are one hit."""
        if request.collapsed_facets and _collapse(first, request):
            return True
        if first.document_id == other.document_id:
            return False
        if self._are_versions(first, other):
            return True
        if self._differ_in_one_segment(first.document_id, other.document_id):
            return self._are_similar(first, other)
        text = self._plain(first.rowid)
        return len(text) >= MIN_CHARACTERS and text == self._plain(other.rowid)

    def choose_version(self, head: ChunkHead, request: SearchRequest) -> ChunkHead:
        """Return the same section of the newest or unversioned page, unless the query names a version."""
        family = self._families.get(self._patterns.get(head.document_id, head.document_id), ())
        if not family or request.filter is not None:
            return head
        words = WORD.findall(request.query.lower())
        named = {word.removeprefix("v") for word in words if VERSION.fullmatch(word)}
        chosen = [path for path in family if not named.isdisjoint(versions_in(path))] if named else ()
        for path in chosen or family:
            if path == head.document_id:
                return head
            found = self._store.chunk(path + head.id[len(head.document_id) :])
            if found and self._is_same_section(head, found.head):
                return found.head
        return head

    def _is_same_section(self, first: ChunkHead, other: ChunkHead) -> bool:
        if self._are_versions(first, other):
            return True
        return self._trail(first) == self._trail(other) and self._are_similar(first, other)

    def _are_versions(self, first: ChunkHead, other: ChunkHead) -> bool:
        """Return whether two chunks are one section of a page in folders of different versions."""
        pattern = self._patterns.get(first.document_id)
        return (
            pattern is not None
            and pattern == self._patterns.get(other.document_id)
            and first.breadcrumb == other.breadcrumb
            and first.id[len(first.document_id) :] == other.id[len(other.document_id) :]
        )

    def _trail(self, head: ChunkHead) -> tuple[str, ...]:
        if head.document_id not in self._patterns:
            return head.breadcrumb
        return tuple(IN_TITLE.sub("*", text) for text in head.breadcrumb)

    def _differ_in_one_segment(self, first: str, other: str) -> bool:
        """Return whether two paths differ in their versions, and otherwise in one segment at most."""
        segments = self._patterns.get(first, first).split("/")
        others = self._patterns.get(other, other).split("/")
        return len(segments) == len(others) and sum(map(str.__ne__, segments, others)) <= 1

    def _are_similar(self, first: ChunkHead, other: ChunkHead) -> bool:
        if len(self._plain(first.rowid)) < MIN_CHARACTERS:
            return False
        words, others = self._words(first.rowid), self._words(other.rowid)
        return len(words & others) >= MIN_SHARED * len(words | others)


def _collapse(head: ChunkHead, request: SearchRequest) -> str:
    """Return the path of a chunk without the values of collapsed facets; empty if it has none."""
    segments = head.document_id.split("/")
    replaced = False
    for key in request.collapsed_facets:
        value = head.facets.get(key)
        if value in segments:
            segments[segments.index(value)] = "*"
            replaced = True
    return "/".join(segments) if replaced else ""


def _find_families(paths: Iterable[str]) -> tuple[Mapping[str, str], Mapping[str, Sequence[str]]]:
    """Return the paths without their versions, and the paths that are equal without them, preferred ones first."""
    without: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        without[without_versions(path)].append(path)
    families = {
        pattern: sorted(members, key=preference, reverse=True)
        for pattern, members in without.items()
        if len(members) > 1
    }
    return {path: pattern for pattern, members in families.items() for path in members}, families
