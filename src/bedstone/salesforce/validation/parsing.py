"""Parse what agents write: SQL in SOQL, Apex in REST, clauses in another order; and explain what does not parse."""

import re
from typing import NamedTuple

from bedstone.salesforce.soql.lexer import Tokens, tokenize
from bedstone.salesforce.soql.parser import SoqlParser
from bedstone.salesforce.soql.problems import Deviation, SyntaxProblem
from bedstone.salesforce.soql.tree import Column, Path, Query, Span
from bedstone.salesforce.soql.writer import write
from bedstone.salesforce.validation.findings import Finding, Findings
from bedstone.salesforce.validation.rule import broken_by, corrected_to, not_correctable, rule, run

MAX_QUERY_CHARACTERS = 100_000
KEYWORDS = {
    "join": "Use a relationship: Account.Name for a parent, (SELECT Id FROM Contacts) for children.",
    "inner": "Use a relationship: Account.Name for a parent, (SELECT Id FROM Contacts) for children.",
    "left": "Use a relationship: parents and children are joined by themselves.",
    "right": "Use a relationship: parents and children are joined by themselves.",
    "distinct": "Use GROUP BY, or COUNT_DISTINCT(field).",
    "union": "Run two queries.",
    "except": "Use NOT IN (SELECT ...).",
    "intersect": "Use IN (SELECT ...).",
    "exists": "Use Id IN (SELECT ...).",
    "case": "Compute it from the result.",
    "top": "Use LIMIT at the end.",
    "empty": "Use = null or != null.",
    "on": "Use a relationship instead of a join.",
}
APEX = {":": "a bind", "for": "FOR UPDATE locks records", "all": "ALL ROWS"}
CLAUSES = ("select", "from", "using", "where", "with", "group", "having", "order", "limit", "offset", "for", "update")


class Parsed(NamedTuple):
    """A statement as far as it could be parsed."""

    query: Query
    deviations: list[Deviation]

    @property
    def unquoted_positions(self) -> frozenset[int]:
        """Positions of words that lack their quotes."""
        return frozenset([item.span[0] for item in self.deviations if item.code == "LITERAL_UNQUOTED"])


class Reading(NamedTuple):
    """The context of rules about text and deviations."""

    findings: Findings
    query: Query | None = None
    clause: str = ""


class Failure:
    """A statement that does not parse, and the token where that shows."""

    def __init__(self, text: str, problem: SyntaxProblem) -> None:
        self.text = text
        self.problem = problem
        self.tokens = tokenize(text)
        starts = self.tokens.starts
        self.at = next((index for index, start in enumerate(starts) if start >= problem.position), 0)
        self.word = self.tokens.words[self.at]
        self.span: Span = (starts[self.at], max(self.tokens.ends[self.at], starts[self.at]))


def parse_leniently(text: str, findings: Findings) -> Parsed | None:
    """Parse a statement and report what is wrong with it; None means that nothing more can be checked."""
    try:
        parser = SoqlParser(text, "lenient")
        query = parser.statement()
    except SyntaxProblem as problem:
        run(FAILURES, Failure(text, problem), Reading(findings))
        return None
    for column in query.columns:
        if column.alias:
            sql_distinct.run(column, Reading(findings))
    for deviation in parser.deviations:
        report_deviation(deviation, Reading(findings, query))
    return Parsed(query, parser.deviations)


def report_deviation(deviation: Deviation, reading: Reading) -> None:
    """Report something that only the lenient dialect accepts."""
    if deviation.code != "LITERAL_UNQUOTED":  # reported where the type of the field is known
        DEVIATIONS.get(deviation.code, not_soql).run(deviation, reading)


@rule("QUERY_LENGTH", "A query has at most 100,000 characters.")
@broken_by("SELECT Id FROM Account WHERE Name IN ('" + "x" * MAX_QUERY_CHARACTERS + "')")  # noqa: S608 - an example
@not_correctable("Split the list, and run several queries.")
def query_length(text: str, _at: Reading) -> Finding | None:
    message = f"The query has {len(text):,} characters; {MAX_QUERY_CHARACTERS:,} is the maximum."
    return Finding(message, (0, 0))


