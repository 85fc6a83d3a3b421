"""Suggest names for a misspelled one: wrong case, a missing __c, a label, a plural, a typo."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from bedstone.salesforce.graph.folding import WORD_SIGNS, fold

CERTAIN = 0.8  # similarity from which a name is corrected without asking
MAX_SUGGESTIONS = 3
MAX_LENGTH_DIFFERENCE = 3  # characters, between a misspelt name and a suggested one
MAX_CACHED = 20_000  # names
WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
NOT_LETTERS = re.compile(rf"[^{WORD_SIGNS}]|_")
SUFFIXES = ("__c", "__r", "__pc", "__x", "__mdt", "__e", "__b", "__kav")
FILLERS = frozenset({"number", "of", "name", "is", "has", "id", "date", "the"})  # add no meaning to a name
NEGATIONS = ("in", "un", "non", "not", "dis")
OPPOSITES = ({"min", "max"}, {"first", "last"}, {"start", "end"}, {"in", "out"}, {"from", "to"}, {"old", "new"})
LABEL_LIKENESS = 0.95
PART_LIKENESS = 0.6  # City for BillingCity
MIN_PART_LENGTH = 3  # characters


@dataclass(frozen=True)
class Suggestions:
    """Suggested names, the most similar first; `certain` is set if there is no doubt."""

    names: tuple[str, ...] = ()
    certain: str | None = None
    best: tuple[str, ...] = ()  # the most similar ones, if several are alike

    @property
    def question(self) -> str:
        """Return the sentence that asks which name was meant, with the space before it."""
        shown = " or ".join(f'"{name}"' for name in self.best or self.names[:1])
        return f" Did you mean {shown}?" if shown else ""

    def __bool__(self) -> bool:
        return bool(self.names)


class Names:
    """An index of names and labels that limits the candidates to compare."""

    def __init__(self, labels: Mapping[str, str]) -> None:
        self._labels = labels
        self._alike: dict[str, list[str]] = {}
        self._by_length: dict[int, list[str]] = {}
        for name, label in labels.items():
            bare = _bare(name.lower())
            self._by_length.setdefault(len(bare), []).append(name)
            for key in {_singular(bare), _singular(squeeze(label)), bare.removesuffix("id")}:
                self._alike.setdefault(key, []).append(name)

    def near(self, written: str) -> dict[str, str]:
        """Return the candidates for a name, with their labels."""
        bare = _bare(written.lower())
        keys = {_singular(bare), bare.removesuffix("id"), _singular(squeeze(written))}
        found = {name: self._labels[name] for key in keys for name in self._alike.get(key, ())}
        for length in range(len(bare) - MAX_LENGTH_DIFFERENCE, len(bare) + MAX_LENGTH_DIFFERENCE + 1):
            for name in self._by_length.get(length, ()):
                start = name[:2].lower()
                if (
                    start[:1] == bare[:1] or start[1:] == bare[:1] or start[:1] == bare[1:2]
                ):  # at most one typo at the start
                    found[name] = self._labels[name]
        return found


def suggest(written: str, candidates: Mapping[str, str]) -> Suggestions:
    """Return the most similar names; `candidates` are names with their labels."""
    scored: dict[str, float] = {}
    for name, label in candidates.items():
        score = likeness(written, name, label)
        if score:
            scored[name] = score
    ordered = sorted(scored, key=lambda name: (-scored[name], len(name), name))[:MAX_SUGGESTIONS]
    if not ordered:
        return Suggestions()
    best = ordered[0]
    is_unique = len(ordered) == 1 or scored[ordered[1]] < scored[best]
    alike = tuple(name for name in ordered if scored[name] == scored[best])
    is_certain = is_unique and scored[best] >= CERTAIN and not _changes_meaning(written, best)
    return Suggestions(tuple(ordered), best if is_certain else None, alike)


def likeness(written: str, name: str, label: str = "") -> float:  # noqa: PLR0911 - one for each way to be alike
    """Return the similarity of a name, from 0 to 1."""
    given, wanted = written.lower(), name.lower()
    if given == wanted:
        return 1.0
    bare, plain = _bare(given), _bare(wanted)
    if bare == plain:
        return 0.98
    if bare == _without_namespace(wanted):
        return 0.97
    if label and (squeezed := squeeze(given)) and squeezed == squeeze(label):
        return LABEL_LIKENESS if _says_the_same(label, name) else PART_LIKENESS
    if _singular(bare) == _singular(plain):
        return 0.93
    if f"{bare}id" == plain or bare == f"{plain}id":
        return 0.9
    most = max_typos(bare)
    away = distance(bare, plain, most) if abs(len(bare) - len(plain)) <= most else most + 1
    if away <= most:
        return 1 - away / (1 + max(len(bare), len(plain)))
    return PART_LIKENESS if label and _is_end_of(written, name) else 0.0


def max_typos(bare: str) -> int:
    """Return how many typos a name may have; another sign of a script with few signs a word is another word."""
    if not bare.isascii():
        return len(bare) // 4
    return 1 if len(bare) <= 4 else 2 if len(bare) <= 8 else 3  # noqa: PLR2004 - letters of the written name


def distance(left: str, right: str, most: int) -> int:
    """Return the edit distance with swaps, or `most` + 1 if it is greater than `most`."""
    if left == right:
        return 0
    before: list[int] = []
    last = list(range(len(right) + 1))
    for row, sign in enumerate(left, start=1):
        current = [row]
        for column, other in enumerate(right, start=1):
            cost = min(last[column] + 1, current[column - 1] + 1, last[column - 1] + (sign != other))
            is_swap = row > 1 and column > 1 and sign == right[column - 2] and left[row - 2] == other
            current.append(min(cost, before[column - 2] + 1) if is_swap else cost)
        if min(current) > most:
            return most + 1
        before, last = last, current
    return last[-1]


@lru_cache(MAX_CACHED)
def _words(name: str) -> tuple[str, ...]:
    return tuple(words_of(name))


def words_of(name: str) -> list[str]:
    """Return the words of a name: annual, revenue for AnnualRevenue__c."""
    bare = re.sub(r"(__c|__r|__pc|__x|__mdt|__e|__b|__kav)$", "", name)
    if not bare.isascii():  # a label: only API names have words without spaces
        return NOT_LETTERS.sub(" ", fold(bare)).split()
    return [word.lower() for word in WORDS.findall(bare.replace("_", " "))]


@lru_cache(MAX_CACHED)
def squeeze(text: str) -> str:
    """Return the letters and digits of any script, folded: case, width and accents do not matter."""
    return NOT_LETTERS.sub("", fold(text))


def join_names(names: Iterable[str], most: int = 12) -> str:
    """Join names for a sentence."""
    shown = list(names)
    return ", ".join(shown[:most]) + (f" and {len(shown) - most} more" if len(shown) > most else "")


def _bare(name: str) -> str:
    for suffix in SUFFIXES:
        if name.endswith(suffix):
            return name[: -len(suffix)].replace("_", "")
    return name.replace("_", "")


def _without_namespace(name: str) -> str:
    """Return the bare name of a package's field, without the package: serial for kfleet__serial__c."""
    namespace, _, rest = name.partition("__")
    return _bare(rest) if "__" in rest and namespace else ""


