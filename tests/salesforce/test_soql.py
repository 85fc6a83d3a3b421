"""SOQL and SOSL: what is accepted, what trees come out, and that nothing breaks the parser."""

import json
import re
import string
from collections.abc import Callable
from pathlib import Path as FilePath
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bedstone.errors import InvalidInput
from bedstone.salesforce.soql import SoqlParser, SyntaxProblem, parse_soql, parse_sosl, write
from bedstone.salesforce.soql.cursor import RESERVED, Dialect
from bedstone.salesforce.soql.quoting import like_string, search_term, soql_string
from bedstone.salesforce.soql.tree import (
    And,
    Bind,
    Call,
    Choice,
    Column,
    Comparison,
    Condition,
    DateLiteral,
    Distance,
    Membership,
    Moment,
    Money,
    Not,
    Null,
    Number,
    Or,
    Order,
    Path,
    Query,
    SemiJoin,
    Source,
    Text,
    TypeOf,
    Value,
)

DIALECTS: tuple[Dialect, ...] = ("rest", "apex", "lenient")
FIXTURES = FilePath(__file__).resolve().parents[1] / "fixtures" / "soql.json"
DATA = FilePath(__file__).resolve().parents[3] / "shared" / "data" / "salesforce"  # a larger set, where it is there


def cases(kind: Literal["soql", "sosl"]) -> list[tuple[str, bool]]:
    """Return statements, and whether the official grammar accepts them."""
    ours = json.loads(FIXTURES.read_text())
    prefix = "" if kind == "soql" else "sosl_"
    found = [
        (text, is_valid) for is_valid in (True, False) for text in ours[prefix + ("valid" if is_valid else "invalid")]
    ]
    file = DATA / f"{kind}_dev.json"
    more = json.loads(file.read_text())["cases"] if file.exists() else []
    verdicts = [case["verdicts"]["official_rest"] if kind == "soql" else case["valid"] for case in more]
    return found + [(case[kind], verdict) for case, verdict in zip(more, verdicts, strict=True)]


def refusal(parse: Callable[[str, Dialect], object], statement: str, dialect: Dialect = "rest") -> SyntaxProblem | None:
    try:
        parse(statement, dialect)
    except SyntaxProblem as problem:
        return problem
    return None


def where(condition: str, dialect: Dialect = "rest") -> Condition:
    found = parse_soql(f"SELECT Id FROM Account WHERE {condition}", dialect).where
    assert found
    return found


def test_verdicts_are_those_of_the_official_grammar() -> None:
    """No exception: every one of the statements is judged alike."""
    for statement, is_valid in cases("soql"):
        assert (refusal(parse_soql, statement) is None) == is_valid, statement


def test_sosl_statements_are_judged_right() -> None:
    for statement, is_valid in cases("sosl"):
        if is_valid:
            tree = parse_sosl(statement)
            assert parse_sosl(write(tree)) == tree
        else:
            with pytest.raises(SyntaxProblem):
                parse_sosl(statement)


def test_what_is_written_is_read_as_the_same_tree() -> None:
    for statement, is_valid in cases("soql"):
        if is_valid:
            tree = parse_soql(statement)
            written = write(tree)
            assert parse_soql(written) == tree
            assert write(parse_soql(written)) == written


