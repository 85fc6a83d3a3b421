"""The facets of passages as numbers: a filter is evaluated once for each set of facets, without an object for any."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import merge
from itertools import groupby
from operator import itemgetter
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bedstone.search.filters import AllOf, AnyOf, Filter, Missing, OneOf, matches
from bedstone.search.indexes.segments.arrays import Array

Mask = NDArray[np.bool_]
NONE = -1  # the number of the value that a set does not have


class FacetSets(Protocol):
    """Sets of facets, by number."""

    def passing(self, filter: Filter) -> Mask:
        """Return which sets pass a filter."""


class Vocabulary:
    """Sorted values, numbered; they stay in their file until one is looked up."""

    def __init__(self, offsets: Array, letters: Array) -> None:
        self.offsets, self.letters = offsets, letters

    @classmethod
    def of(cls, values: Sequence[bytes]) -> "Vocabulary":
        lengths = np.fromiter(map(len, values), np.int64, len(values))
        letters = np.frombuffer(b"".join(values), np.uint8)
        return cls(np.concatenate([np.zeros(1, np.int64), lengths.cumsum()]), letters)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, number: int) -> bytes:
        return self.letters[self.offsets[number] : self.offsets[number + 1]].tobytes()

    def __iter__(self) -> Iterator[bytes]:
        return (self[number] for number in range(len(self)))

    def find(self, value: str) -> int:
        """Return the number of a value; `NONE` if it does not occur."""
        wanted = value.encode(errors="surrogatepass")
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self[middle] < wanted:
                low = middle + 1
            else:
                high = middle
        return low if low < len(self) and self[low] == wanted else NONE


@dataclass(frozen=True, eq=False)
class FacetTable:
    """Sets of facets that never change: for each key a vocabulary, and the number of the value in each set."""

    keys: Sequence[str]
    vocabularies: Sequence[Vocabulary]
    numbers: NDArray[np.int32]  # one row per key, one column per set

    def passing(self, filter: Filter) -> Mask:
        """Return which sets pass a filter."""
        every = self.numbers.shape[1]
        passes: Mask
        match filter:
            case OneOf(key, values):
                passes = self._has_one_of(key, values) if key in self.keys else np.zeros(every, np.bool_)
            case Missing(key):
                is_known = key in self.keys
                passes = self.numbers[self.keys.index(key)] == NONE if is_known else np.ones(every, np.bool_)
            case AllOf(filters):
                passes = np.logical_and.reduce([np.ones(every, np.bool_), *map(self.passing, filters)])
            case AnyOf(filters):
                passes = np.logical_or.reduce([np.zeros(every, np.bool_), *map(self.passing, filters)])
        return passes

    def _has_one_of(self, key: str, values: Sequence[str]) -> Mask:
        row = self.keys.index(key)
        vocabulary = self.vocabularies[row]
        wanted = np.zeros(len(vocabulary) + 1, np.bool_)  # the last one is that of `NONE`
        wanted[[number for value in values if (number := vocabulary.find(value)) != NONE]] = True
        has: Mask = wanted[self.numbers[row]]
        return has

    def only(self, used: NDArray[np.integer]) -> "FacetTable":
        """Return some of the sets."""
        return replace(self, numbers=self.numbers[:, used])


class FacetList:
    """Sets of facets that grow; those that exist keep their numbers."""

    def __init__(self) -> None:
        self.sets: list[Mapping[str, str]] = []
        self._numbers: dict[tuple[tuple[str, str], ...], int] = {}

    def number(self, facets: Mapping[str, str]) -> int:
        """Return the number of a set, perhaps a new one."""
        key = tuple(sorted(facets.items()))
        if key not in self._numbers:
            self._numbers[key] = len(self.sets)
            self.sets.append(facets)
        return self._numbers[key]

    def passing(self, filter: Filter) -> Mask:
        """Return which sets pass a filter."""
        return np.fromiter((matches(filter, facets) for facets in self.sets), np.bool_)

    def freeze(self) -> FacetTable:
        """Return the sets so far as a table."""
        sets = list(self.sets)
        keys = sorted({key for facets in sets for key in facets})
        vocabularies, numbers = [], np.full((len(keys), len(sets)), NONE, np.int32)
        for row, key in enumerate(keys):
            values = sorted({_encode(facets[key]) for facets in sets if key in facets})
            known = {value: number for number, value in enumerate(values)}
            for column, facets in enumerate(sets):
                if key in facets:
                    numbers[row, column] = known[_encode(facets[key])]
            vocabularies.append(Vocabulary.of(values))
        return FacetTable(keys, vocabularies, numbers)


def join_tables(tables: Sequence[FacetTable]) -> tuple[FacetTable, list[NDArray[np.int32]]]:
    """Return one table with the sets of several, each once, and the new numbers of the sets of each table.

    Values that no set has are left out.
    """
    keys = sorted({key for table in tables for key in table.keys})
    vocabularies, rows = [], []
    for key in keys:
        owners = [(at, table.keys.index(key)) for at, table in enumerate(tables) if key in table.keys]
        renumbered = {at: np.full(len(tables[at].vocabularies[row]) + 1, NONE, np.int32) for at, row in owners}
        values: list[bytes] = []
        # Merged as a stream: to sort a million values at once would keep searches waiting.
        streams = [_used_values(tables[at], row, at) for at, row in owners]
        for value, same in groupby(merge(*streams), key=itemgetter(0)):
            for _, at, number in same:
                renumbered[at][number] = len(values)
            values.append(value)
        vocabularies.append(Vocabulary.of(values))
        places = dict(owners)
        rows.append(
            np.concatenate(
                [
                    renumbered[at][table.numbers[places[at]]] if at in places else np.full(table.numbers.shape[1], NONE)
                    for at, table in enumerate(tables)
                ]
            )
        )
    sizes = [table.numbers.shape[1] for table in tables]
    numbers = np.array(rows, np.int32).reshape(len(keys), sum(sizes))
    distinct, number_of = _distinct_columns(numbers)
    ends = np.cumsum(sizes).tolist()
    return FacetTable(keys, vocabularies, distinct), np.split(number_of, ends[:-1])


def _used_values(table: FacetTable, row: int, owner: int) -> Iterator[tuple[bytes, int, int]]:
    """Yield the values of a key that a set has, in order."""
    used = np.unique(table.numbers[row])
    return ((table.vocabularies[row][number], owner, number) for number in used[used != NONE].tolist())


def _distinct_columns(numbers: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return each column once, and which of them every column is."""
    if not len(numbers):
        return numbers[:, :1], np.zeros(numbers.shape[1], np.int32)
    order = np.lexsort(numbers)
    in_order = numbers[:, order]
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = (in_order[:, 1:] != in_order[:, :-1]).any(axis=0)
    number_of = np.empty(len(order), np.int32)
    number_of[order] = is_first.cumsum(dtype=np.int32) - 1
    return np.ascontiguousarray(in_order[:, is_first]), number_of


def _encode(value: str) -> bytes:
    return value.encode(errors="surrogatepass")
