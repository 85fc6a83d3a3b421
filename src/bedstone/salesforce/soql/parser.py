"""Parses SOQL to a tree: recursive descent over the official grammar, with forms that Apex and language models add.

Three dialects: `rest` is what an org's query endpoint accepts. `apex` adds binds, FOR UPDATE and ALL ROWS. `lenient`
accepts any form with an obvious meaning, returns the tree of the correct statement, and records each deviation.
"""

from typing import Any, Literal

from bedstone.salesforce.soql.clauses import ClauseParser
from bedstone.salesforce.soql.cursor import RESERVED, Dialect
from bedstone.salesforce.soql.tree import (
    Call,
    Column,
    Expression,
    GroupBy,
    Order,
    Path,
    Query,
    TypeOf,
    Value,
    When,
    With,
)


def parse_soql(text: str, dialect: Dialect = "rest") -> Query:
    """Parse a statement, or raise `SyntaxProblem`."""
    return SoqlParser(text, dialect).statement()


class SoqlParser(ClauseParser):
    """Parses one SOQL statement."""

    def statement(self) -> Query:
        """Parse the whole statement."""
        query = self.query()
        self.finish()
        return query

    def query(self) -> Query:
        """Parse a select: the statement, or a child subquery."""
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
        """Parse the items of SELECT."""
        at = self.at
        if self.words[at] == "count" and self.words[at + 1] == "(" and self.words[at + 2] == ")":
            self.at += 3
            span = self.span(at)
            if self.is_lenient and (self.words[self.at] == "," or self.is_name(self.at)):
                return self._lenient_count(at)
            return (Column(Call(self.tokens.source_text(at), (), span), None, span),)
        return self.many(self.column)

    def _lenient_count(self, at: int) -> tuple[Column, ...]:
        """Parse COUNT() next to other columns."""
        span = (self.starts[at], self.ends[at + 2])
        self.deviate("COUNT_ALONE", *span, "COUNT(Id)")
        alias = self.name() if self.is_name(self.at) else None
        counted = Column(Call("COUNT", (Path(("Id",), span),), span), alias, self.span(at))
        return (counted, *(self.many(self.column) if self.skip(",") else ()))

    def column(self) -> Column:
        """Parse an item of SELECT."""
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
            if not options and self.is_at_categories():
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
