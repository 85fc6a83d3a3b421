"""Find where a caret is in a statement that is still being typed: in which SELECT, in which clause, after what."""

from dataclasses import dataclass, field

from bedstone.salesforce.soql.cursor import RESERVED
from bedstone.salesforce.soql.lexer import Tokens, tokenize

CLAUSES = frozenset({"from", "using", "where", "with", "having", "limit", "for", "update"})
PAIRED = ("group", "order")  # clauses only before BY
LISTS = frozenset({"in", "includes", "excludes"})


@dataclass(slots=True)
class Select:
    """A SELECT around the caret, as far as it is typed."""

    level: int  # how many parentheses are open in it
    is_join: bool  # the inner select of IN
    clause: str = "select"
    from_at: int | None = None  # the place of FROM in the tokens
    is_grouped: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """A name in FROM, and its alias."""

    parts: tuple[str, ...]
    alias: str


@dataclass(slots=True)
class Caret:
    """What surrounds a caret. The tokens before `at` end before what is being typed."""

    tokens: Tokens
    at: int
    position: int
    typed: str = ""  # the part of a name before the caret, with its dots
    end: int = 0  # of the name that is being typed
    text_at: int | None = None  # the place of the string around the caret
    is_mute: bool = False  # in a comment or a number, where nothing can be completed
    selects: list[Select] = field(default_factory=list)  # the outermost first
    openings: list[int] = field(default_factory=list)  # the places of parentheses that are open

    @property
    def last(self) -> str:
        """Return the token before the caret, in lower case."""
        return self.word(self.at - 1)

    def word(self, place: int) -> str:
        """Return a token in lower case; the words of strings and numbers mean nothing and are empty."""
        known = 0 <= place < len(self.tokens.kinds) and self.tokens.kinds[place] in ("name", "sign")
        return self.tokens.words[place] if known else ""

    def kind(self, place: int) -> str:
        """Return the kind of a token."""
        return self.tokens.kinds[place] if 0 <= place < len(self.tokens.kinds) else ""

    @property
    def opened_by(self) -> str:
        """Return the token before the innermost open parenthesis of this SELECT; empty without one."""
        inner = self.selects[-1].level if self.selects else 0
        return self.word(self.openings[-1] - 1) if len(self.openings) > inner else ""

    @property
    def is_in_parentheses(self) -> bool:
        """Return whether a parenthesis of this SELECT is open."""
        return bool(self.selects) and len(self.openings) > self.selects[-1].level

    def matching(self, place: int) -> int:
        """Return the place of the parenthesis that a closing one belongs to, or -1."""
        depth = 0
        for index in range(place, -1, -1):
            depth += {")": 1, "(": -1}.get(self.word(index), 0)
            if depth == 0:
                return index
        return -1

    def sources(self, select: Select) -> list[Source]:
        """Return the names in FROM that are typed so far."""
        found: list[Source] = []
        if select.from_at is None:
            return found
        place = select.from_at + 1
        while self.kind(place) == "name" and self.word(place) not in RESERVED:
            parts, alias = tuple(self.tokens.source_text(place).split(".")), ""
            place += 1
            if self._is_alias(place):
                alias = self.word(place)
                place += 1
            found.append(Source(parts, alias))
            if self.word(place) != ",":
                break
            place += 1
        return found

    def _is_alias(self, place: int) -> bool:
        word = self.word(place)
        is_clause = word in RESERVED or (word in PAIRED and self.word(place + 1) == "by") or word == "offset"
        return self.kind(place) == "name" and not is_clause and place != self.at


