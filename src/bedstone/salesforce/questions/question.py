"""A question as a list of words, and which of them have been understood."""

import re
from dataclasses import dataclass, field

from bedstone.salesforce.graph.model import ObjectSchema
from bedstone.salesforce.synonyms import singular

# An apostrophe inside a word, as in O'Connor's, is not a quote.
QUOTED = re.compile(
    r"(?<!\w)['\"\u2018\u2019\u201c\u201d]([^'\"\u2018\u2019\u201c\u201d]+)['\"\u2018\u2019\u201c\u201d](?!\w)"
)
# A quoted text is replaced by a marker: its number between two NUL characters.
MARKER = "\0"
WORD = re.compile(
    r"\x00\d+\x00|\d{4}-\d\d-\d\d|[A-Za-z][\w-]*(?:'t)?(?:\.[A-Za-z]\w*)*|\d[\d,]*(?:\.\d+)?(?:%|[kKmM]\b|bn\b)?|[<>]=?|!=|=|[(),$€£]"
)
NEGATIONS = frozenset("not no except excluding never without non isn't aren't don't doesn't neither nor unless".split())  # noqa: SIM905
BETWEEN_NEGATION_AND_VALUE = frozenset({"a", "an", "any", "the", "in", "of", "yet", "are", "is", "with"})
MAX_NEGATION_DISTANCE = 4  # words
PERIODS = frozenset({"day", "week", "month", "quarter", "year"})


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

        marked = QUOTED.sub(set_aside, text).replace("closed-won", "closed won").replace("-Won", " Won")
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

    def find(self, *words: str) -> int | None:
        """Return where some words first follow each other."""
        for place in range(len(self.folded) - len(words) + 1):
            if self.folded[place : place + len(words)] == words:
                return place
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
        for at in range(place - 1, max(-1, place - 1 - MAX_NEGATION_DISTANCE), -1):
            word = self.folded[at]
            if word in NEGATIONS and self.is_free(at):
                self.consumed.add(at)
                return True
            if word not in BETWEEN_NEGATION_AND_VALUE:
                return False
        return False
