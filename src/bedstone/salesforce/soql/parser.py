"""SOQL to a tree: recursive descent over the official grammar, and what Apex and language models write besides.

Three dialects. `rest` is what an org's query endpoint reads. `apex` adds binds, FOR UPDATE and ALL ROWS. `lenient`
reads whatever has an obvious meaning, makes the tree of the correct statement, and remembers each deviation.
"""

import re
from collections.abc import Callable
from typing import Any, Literal, TypeVar

from bedstone.salesforce.soql.lexer import END, Tokens, tokenize, unreadable
from bedstone.salesforce.soql.literals import DATE_LITERALS
from bedstone.salesforce.soql.problems import Deviation, SyntaxProblem
from bedstone.salesforce.soql.quoting import BadEscape, unquoted
from bedstone.salesforce.soql.tree import (
    And,
    Bind,
    Boolean,
    Call,
    CategorySelection,
    Choice,
    Column,
    Comparison,
    Condition,
    DataCategories,
    DateLiteral,
    Distance,
    Expression,
    Geolocation,
    GroupBy,
    Membership,
    Moment,
    Money,
    Not,
    Null,
    Number,
    Option,
    Or,
    Order,
    Path,
    Query,
    SemiJoin,
    Source,
    Sum,
    Text,
    TypeOf,
    Using,
    Value,
    When,
    With,
)

Dialect = Literal["rest", "apex", "lenient"]
Item = TypeVar("Item")

RESERVED = frozenset(
    "and as asc bind by cube desc else excludes false first for from having hierarchical in includes last like limit "  # noqa: SIM905
    "lookup not null nulls or rollup select true update using where with".split()
)
# Words that mean something in one place and may be names in all others.
SOFT = frozenset(
    "above above_or_below at below case category data distance end geolocation group offset order reference scope then "  # noqa: SIM905
    "typeof view when".split()
)
COMPARISONS = frozenset({"=", "<", ">", "!=", "<>"})
CATEGORY_OPERATORS = frozenset({"at", "above", "below", "above_or_below"})
MONEY = re.compile(r"([A-Za-z]{3})(\d+(?:\.\d*)?)")
MOST_DIGITS = 9
DEEPEST = 100  # conditions and subqueries inside each other
# An expression of Apex: names, calls, indexes, `new` with type parameters.
BIND = re.compile(r"\s*(?:new\s+[\w.]+(?:<[\w.,\s<>]*>)?|[A-Za-z_]\w*)", re.IGNORECASE)
CLOSING = {"(": ")", "[": "]"}


def parse_soql(text: str, dialect: Dialect = "rest") -> Query:
    """Read a statement, or raise `SyntaxProblem`."""
    return SoqlParser(text, dialect).statement()