@rule("SQL_STAR", "SOQL selects named fields, not `*`.")
@broken_by("SELECT * FROM Account LIMIT 10")
@corrected_to("SELECT FIELDS(STANDARD) FROM Account LIMIT 10")
def sql_star(failure: Failure, _at: Reading) -> Finding | None:
    if failure.word == "*":
        message = '"*" is not SOQL. List the fields, or use FIELDS(STANDARD), or FIELDS(ALL) with LIMIT 200.'
        return Finding(message, failure.span, clause="SELECT")
    return None


@rule("SUBQUERY_CONDITION", "A subquery in WHERE needs a field and IN before it.")
@broken_by("SELECT Id FROM Account WHERE (SELECT Id FROM Contacts)")
@corrected_to("SELECT Id FROM Account WHERE Id IN (SELECT AccountId FROM Contact)")
def subquery_condition(failure: Failure, _at: Reading) -> Finding | None:
    if "cannot be a condition by itself" in failure.problem.message:
        message = 'A subquery cannot be a condition by itself. Use "Id IN (SELECT …)" or "Id NOT IN (SELECT …)".'
        return Finding(message, failure.span, clause="WHERE")
    return None


@rule("SQL_KEYWORD", "Keywords of SQL such as JOIN, UNION, EXISTS and CASE do not exist in SOQL.")
@broken_by("SELECT Contact.Name FROM Contact JOIN Account ON AccountId = Id")
@corrected_to("SELECT Contact.Name, Account.Name FROM Contact")
def sql_keyword(failure: Failure, _at: Reading) -> Finding | None:
    at, tokens = failure.at, failure.tokens
    near = [index for index in (at, at - 1, at - 2, at + 1) if 0 <= index < len(tokens.words)]
    place = next((index for index in near if tokens.words[index] in KEYWORDS), None)
    if place is not None and tokens.kinds[at] != "end":
        word = tokens.source_text(place)
        message = f'"{word}" is SQL, not SOQL. {KEYWORDS[word.lower()]}'
        return Finding(message, (tokens.starts[place], tokens.ends[place]))
    return None


@rule("SEMIJOIN_CLAUSE", "A subquery with IN has no ORDER BY, LIMIT, OFFSET or GROUP BY.")
@broken_by("SELECT Id FROM Account WHERE Id IN (SELECT AccountId FROM Contact LIMIT 5)")
@corrected_to("SELECT Id FROM Account WHERE Id IN (SELECT AccountId FROM Contact) LIMIT 5")
def semi_join_clause(failure: Failure, _at: Reading) -> Finding | None:
    if failure.word in ("order", "limit", "group", "offset") and _is_in_semi_join(failure.tokens, failure.at):
        return Finding(f"{failure.word.upper()} is not allowed in a subquery with IN.", failure.span, clause="WHERE")
    return None


@rule("HAVING_WITHOUT_GROUP", "HAVING filters groups, so it needs GROUP BY.")
@broken_by("SELECT COUNT(Id) FROM Account HAVING COUNT(Id) > 1")
@corrected_to("SELECT Industry, COUNT(Id) FROM Account GROUP BY Industry HAVING COUNT(Id) > 1")
def having_without_group(failure: Failure, _at: Reading) -> Finding | None:
    return Finding("HAVING needs GROUP BY.", failure.span, clause="HAVING") if failure.word == "having" else None