def test_a_tree_has_everything_and_knows_where_it_stood() -> None:
    text = (
        "SELECT Id, Owner.Name, toLabel(Status) s, (SELECT Id FROM Contacts LIMIT 2), "
        "TYPEOF What WHEN Account THEN Phone ELSE Name END FROM Case c USING SCOPE mine WHERE (Priority = 'High' OR "
        "CreatedDate > LAST_N_DAYS:30) AND Owner.Id NOT IN (SELECT OwnerId FROM Account WHERE Name LIKE 'A%') "
        "WITH SECURITY_ENFORCED GROUP BY Status HAVING COUNT(Id) > 1 ORDER BY Status DESC NULLS LAST LIMIT 10 OFFSET 5 "
        "FOR VIEW"
    )
    query = parse_soql(text)
    assert [type(column.expression) for column in query.columns] == [Path, Path, Call, Query, TypeOf]
    assert query.columns[2].alias == "s"
    assert (query.sources[0].name, query.sources[0].alias, query.sources[0].using[0].name) == ("Case", "c", "mine")
    assert isinstance(query.where, And)
    first, second = query.where.terms
    assert isinstance(first, Or)
    assert first.terms[1] == Comparison(Path(("CreatedDate",)), ">", DateLiteral("LAST_N_DAYS", 30))
    assert isinstance(second, Membership)
    assert second.negated
    assert isinstance(second.values, SemiJoin)
    assert query.order_by == (Order(Path(("Status",)), "DESC", "LAST"),)
    assert (query.limit, query.offset, query.purpose) == (Number("10"), Number("5"), "VIEW")
    start, end = query.columns[1].span
    assert text[start:end] == "Owner.Name"
    start, end = second.values.span
    assert text[start:end].startswith("(SELECT OwnerId")
    assert text[start:end].endswith("'A%')")
    assert query.span == (0, len(text))


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("'it\\'s \\u00e9'", Text("it's é")),
        ("'line\\nend'", Text("line\nend")),
        ("-2.50", Number("-2.50")),
        ("- 5", Number("-5")),
        ("+5", Number("5")),
        ("2026-01-02", Moment("date", "2026-01-02")),
        ("2026-01-02T03:04:05Z", Moment("datetime", "2026-01-02T03:04:05Z")),
        ("03:04:05.000Z", Moment("time", "03:04:05.000Z")),
        ("null", Null()),
        ("last_week", DateLiteral("LAST_WEEK")),
        ("next_n_months : 3", DateLiteral("NEXT_N_MONTHS", 3)),
        ("usd5000.01", Money("USD", "5000.01")),
    ],
)
def test_values(literal: str, value: Value) -> None:
    found = where(f"A = {literal}")
    assert isinstance(found, Comparison)
    assert found.right == value
    assert where(f"A IN ({literal})") == Membership(Path(("A",)), (value,))


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT Id FROM Account WHERE a = 1 AND b = 2 OR c = 3",
        "SELECT Id FROM Account WHERE a = 1 AND NOT b = 2",
        "SELECT Id FROM Account WHERE a = '\\x'",
        "SELECT Id FROM Account WHERE a = 'open",
        "SELECT Id FROM Account WHERE a = :b",
        'SELECT Id FROM Account WHERE a = "b"',
        "SELECT Id FROM Account;",
        "SELECT Id FROM Account -- why",
        "SELECT Id AS x FROM Account",
        "SELECT COUNT() x FROM Account",
        "SELECT * FROM Account",
        "SELECT Id FROM Account FOR UPDATE",
        "SELECT Id FROM Account ALL ROWS",
        "SELECT Id FROM Account HAVING Id = '1'",
        "SELECT Id FROM Account OFFSET 5 LIMIT 5",
        "SELECT Id FROM Account WHERE a IS NULL",
        "SELECT Id FROM Account WHERE a = 2026-1-01",
        "SELECT Id FROM Account WHERE a = 2026-01-01T00:00:00",
        "",
        "FIND {x}",
    ],
)
def test_what_an_org_would_not_read_is_refused(statement: str) -> None:
    with pytest.raises(SyntaxProblem) as caught:
        parse_soql(statement)
    problem = caught.value
    assert 0 <= problem.position <= len(statement)
    assert (problem.line, problem.column) == (1, problem.position + 1)


def test_problems_say_where_and_what() -> None:
    with pytest.raises(SyntaxProblem) as caught:
        parse_soql("SELECT Id\nFROM Account\nWHERE Name LIKE OR")
    problem = caught.value
    assert (problem.line, problem.column, problem.found) == (3, 17, "OR")
    assert problem.message == 'Unexpected "OR" at line 3, column 17. Expected a value.'


def test_apex_has_binds_and_locks() -> None:
    query = parse_soql(
        "SELECT Id FROM Account WHERE Id IN :ids AND Name = :new Map<Id, Account>(x).get(y[0]).Name "
        "AND A = :a.b() LIMIT :most FOR UPDATE",
        "apex",
    )
    assert isinstance(query.where, And)
    binds = [term.values if isinstance(term, Membership) else term.right for term in query.where.terms]  # type: ignore[union-attr]
    assert binds == [Bind("ids"), Bind("new Map<Id, Account>(x).get(y[0]).Name"), Bind("a.b()")]
    assert (query.limit, query.purpose) == (Bind("most"), "UPDATE")
    assert parse_soql("SELECT Id FROM Account ALL ROWS", "apex").all_rows
    assert parse_soql(write(query), "apex") == query