def find_caret(text: str, position: int) -> Caret:
    """Return what surrounds a position of a statement; the statement may be incomplete or wrong."""
    tokens = tokenize(text)
    for place in range(len(tokens.kinds) - 1, -1, -1):  # comments carry no meaning, but completing ends in them
        if tokens.kinds[place] == "comment":
            start, end = tokens.starts[place], tokens.ends[place]
            is_closed = text[start:end].endswith("*/") and end - start > len("/**")
            if start < position < end or (position == end and not is_closed):
                return Caret(tokens, 0, position, is_mute=True)
    _drop_comments(tokens)
    after_all = tokens.kinds.index("end")
    place = next((index for index, end in enumerate(tokens.ends) if end >= position), after_all)
    caret = Caret(tokens, place, position, end=position)
    _read_touched(caret)
    _read_before(caret)
    _read_after(caret)
    return caret


def _drop_comments(tokens: Tokens) -> None:
    kept = [place for place, kind in enumerate(tokens.kinds) if kind != "comment"]
    if len(kept) < len(tokens.kinds):
        for texts in (tokens.kinds, tokens.words):
            texts[:] = [texts[place] for place in kept]
        for places in (tokens.starts, tokens.ends):
            places[:] = [places[place] for place in kept]


def _read_touched(caret: Caret) -> None:
    """Note what the caret touches: a name, a string or a number; a sign before it is complete."""
    place, position = caret.at, caret.position
    kind, start, end = caret.kind(place), caret.tokens.starts[place], caret.tokens.ends[place]
    if start >= position or kind == "end":
        return
    written = caret.tokens.source_text(place)
    if kind == "name":
        caret.typed = written[: position - start]
        rest = written[position - start :].partition(".")[0]
        caret.end = position + len(rest)
    elif written.startswith("'") and (kind == "other" or position < end):
        caret.text_at = place
    elif kind in ("sign", "text"):
        caret.at = place + 1
    else:
        caret.is_mute = True


def _read_before(caret: Caret) -> None:
    """Follow the clauses and parentheses before the caret."""
    for place in range(caret.at):
        word = caret.word(place)
        if word == "(":
            caret.openings.append(place)
        elif word == ")" and caret.openings:
            caret.openings.pop()
            if caret.selects and caret.selects[-1].level > len(caret.openings):
                caret.selects.pop()
        elif word == "select":
            _enter(caret, place)
        elif caret.selects and len(caret.openings) == caret.selects[-1].level:
            _follow(caret, caret.selects[-1], place)


def _enter(caret: Caret, place: int) -> None:
    is_inner = caret.word(place - 1) == "(" and bool(caret.selects)
    if is_inner or not caret.selects:
        caret.selects.append(Select(len(caret.openings), caret.word(place - 2) == "in" and is_inner))


def _follow(caret: Caret, select: Select, place: int) -> None:
    """Note the clause that begins with a word, if one does."""
    word, before = caret.word(place), caret.word(place - 1)
    if before == "from":  # an object may be called Group or Order
        return
    if word in PAIRED and caret.word(place + 1) == "by":
        select.clause = f"{word} by"
        select.is_grouped |= word == "group"
    elif word in CLAUSES or (word == "offset" and select.clause == "limit"):
        select.clause = word
        if word == "from" and select.from_at is None:
            select.from_at = place


def _read_after(caret: Caret) -> None:
    """Find each FROM that is after the caret: one types SELECT first, and goes back for the fields."""
    depth = lowest = len(caret.openings)
    missing = {select.level: select for select in caret.selects if select.from_at is None}
    spare: int | None = None
    for place in range(caret.at, len(caret.tokens.kinds)):
        word = caret.word(place)
        depth += {"(": 1, ")": -1}.get(word, 0)
        lowest = min(lowest, depth)
        if word != "from" or depth != lowest:
            continue
        if depth in missing:
            missing.pop(depth).from_at = place
        elif spare is None:
            spare = place
    if len(caret.selects) > 1 and caret.selects[0].from_at is None:  # the subquery is not closed yet
        first, inner = caret.selects[0], caret.selects[-1]
        if spare is not None:
            first.from_at = spare
        else:
            first.from_at, inner.from_at = inner.from_at, None