@rule("SQL_FORM", "Clauses have a fixed order: SELECT, FROM, WHERE, GROUP BY, HAVING, ORDER BY, LIMIT, OFFSET.")
@broken_by("SELECT Id FROM Account LIMIT 5 ORDER BY Name")
@corrected_to("SELECT Id FROM Account ORDER BY Name LIMIT 5")
def clause_order(failure: Failure, _at: Reading) -> Finding | None:
    if failure.word in CLAUSES and (ordered := _reorder(failure.text, failure.tokens)) is not None:
        message = f'The clauses stand in another order: write "{_shorten(ordered, 200)}".'
        return Finding(message, (0, len(failure.text)), ordered, failure.word.upper())
    return None


@rule("SYNTAX", "The statement follows the grammar of SOQL.")
@broken_by("SELECT Id FROM Account WHERE Name =")
@corrected_to("SELECT Id FROM Account WHERE Name = 'Acme'")
def syntax(failure: Failure, _at: Reading) -> Finding | None:
    position = failure.problem.position
    return Finding(failure.problem.message, (position, max(position, failure.span[1])))


@rule("SQL_KEYWORD", "SELECT takes no DISTINCT, UNIQUE or TOP: they would parse as a field with an alias.", stops=False)
@broken_by("SELECT DISTINCT Industry FROM Account")
@corrected_to("SELECT Industry FROM Account GROUP BY Industry")
def sql_distinct(column: Column, _at: Reading) -> Finding | None:
    if not isinstance(column.expression, Path) or not is_sql_word(column.expression):
        return None
    word = column.expression.name
    hint = KEYWORDS.get(word.lower(), KEYWORDS["distinct"])
    return Finding(f'"{word}" is SQL, not SOQL. {hint}', column.expression.span, clause="SELECT")


@rule(
    "SQL_FORM",
    "Forms of SQL are rewritten: IS NULL, NOT LIKE, BETWEEN, COUNT(*), AS, double quotes, comments, `;`.",
    severity="repairable",
)
@broken_by("SELECT Id FROM Account WHERE Industry IS NOT NULL")
@corrected_to("SELECT Id FROM Account WHERE Industry != null")
def sql_form(deviation: Deviation, _at: Reading) -> Finding | None:
    good = deviation.corrected
    advice = "leave it out" if not good else f"write {good!r}" if "'" in good else f'write "{repr(good)[1:-1]}"'
    return Finding(f'"{_shorten(deviation.found)}" is not SOQL; {advice}.', deviation.span, good)


@rule(
    "MIXED_LOGIC",
    "AND and OR are not mixed without parentheses, and NOT has parentheses of its own.",
    severity="repairable",
)
@broken_by("SELECT Id FROM Account WHERE Name = 'Acme' AND Site = 'Main' OR Phone = '1'")
@corrected_to("SELECT Id FROM Account WHERE (Name = 'Acme' AND Site = 'Main') OR Phone = '1'")
def mixed_logic(deviation: Deviation, at: Reading) -> Finding | None:
    condition = at.query.where if at.query is not None else None
    example = f", for example: {_shorten(write(condition), 200)}." if condition is not None else "."
    message = "AND and OR are mixed without parentheses, or NOT lacks its own. Add parentheses"
    return Finding(message + example, deviation.span, clause="WHERE")


@rule("APEX_ONLY", "Binds, FOR UPDATE and ALL ROWS work in Apex, not in the REST API.")
@broken_by("SELECT Id FROM Account WHERE Id = :accountId")
@corrected_to("SELECT Id FROM Account WHERE Id = '001000000000001AAA'")
def apex_only(deviation: Deviation, _at: Reading) -> Finding | None:
    found = deviation.found
    what = next((text for sign, text in APEX.items() if found.lower().startswith(sign)), "Apex")
    message = f'"{_shorten(found)}" only works in Apex ({what}). Use a literal value, or remove it.'
    return Finding(message, deviation.span)