@pytest.mark.parametrize(
    ("condition", "corrected", "codes"),
    [
        ("a = 1 AND b = 2 OR c = 3", "(a = 1 AND b = 2) OR c = 3", ["MIXED_LOGIC"]),
        ("a = 1 AND NOT b = 2", "a = 1 AND (NOT b = 2)", ["MIXED_LOGIC"]),
        ("NOT NOT a = 1", "NOT (NOT a = 1)", ["MIXED_LOGIC"]),
        ("a IS NOT NULL", "a != null", ["SQL_FORM"]),
        ("a NOT LIKE 'x%'", "NOT a LIKE 'x%'", ["SQL_FORM"]),
        ("a BETWEEN 1 AND 5", "a >= 1 AND a <= 5", ["SQL_FORM"]),
        ('n = "it\'s" -- why', "n = 'it\\'s'", ["SQL_FORM", "SQL_FORM"]),
        ("d = LAST_365_DAYS", "d = LAST_N_DAYS:365", ["DATE_LITERAL_UNKNOWN"]),
        ("s = Open", "s = 'Open'", ["LITERAL_UNQUOTED"]),
        ("s == 1", "s = 1", ["SQL_FORM"]),
        ("m > USD-500", "m > USD-500", ["MONEY_SIGN"]),
        ("s = :x FOR UPDATE", "s = :x FOR UPDATE", ["APEX_ONLY", "APEX_ONLY"]),
    ],
)
def test_the_lenient_dialect_reads_conditions_as_people_write_them(
    condition: str, corrected: str, codes: list[str]
) -> None:
    parser = SoqlParser(f"SELECT Id FROM A WHERE {condition}", "lenient")
    assert write(parser.statement()) == f"SELECT Id FROM A WHERE {corrected}"
    assert [item.code for item in parser.deviations] == codes


@pytest.mark.parametrize(
    ("statement", "corrected", "codes"),
    [
        ("SELECT COUNT(*) FROM A", "SELECT COUNT(Id) FROM A", ["SQL_FORM"]),
        ("SELECT COUNT() n, b FROM A", "SELECT COUNT(Id) n, b FROM A", ["COUNT_ALONE"]),
        ("SELECT Name AS n FROM A; ", "SELECT Name n FROM A", ["SQL_FORM", "SQL_FORM"]),
    ],
)
def test_the_lenient_dialect_reads_what_people_write_and_remembers(
    statement: str, corrected: str, codes: list[str]
) -> None:
    parser = SoqlParser(statement, "lenient")
    assert write(parser.statement()) == corrected
    assert [item.code for item in parser.deviations] == codes


def test_correct_statements_have_no_deviations() -> None:
    for statement, is_valid in cases("soql"):
        if is_valid:
            parser = SoqlParser(statement, "lenient")
            assert parser.statement() == parse_soql(statement), statement
            assert parser.deviations == []


def test_nesting_without_end_is_an_error() -> None:
    for statement in (
        f"SELECT Id FROM A WHERE {'(' * 10_000}a = 1{')' * 10_000}",
        f"SELECT {'(SELECT ' * 10_000}Id FROM a",
        f"SELECT {'f(' * 10_000}a{')' * 10_000} FROM A",
        f"SELECT Id FROM A WHERE {'a IN (SELECT b FROM c WHERE ' * 10_000}",
        f"SELECT Id FROM A WHERE {'NOT ' * 10_000} a = 1",
    ):
        for dialect in DIALECTS:
            with pytest.raises(SyntaxProblem):
                parse_soql(statement, dialect)


# Random trees are written and read again; random text is refused or read, and never breaks anything.

names = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,8}", fullmatch=True).filter(
    lambda name: name.lower() not in RESERVED | {"group", "order", "offset", "typeof", "distance", "all", "count"}
)
paths = st.lists(names, min_size=1, max_size=3).map(lambda parts: Path(tuple(parts)))
texts = st.text(max_size=12).filter(lambda text: not re.search(r"[\ud800-\udfff]", text)).map(Text)
numbers = st.one_of(st.integers(-1000, 1000).map(str), st.decimals(0, 99, places=2).map(str)).map(Number)
moments = st.integers(1, 9).map(lambda number: DateLiteral("LAST_N_DAYS", number))
values = st.one_of(texts, numbers, moments, st.just(Null()), st.just(DateLiteral("TODAY")))
expressions = st.recursive(
    paths, lambda inner: st.builds(lambda name, argument: Call(name, (argument,)), names, inner), max_leaves=2
)
operators = st.sampled_from(["=", "!=", "<", ">", "<=", ">="])
comparisons = st.one_of(
    st.builds(Comparison, expressions, operators, values),
    st.builds(Membership, expressions, st.lists(values, min_size=1, max_size=3).map(tuple), st.booleans()),
    st.builds(
        Choice,
        expressions,
        st.sampled_from(["INCLUDES", "EXCLUDES"]),
        st.lists(texts, min_size=1, max_size=2).map(tuple),
    ),
)
conditions = st.recursive(
    comparisons,
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map(lambda terms: And(tuple(terms))),
        st.lists(inner, min_size=2, max_size=3).map(lambda terms: Or(tuple(terms))),
        inner.map(Not),
    ),
    max_leaves=5,
)
orders = st.builds(Order, expressions, st.sampled_from([None, "ASC", "DESC"]), st.sampled_from([None, "FIRST", "LAST"]))
queries = st.builds(
    Query,
    columns=st.lists(st.builds(Column, expressions), min_size=1, max_size=3).map(tuple),
    sources=st.builds(Source, paths, st.none() | names).map(lambda source: (source,)),
    where=st.none() | conditions,
    order_by=st.lists(orders, max_size=2).map(tuple),
    limit=st.none() | st.integers(0, 2000).map(lambda number: Number(str(number))),
)


@settings(max_examples=300)
@given(queries)
def test_any_tree_can_be_written_and_read(query: Query) -> None:
    written = write(query)
    assert parse_soql(written) == query
    assert SoqlParser(written, "lenient").statement() == query


@settings(max_examples=500)
@given(st.text(alphabet=string.printable + "é漢\u2028\x00'\\", max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    for dialect in DIALECTS:
        for statement in (text, f"SELECT Id FROM A WHERE {text}", f"SELECT {text} FROM A"):
            problem = refusal(parse_soql, statement, dialect)
            assert problem is None or 0 <= problem.position <= len(statement)
        for statement in (text, f"FIND {{x}} {text}", f"FIND {{{text}}}"):
            problem = refusal(parse_sosl, statement, dialect)
            assert problem is None or 0 <= problem.position <= len(statement)


@settings(max_examples=500)
@given(st.text(max_size=40).filter(lambda text: not re.search(r"[\ud800-\udfff]", text)))
def test_a_quoted_value_is_one_literal_with_that_value(text: str) -> None:
    assert where(f"A = {soql_string(text)}") == Comparison(Path(("A",)), "=", Text(text))
    found = where(f"A LIKE {like_string(text, before=True)}")
    assert isinstance(found, Comparison)
    assert isinstance(found.right, Text)
    meant = re.sub(r"\\([\\%_])", r"\1", found.right.value[1:-1])
    assert (found.right.value[0], meant, found.right.value[-1]) == ("%", text, "%")
    assert write(found) == f"A LIKE {like_string(text, before=True)}"


@settings(max_examples=300)
@given(st.text(max_size=40))
def test_a_search_term_says_its_words_and_nothing_else(text: str) -> None:
    try:
        term = search_term(text)
    except InvalidInput:
        assert not re.search(r"[^\W_]", text)
        return
    assert parse_sosl(f"FIND {{{term}}}").term == term


def test_search_words_that_mean_something_are_quoted() -> None:
    assert search_term('a and "b" {c} d-e ... not*') == 'a AND "and" AND \\"b\\" AND \\{c\\} AND d\\-e AND not\\*'


def test_distance_and_points() -> None:
    found = where("DISTANCE(Where__c, GEOLOCATION(37.7,-122.4), 'mi') < 20")
    assert isinstance(found, Comparison)
    assert isinstance(found.left, Distance)
    assert write(found) == "DISTANCE(Where__c, GEOLOCATION(37.7, -122.4), 'mi') < 20"
