"""Values of SOQL and SOSL: literals, numbers, and the binds of Apex."""

import re

from bedstone.salesforce.soql.cursor import TokenCursor
from bedstone.salesforce.soql.literals import DATE_LITERALS
from bedstone.salesforce.soql.problems import SyntaxProblem
from bedstone.salesforce.soql.quoting import BadEscape, unquote
from bedstone.salesforce.soql.tree import Bind, Boolean, DateLiteral, Moment, Money, Null, Number, Text, Value

MONEY = re.compile(r"([A-Za-z]{3})(\d+(?:\.\d*)?)")
MAX_DIGITS = 9
# An expression of Apex: names, calls, indexes, `new` with type parameters.
BIND = re.compile(r"\s*(?:new\s+[\w.]+(?:<[\w.,\s<>]*>)?|[A-Za-z_]\w*)", re.IGNORECASE)
CLOSING = {"(": ")", "[": "]"}


class ValueParser(TokenCursor):
    """Parses literals, numbers and binds."""

    def value(self, *, is_pattern: bool = False) -> Value:  # noqa: PLR0911 - one per kind
        """Parse a literal."""
        at = self.at
        kind = self.kinds[at]
        start, end = self.starts[at], self.ends[at]
        if kind == "text":
            self.at = at + 1
            return Text(self._unquote(start, end, is_pattern=is_pattern), (start, end))
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
            count = _parse_count(self.words[self.at])
            self.at += 1
        return DateLiteral(name, count, self.span(at))

    def _lenient_value(self, at: int, word: str) -> Value:
        """Parse what people write for a value: LAST_365_DAYS, USD-500, a word without quotes."""
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

    def _unquote(self, start: int, end: int, *, is_pattern: bool) -> str:
        try:
            return unquote(self.text[start:end], is_pattern=is_pattern)
        except BadEscape as error:
            message = "A backslash stands before a character that cannot be escaped."
            raise SyntaxProblem(message, self.text, start + error.position) from None

    def number(self) -> Number:
        """Parse a number with its sign."""
        first = self.at
        sign = self.words[first] if self.words[first] in ("+", "-") else ""
        self.at += bool(sign)
        if self.kinds[self.at] not in ("integer", "decimal"):
            raise self.problem("a number")
        self.at += 1
        return Number(sign.replace("+", "") + self.words[self.at - 1], self.span(first))

    def integer(self) -> Number | Bind:
        """Parse an integer, or a bind where the dialect has them."""
        if self.words[self.at] == ":":
            return self.bind()
        at = self.at + (self.words[self.at] in ("+", "-"))
        if self.kinds[at] != "integer":
            self.at = at
            raise self.problem("a number")
        return self.number()

    def bind(self) -> Bind:
        """Parse `:expression` of Apex."""
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
        """Return where an expression of Apex ends."""
        text = self.text
        found = BIND.match(text, position)
        if not found:
            return position
        position = found.end()
        while position < len(text):
            if text[position] in CLOSING:
                position = self._closing_end(position)
            elif text[position] == "." and position + 1 < len(text) and (text[position + 1].isalpha()):
                name = re.compile(r"\w+").match(text, position + 1)
                assert name
                position = name.end()
            else:
                return position
        return position

    def _closing_end(self, position: int) -> int:
        """Return where the parenthesis or bracket at a position closes."""
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


def _parse_count(digits: str) -> int:
    """Return a count of days or months; a longer one becomes the smallest number that is too large."""
    return int(digits) if len(digits) <= MAX_DIGITS else 10**MAX_DIGITS