@rule("DATE_LITERAL_UNKNOWN", "A date literal is one of those that SOQL defines.")
@broken_by("SELECT Id FROM Account WHERE CreatedDate > LAST_365_DAYS")
@corrected_to("SELECT Id FROM Account WHERE CreatedDate > LAST_N_DAYS:365")
def date_literal_unknown(deviation: Deviation, _at: Reading) -> Finding | None:
    hint = f" Use {deviation.corrected}." if deviation.corrected else ""
    message = f'"{deviation.found}" is not a date literal.{hint}'
    return Finding(message, deviation.span, deviation.corrected, "WHERE")


@rule("COUNT_ALONE", "COUNT() without a field is the only item of SELECT, without an alias.", severity="repairable")
@broken_by("SELECT COUNT(), Industry FROM Account GROUP BY Industry")
@corrected_to("SELECT COUNT(Id), Industry FROM Account GROUP BY Industry")
def count_alone(deviation: Deviation, _at: Reading) -> Finding | None:
    message = "COUNT() must be the only item and takes no alias; use COUNT(Id) instead."
    return Finding(message, deviation.span, deviation.corrected, "SELECT")


@rule("DISTANCE_FORM", "DISTANCE() measures to GEOLOCATION(), not to another field.")
@broken_by("SELECT Id FROM Account WHERE DISTANCE(BillingAddress, BillingCity, 'km') < 20")
@corrected_to("SELECT Id FROM Account WHERE DISTANCE(BillingAddress, GEOLOCATION(53.5, 10), 'km') < 20")
def distance_arguments(deviation: Deviation, _at: Reading) -> Finding | None:
    message = "DISTANCE() needs a location field first, then GEOLOCATION(), then 'mi' or 'km'."
    return Finding(message, deviation.span)


@rule("SYNTAX", "A function takes one argument, and an amount of money has no sign.")
@broken_by("SELECT FORMAT(Name, Site) FROM Account LIMIT 1")
@corrected_to("SELECT FORMAT(Name), FORMAT(Site) FROM Account LIMIT 1")
def not_soql(deviation: Deviation, _at: Reading) -> Finding | None:
    return Finding(f'"{_shorten(deviation.found)}" is not SOQL.', deviation.span)


FAILURES = (sql_star, subquery_condition, sql_keyword, semi_join_clause, having_without_group, clause_order, syntax)
DEVIATIONS = {
    item.code: item
    for item in (sql_form, mixed_logic, apex_only, date_literal_unknown, count_alone, distance_arguments)
}


def is_sql_word(path: Path) -> bool:
    """Whether a path is a word that SQL puts before the first column."""
    return path.name.lower() in ("distinct", "top", "unique")


def _is_in_semi_join(tokens: Tokens, at: int) -> bool:
    """Whether a token stands in the subquery of an IN."""
    depth = 0
    for index in range(at - 1, 0, -1):
        depth += (tokens.words[index] == ")") - (tokens.words[index] == "(")
        if depth < 0:
            return tokens.words[index - 1] == "in" and tokens.words[index + 1] == "select"
    return False


def _reorder(text: str, tokens: Tokens) -> str | None:
    """Return the clauses in the order of SOQL, if that makes a valid statement."""
    depth, begins = 0, []
    for index, word in enumerate(tokens.words):
        depth += (word == "(") - (word == ")")
        is_by = word not in ("group", "order") or tokens.words[index + 1] == "by"
        if depth == 0 and tokens.kinds[index] == "name" and word in CLAUSES and is_by:
            begins.append((tokens.starts[index], word))
    if not begins or text[: begins[0][0]].strip():
        return None
    ends = [start for start, _ in begins[1:]] + [len(text)]
    parts = {word: text[start:end].strip() for (start, word), end in zip(begins, ends, strict=True)}
    if len(parts) != len(begins):
        return None
    ordered = " ".join(parts[word] for word in CLAUSES if word in parts)
    try:
        SoqlParser(ordered, "rest").statement()
    except SyntaxProblem:
        return None
    return ordered


def _shorten(text: str, length: int = 40) -> str:
    line = re.sub(r"\s+", " ", text)
    return line if len(line) <= length else f"{line[:length]}…"
