"""Expressions, conditions and the clauses that SOQL and SOSL share."""

from typing import Any, Literal

from bedstone.salesforce.soql.problems import SyntaxProblem
from bedstone.salesforce.soql.tree import (
    And,
    Bind,
    Call,
    CategorySelection,
    Choice,
    Comparison,
    Condition,
    DataCategories,
    Distance,
    Expression,
    Geolocation,
    Membership,
    Not,
    Null,
    Option,
    Or,
    Order,
    Path,
    SemiJoin,
    Source,
    Sum,
    Using,
    Value,
    With,
)
from bedstone.salesforce.soql.values import ValueParser

COMPARISONS = frozenset({"=", "<", ">", "!=", "<>"})
CATEGORY_OPERATORS = frozenset({"at", "above", "below", "above_or_below"})


class ClauseParser(ValueParser):
    """Parses what SOQL and SOSL share, in every dialect."""

    # Expressions

    def expression(self) -> Expression:
        """Parse a field, or a function of one."""
        at = self.at
        if self.words[at + 1 if self.kinds[at] == "name" else at] == "(" and self.is_name(at):
            return self.call()
        return self.path()

    def call(self) -> Expression:
        """Parse a function call."""
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
        """Parse an expression where DISTANCE is allowed too."""
        return self.distance() if self._is_distance() else self.expression()

    def _is_distance(self) -> bool:
        at = self.at
        words = self.words
        return words[at] == "distance" and words[at + 1] == "(" and words[at + 3] == ","

    def distance(self) -> Distance:
        """Parse DISTANCE(field, point, unit)."""
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
        unit = self.tokens.source_text(self.at)[1:-1]
        self.at += 1
        self.need(")")
        return Distance(place, point, unit, self.span(first))

    # Conditions

    def condition(self) -> Condition:
        """Parse terms joined by AND or by OR, or one with NOT."""
        first = self.at
        self.deeper()
        try:
            if self.words[first] == "not" and not self.is_lenient:
                self.at += 1
                return Not(self.term(), self.span(first))
            if self.is_lenient:
                return self._lenient_or()
            left = self.term()
            junction = self.words[self.at]
            if junction not in ("and", "or"):
                return left
            terms = [left]
            while self.words[self.at] == junction:
                self.at += 1
                terms.append(self.term())
            return (And if junction == "and" else Or)(tuple(terms), self.span(first))
        finally:
            self.depth -= 1

    def _lenient_or(self) -> Condition:
        """Parse any logic: AND binds tighter than OR, NOT tighter than both; mixing them is a deviation."""
        first = self.at
        terms = [self._lenient_and()]
        while self.skip("or"):
            terms.append(self._lenient_and())
        if len(terms) == 1:
            return terms[0][0]
        if any(is_mixed for _, is_mixed in terms):
            self.deviate("MIXED_LOGIC", *self.span(first), None)
        return Or(tuple(term for term, _ in terms), self.span(first))

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
        """Parse a term; return also whether it is a NOT that needs parentheses next to others."""
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
        """Parse a condition in parentheses, or a comparison."""
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
            values = self.value_list()
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
        return Membership(left, self.value_list(), negated, self.span(first))

    def value_list(self) -> tuple[Value, ...]:
        """Parse values in parentheses, or a bind."""
        if self.words[self.at] == ":":
            return (self.bind(),)
        self.need("(")
        values = self.many(self.value)
        self.need(")")
        return values

    def _lenient_term(self, first: int, left: Expression) -> Condition:
        """Parse IS NULL, IS NOT NULL and BETWEEN."""
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
            low_text, high_text = (self.text[slice(*item.span)] for item in (low, high))
            self.deviate("SQL_FORM", *span, f"({name} >= {low_text} AND {name} <= {high_text})")
            return And((Comparison(left, ">=", low, span), Comparison(left, "<=", high, span)), span)
        self.at = at
        raise self.problem("an operator")

    def semi_join(self) -> SemiJoin:
        """Parse the select inside IN."""
        first = self.at
        self.at += 2
        self.deeper()
        field = self.expression()
        self.need("from")
        sources = self.many(self.source)
        where = self.condition() if self.skip("where") else None
        options: tuple[With, ...] = ()
        if self.words[self.at] == "with":
            if self.is_at_categories():
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

    # Clauses

    def source(self) -> Source:
        """Parse an object with its alias."""
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
        """Parse USING SCOPE; a comma after it can belong to the next source."""
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

    def is_at_categories(self) -> bool:
        """Return whether WITH DATA CATEGORY comes next."""
        return self.words[self.at + 1] == "data" and self.words[self.at + 2] == "category"

    def data_categories(self) -> DataCategories:
        """Parse WITH DATA CATEGORY."""
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
        """Parse WITH and a name, a value, or settings."""
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
        """Parse (name = value, ...)."""
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
        """Parse what follows ORDER BY."""

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
        """Parse what follows UPDATE."""
        return tuple(name.upper() for name in self.many(self.hard_name))
