"""A question as a list of words, and which of them have been understood."""

import re
import unicodedata
from dataclasses import dataclass, field

from bedstone.salesforce.graph.folding import WORD_SIGNS
from bedstone.salesforce.graph.model import ObjectSchema
from bedstone.salesforce.synonyms import singular

# An apostrophe inside a word, as in O'Connor's, is not a quote.
QUOTES = "'\"\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d\u300e\u300f"
QUOTED = re.compile(rf"(?<!\w)[{QUOTES}]([^{QUOTES}]+)[{QUOTES}](?!\w)")
# A quoted text is replaced by a marker: its number between two NUL characters.
MARKER = "\0"
LETTER = rf"(?![\d_])[{WORD_SIGNS}]"
WORD = re.compile(
    r"\x00\d+\x00|\b(?=[A-Za-z]*\d)[A-Za-z0-9]{15}(?:[A-Za-z0-9]{3})?\b|\d{4}-\d\d-\d\dT[\d:.]+Z?|\d{4}-\d\d-\d\d|\d{1,2}[/.]\d{1,2}[/.]\d{4}|@?"
    rf"{LETTER}[{WORD_SIGNS}-]*(?:'t)?(?:\.{LETTER}[{WORD_SIGNS}]*)*"
    r"|\d+(?:st|[nr]d|th)\b|\+?\d[\d,]*(?:\.\d+)?(?:%|[kKmM]\b|bn\b)?|<>|[<>]=?|!=|=|[(),$€£]"
)
NEGATIONS = frozenset("not no except excluding never without non isn't aren't don't doesn't neither nor unless".split())  # noqa: SIM905
BETWEEN_NEGATION_AND_VALUE = frozenset({"a", "an", "any", "the", "in", "of", "yet", "are", "is", "with", "been", "be"})
MAX_NEGATION_DISTANCE = 4  # words
PERIODS = frozenset({"day", "week", "month", "quarter", "year"})
NUMBERS = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
    "eleven": 11, "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30, "fifty": 50, "sixty": 60, "ninety": 90,
    "hundred": 100,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mention:
    """A stretch of words that names an object."""

    start: int
    end: int
    object: ObjectSchema
    score: float
    why: str


@dataclass(slots=True)
class Question:
    """The words of a question. Passes consume the words they understand."""

    words: tuple[str, ...]
    folded: tuple[str, ...]  # in lower case
    quoted: tuple[str, ...]
    mentions: tuple[Mention, ...] = ()
    consumed: set[int] = field(default_factory=set)

    @classmethod
    def parse(cls, text: str) -> "Question":
        """Split a text into words; a quoted text is one word."""
        quoted: list[str] = []

        def set_aside(found: "re.Match[str]") -> str:
            quoted.append(found[1].replace("\u2013", "-"))
            return f" {MARKER}{len(quoted) - 1}{MARKER} "

        marked = (
            QUOTED.sub(set_aside, unicodedata.normalize("NFC", text))
            .replace("closed-won", "closed won")
            .replace("-Won", " Won")
        )
        words = tuple(WORD.findall(marked))
        return cls(words, tuple(word.lower() for word in words), tuple(quoted))

    def __len__(self) -> int:
        return len(self.words)

    def folded_at(self, place: int) -> str:
        """Return a word in lower case; an empty text before the first and after the last word."""
        return self.folded[place] if 0 <= place < len(self.folded) else ""

    def is_quoted(self, place: int) -> bool:
        return self.words[place].startswith(MARKER)

    def text(self, place: int) -> str:
        """Return a word as it was written, or the text of a quotation."""
        word = self.words[place]
        return self.quoted[int(word.strip(MARKER))] if word.startswith(MARKER) else word

    def phrase(self, start: int, end: int) -> str:
        return " ".join(self.words[start:end])

    def number_at(self, place: int) -> int | None:
        """Return the whole number at a place, in digits or as a word."""
        word = self.folded_at(place)
        return int(word) if word.isdecimal() else NUMBERS.get(word)

    def is_name(self, place: int) -> bool:
        """Whether a word is quoted, capitalized, or of a script without capitals."""
        if place >= len(self.words):
            return False
        first = self.words[place][0]
        return self.is_quoted(place) or (first.isalpha() and not first.islower())

    def find(self, *words: str) -> int | None:
        """Return where some words first follow each other."""
        for place in range(len(self.folded) - len(words) + 1):
            if self.folded[place : place + len(words)] == words:
                return place
        return None

    def find_any(self, *phrases: str) -> tuple[int, int] | None:
        """Return where one of some phrases first stands, and where it ends; the first phrase wins."""
        for phrase in phrases:
            words = phrase.split()
            at = self.find(*words)
            if at is not None:
                return at, at + len(words)
        return None

    def is_period(self, place: int) -> bool:
        return singular(self.folded_at(place)) in PERIODS

    def is_free(self, place: int) -> bool:
        return place not in self.consumed

    def consume(self, start: int, end: int) -> None:
        self.consumed.update(range(start, end))

    def consume_words(self, *words: str) -> None:
        """Consume these words wherever they are."""
        self.consumed.update(place for place, word in enumerate(self.folded) if word in words)

    def consume_near(self, place: int, *words: str) -> None:
        """Consume these words up to four places before and two places after another word."""
        near = range(max(0, place - 4), min(len(self.folded), place + 3))
        self.consumed.update(at for at in near if self.folded[at] in words)

    def take_negation(self, place: int) -> bool:
        """Whether a negation precedes a word; consumes it."""
        at = self.negation_before(place)
        if at is not None:
            self.consumed.add(at)
        return at is not None

    def negation_before(self, place: int) -> int | None:
        """Return where the negation of a word stands."""
        for at in range(place - 1, max(-1, place - 1 - MAX_NEGATION_DISTANCE), -1):
            word = self.folded[at]
            if word in NEGATIONS and self.is_free(at):
                return at
            if word not in BETWEEN_NEGATION_AND_VALUE:
                return None
        return None
