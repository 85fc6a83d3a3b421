"""Parses SOSL to a tree."""

from typing import Any

from bedstone.salesforce.soql.clauses import ClauseParser
from bedstone.salesforce.soql.cursor import Dialect
from bedstone.salesforce.soql.problems import SyntaxProblem
from bedstone.salesforce.soql.quoting import unquote
from bedstone.salesforce.soql.tree import (
    Bind,
    Call,
    Column,
    DataCategories,
    Number,
    Order,
    Returning,
    Search,
    SearchOption,
    Value,
)

GROUPS = frozenset({"all", "name", "email", "phone", "sidebar"})
CLAUSES = frozenset({"using", "where", "order", "limit", "offset"})  # after the fields of an object
MISSING_TERM = "No search term found. The search term must be enclosed in braces."


def parse_sosl(text: str, dialect: Dialect = "rest") -> Search:
    """Parse a statement, or raise `SyntaxProblem`."""
    start = len(text) - len(text.lstrip())
    if text[start : start + 4].lower() != "find":
        raise SyntaxProblem("A search begins with FIND.", text, start)
    term, is_bind, end = _term(text, start + 4, dialect)
    # The rest is parsed with the term blanked out, so that all positions stay the same.
    blank = " " * end + text[end:]
    parser = SoslParser(blank, dialect)
    return parser.statement(text, start, term, is_bind=is_bind)


def _term(text: str, position: int, dialect: Dialect) -> tuple[str, bool, int]:
    """Return the term, whether it is a bind, and where it ends."""
    while position < len(text) and text[position].isspace():
        position += 1
    opening = text[position : position + 1]
    if opening == "{":
        end = _closing(text, position, "}")
        term = text[position + 1 : end - 1]
    elif opening == "'" and dialect != "rest":
        end = _closing(text, position, "'")
        term = unquote(text[position:end])
    elif opening == ":" and dialect != "rest":
        parser = ClauseParser(" " * position + text[position:], dialect)
        bind = parser.bind()
        return bind.expression, True, bind.span[1]
    else:
        raise SyntaxProblem(MISSING_TERM, text, position)
    if not term.strip():
        raise SyntaxProblem(MISSING_TERM, text, position)
    _check_term(text, position + 1, term)
    return term, False, end


def _closing(text: str, position: int, sign: str) -> int:
    """Return the position after the closing sign."""
    place = position + 1
    while place < len(text):
        if text[place] == "\\":
            place += 1
        elif text[place] == sign:
            return place + 1
        place += 1
    raise SyntaxProblem(f"The search term is not closed: {sign} is missing.", text, position)


def _check_term(text: str, start: int, term: str) -> None:
    """Check that quotes and parentheses are closed."""
    quoted = False
    open_at: list[int] = []
    place = 0
    while place < len(term):
        sign = term[place]
        if sign == "\\":
            place += 1
        elif sign == '"':
            quoted = not quoted
        elif sign == "(" and not quoted:
            open_at.append(place)
        elif sign == ")" and not quoted:
            if not open_at:
                raise SyntaxProblem("A parenthesis in the search term was never opened.", text, start + place)
            open_at.pop()
        place += 1
    if quoted:
        raise SyntaxProblem("A phrase in the search term is not closed.", text, start)
    if open_at:
        raise SyntaxProblem("A parenthesis in the search term is not closed.", text, start + open_at[0])


class SoslParser(ClauseParser):
    """Parses what follows the term."""

    def statement(self, text: str, start: int, term: str, *, is_bind: bool) -> Search:
        """Parse the rest of the statement."""
        within = self._within()
        returning = self.many(self._returning) if self.skip("returning") else ()
        self._check_once(returning)
        options: list[SearchOption | DataCategories] = []
        while self.words[self.at] == "with":
            options.append(self.data_categories() if self.is_at_categories() else self._option())
        limit = self.integer() if self.skip("limit") else None
        updates = self.update_targets() if self.skip("update") else ()
        self.finish()
        end = self.ends[self.at - 1] if self.at else len(text.rstrip())
        return Search(term, within, returning, tuple(options), limit, updates, is_bind, (start, end))

    def _within(self) -> Any:
        if not self.skip("in"):
            return None
        word = self.words[self.at]
        if word not in GROUPS:
            raise self.problem("ALL, NAME, EMAIL, PHONE or SIDEBAR")
        self.at += 1
        self.need("fields")
        return word.upper()

    def _returning(self) -> Returning:
        first = self.at
        name = self.name("an object")
        if not self.skip("("):
            return Returning(name, span=self.span(first))
        fields = self.many(self._field)
        list_view = self._list_view()
        where = self.condition() if self.skip("where") else None
        list_view = list_view or self._list_view()
        orders: tuple[Order, ...] = ()
        if self.words[self.at] == "order" and self.words[self.at + 1] == "by":
            self.at += 2
            orders = self.orders()
        limit: Number | Bind | None = self.integer() if self.skip("limit") else None
        offset: Number | Bind | None = self.integer() if self.skip("offset") else None
        self.need(")")
        return Returning(name, fields, where, list_view, orders, limit, offset, self.span(first))

    def _field(self) -> Column:
        """Parse a field, or a function of one, which may have an alias."""
        first = self.at
        expression = self.expression()
        has_alias = isinstance(expression, Call) and self.is_name(self.at) and self.words[self.at] not in CLAUSES
        return Column(expression, self.name("an alias") if has_alias else None, self.span(first))

    def _list_view(self) -> str | None:
        if not self.skip("using"):
            return None
        self.need("listview")
        self.need("=")
        return self.name("a list view")

    def _check_once(self, returning: tuple[Returning, ...]) -> None:
        seen: set[str] = set()
        for item in returning:
            if item.name.lower() in seen:
                raise SyntaxProblem(f'"{item.name}" is returned twice.', self.text, item.span[0])
            seen.add(item.name.lower())

    def _option(self) -> SearchOption:
        first = self.at
        self.need("with")
        name = self.name("an option")
        values: tuple[Value, ...] = ()
        if self.skip("="):
            values = (self.value(),)
            return SearchOption(name, "=", values, (), self.span(first))
        if self.skip("in"):
            return SearchOption(name, "IN", self.value_list(), (), self.span(first))
        settings = self.settings() if self.words[self.at] == "(" else ()
        return SearchOption(name, "", (), settings, self.span(first))
