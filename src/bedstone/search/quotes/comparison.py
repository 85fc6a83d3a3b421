"""Compare a quotation with a stretch of the source, letter by letter and gap by gap."""

import re
import unicodedata
from dataclasses import dataclass, field

from bedstone.search.quotes.edges import cut_before, cut_behind
from bedstone.search.quotes.gaps import Fit, Place, compare_gaps, symbols_of
from bedstone.search.quotes.letters import SAME_LETTERS, Letters, Span
from bedstone.search.quotes.match import Difference
from bedstone.search.quotes.noise import is_split
from bedstone.search.quotes.numbers import DECIMAL, GROUPING
from bedstone.search.quotes.words import CASED_UNITS, NEGATIONS
from bedstone.search.terms import MARKS

MAX_DIFFERENCES = 60  # then the texts have little in common
MAX_SHOWN = 60  # characters of a difference
CONTEXT = 40  # characters
# How many words have one difference of punctuation, or of a space, on average; a short quotation has no such space.
WORDS_PER_PUNCTUATION = 4
MIN_PUNCTUATION = 2
WORDS_PER_SPACE = 4
MIN_WORDS_FOR_SPACE = 4
NUMBER_BEFORE = re.compile(rf"\d[\d{DECIMAL}{GROUPING}]*\Z")
NUMBER_BEHIND = re.compile(rf"\d(?:[\d{DECIMAL}{GROUPING}]*\d)?")
WORD_BEFORE = re.compile(rf"[^\W\d_][\w{MARKS}]*\Z")
WORD_BEHIND = re.compile(rf"[^\W\d_][\w{MARKS}]*")
# Vowel points of Arabic and Hebrew, which most texts leave out, and characters that only change a glyph.
OPTIONAL_MARKS = re.compile(r"[\u0591-\u05bd\u05bf-\u05c7\u064b-\u0652\u0670\u0640\ufe00-\ufe0f]")
NOT_IN_WORDS = re.compile(rf"[^\w{MARKS}]+|_")
WORD_AND_REST = re.compile(r"\w.*", re.DOTALL)
REST_AND_WORD = re.compile(r".*\w", re.DOTALL)
SIGN_MARGIN = 4  # characters that the source may have more beside a sign
INNER_CAPITAL = re.compile(r"[a-z][A-Z]")


@dataclass
class Comparison:
    """Collects the differences of a quotation and a source: those that count, and those that only add up."""

    source: Letters
    quote: Letters
    differences: list[Difference] = field(default_factory=list)
    punctuation: int = 0
    spaces: int = 0

    def allows(self, words: int) -> bool:
        """Return whether a quotation of so many words has no difference that counts."""
        spaces = max(1, words // WORDS_PER_SPACE) if words >= MIN_WORDS_FOR_SPACE else 0
        punctuation = max(MIN_PUNCTUATION, words // WORDS_PER_PUNCTUATION)
        return not self.differences and self.punctuation <= punctuation and self.spaces <= spaces

    def add(self, quote: str, source: str) -> None:
        """Add words that differ."""
        self.differences.append(Difference(_shorten(quote), _shorten(source)))

    def compare_run(self, start: int, at: int, length: int) -> None:
        """Compare a run of equal letters, from `start` in the source and `at` in the quotation."""
        begin = 0
        for index in range(1, length + 1):
            if index < length and not (self.source.is_start[start + index] or self.quote.is_start[at + index]):
                continue
            self._compare_word((start + begin, start + index), (at + begin, at + index))
            if len(self.differences) >= MAX_DIFFERENCES:
                return
            if index < length:
                self.compare_gap(start + index, at + index)
            begin = index

    def compare_gap(self, index: int, at: int) -> None:
        """Compare what stands before a letter of the source and before one of the quotation."""
        if self.source.gap(index) == self.quote.gap(at):
            return
        place, own = _place(self.source, index), _place(self.quote, at)
        fit = compare_gaps(place, own)
        if fit is Fit.SPACE:
            self.spaces += 1
            parts = own if own.gap else place
            fit = Fit.SAME if is_split(parts.before, parts.behind) else Fit.DIFFERENT
        if fit is Fit.PUNCTUATION and place.before.lower() in NEGATIONS:  # "No, smoking is allowed"
            fit = Fit.DIFFERENT
        if fit is Fit.DIFFERENT:
            self.add(str(own), str(place))
        self.punctuation += fit is Fit.PUNCTUATION

    def compare_edges(self, start: int, end: int) -> None:
        """Check that the quotation neither cuts a word nor leaves out a negation or a sign beside it."""
        text, own = self.source.plain.text, self.quote.plain.text
        first, last = int(self.source.at[start]), self.source.end(end - 1)
        own_first, own_last = int(self.quote.at[0]), self.quote.end(len(self.quote) - 1)
        lead, trail = own[:own_first], own[own_last:]
        if (cut := cut_before(text, first, lead)) is not None:
            joint = " " if text[first - 1].isspace() else ""
            self.add(own[own_first:].split()[0], f"{cut}{joint}{text[first : first + MAX_SHOWN].split()[0]}")
        if (cut := cut_behind(text, last, trail)) is not None:
            joint = " " if text[last].isspace() else ""
            self.add(own[:own_last].split()[-1], f"{text[max(0, last - MAX_SHOWN) : last].split()[-1]}{joint}{cut}")
        self._compare_signs(trail, WORD_AND_REST.sub("", text[last : last + len(trail) + SIGN_MARGIN]))
        if not text[first].isdigit():
            self._compare_signs(lead, REST_AND_WORD.sub("", text[max(0, first - len(lead) - SIGN_MARGIN) : first]))

    def _compare_signs(self, own: str, signs: str) -> None:
        """Check that signs at an edge of the quotation are in the source."""
        if symbols_of(own) not in symbols_of(signs):
            self.add(own.strip(), signs.strip())

    def _compare_word(self, span: Span, own_span: Span) -> None:
        """Compare accents, and case where it tells one unit or identifier from another."""
        word, own = self.source.raw(*span), self.quote.raw(*own_span)
        if word == own:
            return
        is_unit = word.lower() in CASED_UNITS and span[0] > 0 and self.source.text[span[0] - 1].isdigit()
        if _comparable(word) != _comparable(own) or is_unit or _is_cased(word, own):
            self.add(own, word)


def _comparable(word: str) -> str:
    """Return a word as it is compared: in lower case, with its accents, and with European digits."""
    lower = unicodedata.normalize("NFKC", OPTIONAL_MARKS.sub("", word.lower())).translate(SAME_LETTERS)
    return "".join(str(unicodedata.decimal(character, character)) for character in NOT_IN_WORDS.sub("", lower))


def _is_cased(word: str, own: str) -> bool:
    """Return whether two spellings differ in capitals inside, as identifiers do."""
    word, own = (unicodedata.normalize("NFKC", text) for text in (word, own))
    is_shouted = word.isupper() or own.isupper()
    return not is_shouted and bool(INNER_CAPITAL.search(word) or INNER_CAPITAL.search(own)) and word[1:] != own[1:]


def _place(letters: Letters, index: int) -> Place:
    text, end, start = letters.plain.text, letters.end(index - 1), int(letters.at[index])
    before, behind = text[max(0, end - CONTEXT) : end], text[start : start + CONTEXT]
    left = (NUMBER_BEFORE if before[-1:].isdigit() else WORD_BEFORE).search(before)
    right = (NUMBER_BEHIND if behind[:1].isdigit() else WORD_BEHIND).match(behind)
    return Place(left[0] if left else before[-1:], text[end:start], right[0] if right else behind[:1])


def _shorten(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."