class Parser:
    """What SOQL and SOSL share: walking over tokens, values, conditions, lists."""

    def __init__(self, text: str, dialect: Dialect = "rest") -> None:
        tokens = tokenize(text)
        self.deviations: list[Deviation] = []
        if "comment" in tokens.kinds:
            self.deviations += _drop_comments(tokens, dialect)
        self.tokens: Tokens = tokens
        self.text = text
        self.dialect = dialect
        self.is_lenient = dialect == "lenient"
        self.kinds = tokens.kinds
        self.words = tokens.words
        self.starts = tokens.starts
        self.ends = tokens.ends
        self.at = 0
        self.depth = 0

    # Walking

    def problem(self, expected: str = "") -> SyntaxProblem:
        """What is wrong with the token we are at."""
        at = self.at
        if self.kinds[at] == "other":
            return unreadable(self.tokens, at)
        found = self.tokens.written(at)
        line = self.text.count("\n", 0, self.starts[at]) + 1
        column = self.starts[at] - self.text.rfind("\n", 0, self.starts[at])
        shown = f'"{found}"' if found else "end of the statement"
        wanted = f" Expected {expected}." if expected else ""
        message = f"Unexpected {shown} at line {line}, column {column}.{wanted}"
        return SyntaxProblem(message, self.text, self.starts[at], found=found, expected=expected)

    def skip(self, word: str) -> bool:
        """Go past a word or sign if we are at it."""
        if self.words[self.at] == word:
            self.at += 1
            return True
        return False

    def need(self, word: str) -> None:
        """Go past a word or sign that must be here."""
        if self.words[self.at] != word:
            raise self.problem(word.upper() if word.isalpha() else f'"{word}"')
        self.at += 1

    def deviate(self, code: str, start: int, end: int, corrected: str | None) -> None:
        """Remember something only the lenient dialect lets pass."""
        self.deviations.append(Deviation(code, self.text[start:end], corrected, (start, end)))

    def span(self, first: int) -> tuple[int, int]:
        """From a token to the last one we went past."""
        return self.starts[first], self.ends[self.at - 1]

    def many(self, item: Callable[[], Item]) -> tuple[Item, ...]:
        """One or more, with commas between."""
        items = [item()]
        while self.words[self.at] == ",":
            self.at += 1
            items.append(item())
        return tuple(items)

    def is_name(self, at: int) -> bool:
        """Whether a token may be the name of something."""
        return self.kinds[at] == "name" and self.words[at] not in RESERVED

    def name(self, what: str = "a name") -> str:
        """A name."""
        at = self.at
        if not self.is_name(at):
            raise self.problem(what)
        self.at = at + 1
        return self.text[self.starts[at] : self.ends[at]]

    def hard_name(self) -> str:
        """A name that is no word of the language anywhere."""
        if self.words[self.at] in SOFT:
            raise self.problem("a name")
        return self.name()

    def path(self, what: str = "a field") -> Path:
        """A field with its parents."""
        at = self.at
        if self.kinds[at] != "name" or self.words[at] in RESERVED:
            raise self.problem(what)
        self.at = at + 1
        start, end = self.starts[at], self.ends[at]
        return Path(tuple(self.text[start:end].split(".")), (start, end))

    def deeper(self) -> None:
        """One level further in; statements that are nested without end are refused."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise SyntaxProblem(
                f"The statement is nested more than {DEEPEST} levels deep.", self.text, self.starts[self.at]
            )

    def finish(self) -> None:
        """Nothing may follow."""
        if self.words[self.at] == ";" and self.is_lenient:
            self.deviate("SQL_FORM", self.starts[self.at], self.ends[self.at], "")
            self.at += 1
        if self.words[self.at] != END or self.kinds[self.at] != "end":
            raise self.problem()

    # Expressions

    def expression(self) -> Expression:
        """A field, or a function of one."""
        at = self.at
        if self.words[at + 1 if self.kinds[at] == "name" else at] == "(" and self.is_name(at):
            return self.call()
        return self.path()

    def call(self) -> Expression:
        """A function of one expression."""
        first = self.at
        name = self.name("a function")
        self.need("(")
        if self.words[self.at] == "*" and self.is_lenient and name.lower() == "count":
            self.at += 1
            self.need(")")
            span = self.span(first)
            self.deviate("SQL_FORM", *span, "COUNT(Id)")
            return Call(name, (Path(("Id",), span),), span)
        self.deeper()
        arguments = [self.expression()]
        while self.is_lenient and self.skip(","):
            arguments.append(self.expression())
            self.deviate("FUNCTION_ARGUMENTS", *self.span(first), None)
        self.depth -= 1
        self.need(")")
        return Call(name, tuple(arguments), self.span(first))

    def expression_or_distance(self) -> Expression:
        """Where the distance to a point may stand too."""
        return self.distance() if self._is_distance() else self.expression()

    def _is_distance(self) -> bool:
        at = self.at
        words = self.words
        return words[at] == "distance" and words[at + 1] == "(" and words[at + 3] == ","

    def distance(self) -> Distance:
        """DISTANCE(field, point, unit)."""
        first = self.at
        self.at += 2
        place = self.path("a location field")
        self.need(",")
        at = self.at
        point: Geolocation | Path | Bind
        if self.words[at] == ":":
            point = self.bind()
        elif self.words[at] == "geolocation" and self.words[at + 1] == "(":
            self.at += 2
            latitude = self.number()
            self.need(",")
            longitude = self.number()
            self.need(")")
            point = Geolocation(latitude, longitude, self.span(at))
        elif self.is_lenient:
            point = self.path()
            self.deviate("DISTANCE_FORM", *self.span(at), None)
        else:
            raise self.problem("GEOLOCATION")
        self.need(",")
        if self.kinds[self.at] != "text":
            raise self.problem("'mi' or 'km'")
        unit = self.tokens.written(self.at)[1:-1]
        self.at += 1
        self.need(")")
        return Distance(place, point, unit, self.span(first))

    # Values

    def value(self, *, is_pattern: bool = False) -> Value:  # noqa: PLR0911 - one for each kind
        """A literal."""
        at = self.at
        kind = self.kinds[at]
        start, end = self.starts[at], self.ends[at]
        if kind == "text":
            self.at = at + 1
            return Text(self._unquoted(start, end, is_pattern=is_pattern), (start, end))
        if kind in ("integer", "decimal"):
            self.at = at + 1
            return Number(self.text[start:end], (start, end))
        if kind in ("date", "datetime", "time"):
            self.at = at + 1
            return Moment(kind, self.text[start:end], (start, end))  # type: ignore[arg-type]
        word = self.words[at]
        if kind == "name":
            return self._named_value(at, word)
        if word in ("+", "-") and self.kinds[at + 1] in ("integer", "decimal"):
            return self.number()
        if word == ":":
            return self.bind()
        if kind == "other" and word[0] == '"' and len(word) > 1 and self.is_lenient:
            self.at = at + 1
            value = word[1:-1].replace('\\"', '"')
            self.deviate("SQL_FORM", start, end, "'" + value.replace("'", "\\'") + "'")
            return Text(value, (start, end))
        raise self.problem("a value")

    def _named_value(self, at: int, word: str) -> Value:
        span = (self.starts[at], self.ends[at])
        self.at = at + 1
        if word == "null":
            return Null(span)
        if word in ("true", "false"):
            return Boolean(word == "true", span)
        upper = word.upper()
        if upper in DATE_LITERALS:
            return self._date_literal(at, upper)
        found = MONEY.fullmatch(self.text, *span)
        if found:
            return Money(found[1].upper(), found[2].rstrip("."), span)
        if self.is_lenient:
            return self._lenient_value(at, upper)
        self.at = at
        raise self.problem("a value")

    def _date_literal(self, at: int, name: str) -> DateLiteral:
        count = None
        if self.words[self.at] == ":" and (self.kinds[self.at + 1] == "integer" or self.dialect == "rest"):
            self.at += 1
            if self.kinds[self.at] != "integer":
                raise self.problem("a number")
            count = _whole(self.words[self.at])
            self.at += 1
        return DateLiteral(name, count, self.span(at))

    def _lenient_value(self, at: int, word: str) -> Value:
        """What people write for a value: LAST_365_DAYS, USD-500, a word without quotes."""
        start, end = self.starts[at], self.ends[at]
        guessed = re.fullmatch(r"(LAST|NEXT)_(\d+)_(DAY|WEEK|MONTH|QUARTER|YEAR)S?", word)
        if guessed and int(guessed[2]):
            name = f"{guessed[1]}_N_{guessed[3]}S"
            self.deviate("DATE_LITERAL_UNKNOWN", start, end, f"{name}:{guessed[2]}")
            return DateLiteral(name, int(guessed[2]), (start, end))
        if re.fullmatch(r"(LAST|NEXT|THIS|N)_\w+", word):
            self.deviate("DATE_LITERAL_UNKNOWN", start, end, None)
            return DateLiteral(word, None, (start, end))
        if len(word) == 3 and self.words[self.at] == "-" and self.kinds[self.at + 1] in ("integer", "decimal"):  # noqa: PLR2004
            self.at += 2
            span = self.span(at)
            self.deviate("MONEY_SIGN", *span, None)
            return Money(word, f"-{self.words[self.at - 1]}", span)
        written = self.text[start:end]
        self.deviate("LITERAL_UNQUOTED", start, end, f"'{written}'")
        return Text(written, (start, end))

    def _unquoted(self, start: int, end: int, *, is_pattern: bool) -> str:
        try:
            return unquoted(self.text[start:end], is_pattern=is_pattern)
        except BadEscape as error:
            message = "A backslash stands before a character that cannot be escaped."
            raise SyntaxProblem(message, self.text, start + error.position) from None

    def number(self) -> Number:
        """A number with its sign."""
        first = self.at
        sign = self.words[first] if self.words[first] in ("+", "-") else ""
        self.at += bool(sign)
        if self.kinds[self.at] not in ("integer", "decimal"):
            raise self.problem("a number")
        self.at += 1
        return Number(sign.replace("+", "") + self.words[self.at - 1], self.span(first))

    def integer(self) -> Number | Bind:
        """A whole number, or a bind where that is allowed."""
        if self.words[self.at] == ":":
            return self.bind()
        at = self.at + (self.words[self.at] in ("+", "-"))
        if self.kinds[at] != "integer":
            self.at = at
            raise self.problem("a number")
        return self.number()

    def bind(self) -> Bind:
        """`:expression` of Apex."""
        start = self.starts[self.at]
        if self.dialect == "rest":
            raise self.problem("a value")
        end = self._bind_end(start + 1)
        expression = self.text[start + 1 : end].strip()
        if not expression:
            self.at += 1
            raise self.problem("an expression")
        while self.starts[self.at] < end:
            self.at += 1
        if self.is_lenient:
            self.deviate("APEX_ONLY", start, end, None)
        return Bind(expression, (start, end))

    def _bind_end(self, position: int) -> int:
        """Where an expression of Apex ends."""
        text = self.text
        found = BIND.match(text, position)
        if not found:
            return position
        position = found.end()
        while position < len(text):
            if text[position] in CLOSING:
                position = self._closed(position)
            elif text[position] == "." and position + 1 < len(text) and (text[position + 1].isalpha()):
                name = re.compile(r"\w+").match(text, position + 1)
                assert name
                position = name.end()
            else:
                return position
        return position

    def _closed(self, position: int) -> int:
        waiting: list[str] = []
        for place in range(position, len(self.text)):
            sign = self.text[place]
            if sign in CLOSING:
                waiting.append(CLOSING[sign])
            elif waiting and sign == waiting[-1]:
                waiting.pop()
                if not waiting:
                    return place + 1
        raise SyntaxProblem("An expression is not closed.", self.text, position)

    # Conditions

    def condition(self) -> Condition:
        """Terms joined by AND, by OR, or one with NOT."""
        first = self.at
        self.deeper()
        try:
            if self.words[first] == "not" and not self.is_lenient:
                self.at += 1
                return Not(self.term(), self.span(first))
            if self.is_lenient:
                return self._lenient_or()
            left = self.term()
            joint = self.words[self.at]
            if joint not in ("and", "or"):
                return left
            terms = [left]
            while self.words[self.at] == joint:
                self.at += 1
                terms.append(self.term())
            return (And if joint == "and" else Or)(tuple(terms), self.span(first))
        finally:
            self.depth -= 1

    def _lenient_or(self) -> Condition:
        """AND binds tighter than OR, NOT tighter than both; mixing them is remembered."""
        first = self.at
        terms = [self._lenient_and()]
        while self.skip("or"):
            terms.append(self._lenient_and())
        if len(terms) == 1:
            return terms[0][0]
        mixed = any(is_mixed for _, is_mixed in terms)
        made = Or(tuple(term for term, _ in terms), self.span(first))
        if mixed:
            self.deviate("MIXED_LOGIC", *self.span(first), None)
        return made

    def _lenient_and(self) -> tuple[Condition, bool]:
        first = self.at
        terms = [self._lenient_not()]
        while self.skip("and"):
            terms.append(self._lenient_not())
        if len(terms) == 1:
            return terms[0]
        if any(is_bare for _, is_bare in terms):
            self.deviate("MIXED_LOGIC", *self.span(first), None)
        return And(tuple(term for term, _ in terms), self.span(first)), True

    def _lenient_not(self) -> tuple[Condition, bool]:
        """A term; whether it is a NOT that would need parentheses beside others."""
        first = self.at
        if not self.skip("not"):
            return self.term(), False
        self.deeper()
        term, is_bare = self._lenient_not()
        self.depth -= 1
        if is_bare:
            self.deviate("MIXED_LOGIC", *self.span(first), None)
        return Not(term, self.span(first)), True

    def term(self) -> Condition:
        """A condition in parentheses, or a comparison."""
        first = self.at
        if self.words[first] == "(":
            self.at = first + 1
            if self.words[self.at] == "select" and self.is_lenient:
                raise SyntaxProblem("A subquery cannot be a condition by itself.", self.text, self.starts[first])
            inside = self.condition()
            self.need(")")
            return inside
        left = self.expression_or_distance()
        word = self.words[self.at]
        if word in COMPARISONS:
            return self._comparison(first, left)
        if word in ("in", "not"):
            return self._membership(first, left)
        return self._other_comparison(first, left, word)

    def _other_comparison(self, first: int, left: Expression, word: str) -> Condition:
        if word == "like":
            self.at += 1
            return Comparison(left, "LIKE", self.value(is_pattern=True), self.span(first))
        if word in ("includes", "excludes"):
            self.at += 1
            values = self._listed()
            return Choice(left, "INCLUDES" if word == "includes" else "EXCLUDES", values, self.span(first))
        if word in ("+", "-") and isinstance(left, Path):
            self.at += 1
            total = Sum(left, "+" if word == "+" else "-", self.path(), self.span(first))
            if self.words[self.at] not in COMPARISONS:
                raise self.problem("an operator")
            return self._comparison(first, total)
        if self.is_lenient:
            return self._lenient_term(first, left)
        raise self.problem("an operator")

    def _comparison(self, first: int, left: Expression | Sum) -> Comparison:
        at = self.at
        operator: Any = self.words[at]
        self.at = at + 1
        if operator in ("<", ">") and self.words[self.at] == "=":
            operator += "="
            self.at += 1
        elif operator == "=" and self.words[self.at] == "=" and self.is_lenient:
            self.at += 1
            self.deviate("SQL_FORM", *self.span(at), "=")
        return Comparison(left, operator, self.value(), self.span(first))

    def _membership(self, first: int, left: Expression) -> Condition:
        negated = self.skip("not")
        if negated and self.is_lenient and self.words[self.at] == "like":
            self.at += 1
            inner = Comparison(left, "LIKE", self.value(is_pattern=True), self.span(first))
            span = self.span(first)
            left_text, right_text = (self.text[slice(*item.span)] for item in (left, inner.right))
            self.deviate("SQL_FORM", *span, f"(NOT {left_text} LIKE {right_text})")
            return Not(inner, self.span(first))
        self.need("in")
        if self.words[self.at] == ":":
            return Membership(left, self.bind(), negated, self.span(first))
        if self.words[self.at] == "(" and self.words[self.at + 1] == "select":
            return Membership(left, self.semi_join(), negated, self.span(first))
        return Membership(left, self._listed(), negated, self.span(first))

    def _listed(self) -> tuple[Value, ...]:
        if self.words[self.at] == ":":
            return (self.bind(),)
        self.need("(")
        values = self.many(self.value)
        self.need(")")
        return values

    def _lenient_term(self, first: int, left: Expression) -> Condition:
        """IS NULL, IS NOT NULL, BETWEEN."""
        at = self.at
        if self.skip("is"):
            negated = self.skip("not")
            if self.words[self.at] == "null":
                self.at += 1
                operator: Literal["=", "!="] = "!=" if negated else "="
                span = self.span(at)
                self.deviate("SQL_FORM", *span, f"{operator} null")
                return Comparison(left, operator, Null(span), self.span(first))
        elif self.words[at] == "between":
            self.at += 1
            low = self.value()
            self.need("and")
            high = self.value()
            span = self.span(first)
            name = self.text[self.starts[first] : self.ends[at - 1]]
            lowest, highest = (self.text[slice(*item.span)] for item in (low, high))
            self.deviate("SQL_FORM", *span, f"({name} >= {lowest} AND {name} <= {highest})")
            return And((Comparison(left, ">=", low, span), Comparison(left, "<=", high, span)), span)
        self.at = at
        raise self.problem("an operator")

    def semi_join(self) -> SemiJoin:
        """The select inside IN."""
        first = self.at
        self.at += 2
        self.deeper()
        field = self.expression()
        self.need("from")
        sources = self.many(self.source)
        where = self.condition() if self.skip("where") else None
        options: tuple[With, ...] = ()
        if self.words[self.at] == "with":
            if self._at_categories():
                options = (self.data_categories(),)
            else:
                option = self.option()
                if option.value is None:
                    raise self.problem('"="')
                options = (option,)
        self.depth -= 1
        if self.words[self.at] != ")":
            raise self.problem('")"')
        self.at += 1
        return SemiJoin(field, sources, where, options, self.span(first))

    # Clauses that both languages, or both kinds of select, have

    def source(self) -> Source:
        """An object with its alias."""
        first = self.at
        path = self.path("an object")
        self.skip("as")
        alias = self.name() if self._is_alias() else None
        return Source(path, alias, self.using(), self.span(first))

    def _is_alias(self) -> bool:
        at = self.at
        if not self.is_name(at):
            return False
        word, following = self.words[at], self.words[at + 1]
        if word in ("group", "order"):
            return following != "by"
        if word == "offset":
            return not (following in ("+", "-", ":") or self.kinds[at + 1] == "integer")
        if word == "all" and following == "rows":
            return self.dialect == "rest"
        return True

    def using(self) -> tuple[Using, ...]:
        """USING SCOPE; a comma after it may be that of the next source."""
        if not self.skip("using"):
            return ()
        found = [self._scope()]
        while (
            self.words[self.at] == "," and self.words[self.at + 1] in ("scope", "lookup") and self.is_name(self.at + 2)
        ):
            self.at += 1
            found.append(self._scope())
        return tuple(found)

    def _scope(self) -> Using:
        first = self.at
        kind: Any = self.words[first].upper()
        if kind not in ("SCOPE", "LOOKUP"):
            raise self.problem("SCOPE")
        self.at += 1
        return Using(kind, self.hard_name(), self.span(first))

    def _at_categories(self) -> bool:
        return self.words[self.at + 1] == "data" and self.words[self.at + 2] == "category"

    def data_categories(self) -> DataCategories:
        """WITH DATA CATEGORY."""
        first = self.at
        self.at += 3
        selections = [self._selection()]
        while self.skip("and"):
            selections.append(self._selection())
        return DataCategories(tuple(selections), self.span(first))

    def _selection(self) -> CategorySelection:
        first = self.at
        group = self.name("a category group")
        word = self.words[self.at]
        if word not in CATEGORY_OPERATORS:
            raise self.problem("AT, ABOVE, BELOW or ABOVE_OR_BELOW")
        self.at += 1
        if self.skip("("):
            categories = self.many(self.name)
            self.need(")")
        else:
            categories = (self.name("a category"),)
        operator: Any = word.upper()
        return CategorySelection(group, operator, categories, self.span(first))

    def option(self) -> Option:
        """WITH and a name, a value, or settings."""
        first = self.at
        self.need("with")
        name = self.name()
        if self.skip("="):
            if self.kinds[self.at] != "text" and self.words[self.at] != ":":
                raise self.problem("a text")
            return Option(name, self.value(), (), self.span(first))
        if self.words[self.at] == "(":
            return Option(name, None, self.settings(), self.span(first))
        return Option(name, None, (), self.span(first))

    def settings(self) -> tuple[tuple[str, Value], ...]:
        """(name = value, ...)."""
        self.need("(")

        def one() -> tuple[str, Value]:
            name = self.name()
            self.need("=")
            if self.kinds[self.at] not in ("text", "integer") and self.words[self.at] not in ("true", "false"):
                raise self.problem("a value")
            return name, self.value()

        found = self.many(one)
        self.need(")")
        return found

    def orders(self) -> tuple[Order, ...]:
        """What follows ORDER BY."""

        def one() -> Order:
            first = self.at
            expression = self.expression_or_distance()
            direction: Any = None
            if self.words[self.at] in ("asc", "desc"):
                direction = self.words[self.at].upper()
                self.at += 1
            nulls: Any = None
            if self.skip("nulls"):
                nulls = self.words[self.at].upper()
                if nulls not in ("FIRST", "LAST"):
                    raise self.problem("FIRST or LAST")
                self.at += 1
            return Order(expression, direction, nulls, self.span(first))

        return self.many(one)

    def update_targets(self) -> tuple[str, ...]:
        """What follows UPDATE."""
        return tuple(name.upper() for name in self.many(self.hard_name))


class SoqlParser(Parser):
    """One statement."""

    def statement(self) -> Query:
        """All of it."""
        query = self.query()
        self.finish()
        return query

    def query(self) -> Query:
        """A select, as a whole or as a child."""
        first = self.at
        self.need("select")
        self.deeper()
        columns = self.columns()
        self.need("from")
        sources = self.many(self.source)
        where = self.condition() if self.skip("where") else None
        options = self._options()
        group_by = having = None
        if self.words[self.at] == "group" and self.words[self.at + 1] == "by":
            group_by = self._group_by()
            having = self.condition() if self.skip("having") else None
        orders: tuple[Order, ...] = ()
        if self.words[self.at] == "order" and self.words[self.at + 1] == "by":
            self.at += 2
            orders = self.orders()
        limit = self.integer() if self.skip("limit") else None
        offset = self.integer() if self.skip("offset") else None
        binds = self._binds() if self.skip("bind") else ()
        purpose = self._purpose()
        updates = self.update_targets() if self.skip("update") else ()
        all_rows = self._all_rows()
        self.depth -= 1
        return Query(
            columns,
            sources,
            where,
            options,
            group_by,
            having,
            orders,
            limit,
            offset,
            binds,
            purpose,
            updates,
            all_rows,
            self.span(first),
        )

    def columns(self) -> tuple[Column, ...]:
        """What is selected."""
        at = self.at
        if self.words[at] == "count" and self.words[at + 1] == "(" and self.words[at + 2] == ")":
            self.at += 3
            span = self.span(at)
            if self.is_lenient and (self.words[self.at] == "," or self.is_name(self.at)):
                return self._lenient_count(at)
            return (Column(Call(self.tokens.written(at), (), span), None, span),)
        return self.many(self.column)

    def _lenient_count(self, at: int) -> tuple[Column, ...]:
        """COUNT() that does not stand alone."""
        span = (self.starts[at], self.ends[at + 2])
        self.deviate("COUNT_ALONE", *span, "COUNT(Id)")
        alias = self.name() if self.is_name(self.at) else None
        counted = Column(Call("COUNT", (Path(("Id",), span),), span), alias, self.span(at))
        return (counted, *(self.many(self.column) if self.skip(",") else ()))

    def column(self) -> Column:
        """One of the things selected."""
        first = self.at
        expression: Expression | TypeOf | Query
        word = self.words[first]
        if word == "(":
            self.at = first + 1
            expression = self.query()
            self.need(")")
        elif word == "typeof" and self.words[first + 2] == "when" and self.is_name(first + 1):
            expression = self._type_of()
        else:
            expression = self.expression_or_distance()
        at = self.at
        if self.is_lenient and self.skip("as"):
            self.deviate("SQL_FORM", self.starts[at], self.ends[at], "")
        alias = None
        if self.kinds[self.at] == "name" and self.words[self.at] not in RESERVED:
            alias = self.name()
        return Column(expression, alias, self.span(first))

    def _type_of(self) -> TypeOf:
        first = self.at
        self.at += 1
        relationship = self.path("a relationship")
        branches = []
        while self.words[self.at] == "when":
            start = self.at
            self.at += 1
            kind = self.name("an object")
            self.need("then")
            branches.append(When(kind, self.many(self.path), self.span(start)))
        otherwise = self.many(self.path) if self.skip("else") else None
        self.need("end")
        return TypeOf(relationship, tuple(branches), otherwise, self.span(first))

    def _options(self) -> tuple[With, ...]:
        options: list[With] = []
        while self.words[self.at] == "with":
            if not options and self._at_categories():
                options.append(self.data_categories())
            else:
                options.append(self.option())
        return tuple(options)

    def _group_by(self) -> GroupBy:
        first = self.at
        self.at += 2
        kind: Any = self.words[self.at].upper()
        if kind in ("ROLLUP", "CUBE"):
            self.at += 1
            self.need("(")
            expressions = self.many(self.expression)
            self.need(")")
            return GroupBy(expressions, kind, self.span(first))
        return GroupBy(self.many(self.expression), "", self.span(first))

    def _binds(self) -> tuple[tuple[str, Value], ...]:
        def one() -> tuple[str, Value]:
            name = self.name()
            self.need("=")
            return name, self.value()

        return self.many(one)

    def _purpose(self) -> Literal["VIEW", "REFERENCE", "UPDATE"] | None:
        at = self.at
        if self.words[at] != "for":
            return None
        word: Any = self.words[at + 1].upper()
        self.at = at + 1
        if word == "UPDATE" and self.dialect != "rest":
            if self.is_lenient:
                self.deviate("APEX_ONLY", self.starts[at], self.ends[at + 1], None)
        elif word not in ("VIEW", "REFERENCE"):
            raise self.problem("VIEW or REFERENCE")
        self.at = at + 2
        purpose: Literal["VIEW", "REFERENCE", "UPDATE"] = word
        return purpose

    def _all_rows(self) -> bool:
        at = self.at
        if self.words[at] != "all" or self.words[at + 1] != "rows" or self.dialect == "rest":
            return False
        if self.is_lenient:
            self.deviate("APEX_ONLY", self.starts[at], self.ends[at + 1], None)
        self.at = at + 2
        return True


def _whole(digits: str) -> int:
    """A number of days or months; of absurd ones it is enough to know that they are."""
    return int(digits) if len(digits) <= MOST_DIGITS else 10**MOST_DIGITS


def _drop_comments(tokens: Tokens, dialect: Dialect) -> list[Deviation]:
    """No dialect but the lenient one has comments."""
    dropped = []
    for index in range(len(tokens.kinds) - 1, -1, -1):
        if tokens.kinds[index] == "comment" and dialect == "lenient":
            span = (tokens.starts[index], tokens.ends[index])
            dropped.append(Deviation("SQL_FORM", tokens.written(index), "", span))
            for column in (tokens.kinds, tokens.words, tokens.starts, tokens.ends):
                del column[index]
        elif tokens.kinds[index] == "comment":
            tokens.kinds[index] = "other"
    return dropped[::-1]