def _says_the_same(label: str, name: str) -> bool:
    """Whether a name adds nothing to its label: NumberOfEmployees does not, SuppliedName (labelled Name) does."""
    shown, named = set(_words(label)), set(_words(name))
    return not shown < named or named - shown <= FILLERS


def _changes_meaning(written: str, name: str) -> bool:
    """Whether two names that look alike mean different things: Address1, Address2; IsInactive, IsActive."""
    digits, known = re.sub(r"\D", "", written), re.sub(r"\D", "", name)
    if digits and known and digits != known:
        return True
    given, wanted = set(_words(written)), set(_words(name))
    pairs = {(one, other) for one in given - wanted for other in wanted - given}
    return any(
        {one, other} in OPPOSITES or any(start + one == other or start + other == one for start in NEGATIONS)
        for one, other in pairs
    )


def _is_end_of(written: str, name: str) -> bool:
    """Whether a name ends with the words that were written: City, BillingCity."""
    given, wanted = _words(written), _words(name)
    is_long = sum(map(len, given)) >= MIN_PART_LENGTH
    return is_long and len(given) < len(wanted) and wanted[-len(given) :] == given


def _singular(name: str) -> str:
    if name.endswith("ies"):
        return name[:-3] + "y"
    return name.removesuffix("s")
