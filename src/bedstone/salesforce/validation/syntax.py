"""Statements that cannot be read, or only leniently: SQL in SOQL, Apex in REST, clauses in another order."""

import re
from dataclasses import dataclass

from bedstone.salesforce.soql.lexer import Tokens, tokenize
from bedstone.salesforce.soql.parser import SoqlParser
from bedstone.salesforce.soql.problems import Deviation, SyntaxProblem
from bedstone.salesforce.soql.tree import Condition, Path, Query
from bedstone.salesforce.soql.writer import write
from bedstone.salesforce.validation.findings import Findings

STAR = '"*" is not SOQL. List the fields, or use FIELDS(STANDARD), or FIELDS(ALL) with LIMIT 200.'
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
SUBQUERY = 'A subquery cannot be a condition by itself. Use "Id IN (SELECT …)" or "Id NOT IN (SELECT …)".'


@dataclass(frozen=True)
class Read:
    """A statement as it could be read."""

    query: Query
    deviations: list[Deviation]


def read(text: str, findings: Findings) -> Read | None:
    """Read leniently; what is wrong is told, and None means that nothing more can be said."""
    try:
        parser = SoqlParser(text, "lenient")
        query = parser.statement()
    except SyntaxProblem as problem:
        _explain(text, problem, findings)
        return None
    _check_distinct(query, findings)
    for deviation in parser.deviations:
        _tell(deviation, findings, query.where)
    return Read(query, parser.deviations)


def _tell(deviation: Deviation, findings: Findings, condition: Condition | None) -> None:
    found, good, span = deviation.found, deviation.corrected, deviation.span
    match deviation.code:
        case "SQL_FORM":
            shown = good or "it without"
            message = (
                f'"{_short(found)}" is not SOQL; write {shown!r}.'
                if good
                else f'"{_short(found)}" is not SOQL; leave it out.'
            )
            findings.rewritten(
                "SQL_FORM", message.replace("'", '"') if good and "'" not in good else message, "", span, good
            )
        case "MIXED_LOGIC":
            message = "AND and OR are mixed without parentheses, or NOT lacks its own. Add parentheses"
            fixed = f", for example: {_short(write(condition), 200)}." if condition is not None else "."
            findings.rewritten("MIXED_LOGIC", message + fixed, "WHERE", span)
        case "APEX_ONLY":
            what = next((text for sign, text in APEX.items() if found.lower().startswith(sign)), "Apex")
            message = f'"{_short(found)}" only works in Apex ({what}). Use a literal value, or remove it.'
            findings.error("APEX_ONLY", message, "", span)
        case "DATE_LITERAL_UNKNOWN":
            hint = f" Use {good}." if good else ""
            findings.error("DATE_LITERAL_UNKNOWN", f'"{found}" is not a date literal.{hint}', "WHERE", span, good)
        case "COUNT_ALONE":
            message = "COUNT() must be the only item and takes no alias; use COUNT(Id) instead."
            findings.rewritten("COUNT_ALONE", message, "SELECT", span, good)
        case "LITERAL_UNQUOTED":
            pass  # told where the field's type is known
        case "DISTANCE_FORM":
            message = "DISTANCE() needs a location field first, then GEOLOCATION(), then 'mi' or 'km'."
            findings.error("DISTANCE_FORM", message, "", span)
        case _:
            findings.error("SYNTAX", f'"{_short(found)}" is not SOQL.', "", span)


def _check_distinct(query: Query, findings: Findings) -> None:
    """SELECT DISTINCT Name reads as a field called DISTINCT with an alias."""
    for column in query.columns:
        if (
            isinstance(column.expression, Path)
            and column.alias
            and column.expression.name.lower() in ("distinct", "top", "unique")
        ):
            word = column.expression.name
            hint = KEYWORDS.get(word.lower(), KEYWORDS["distinct"])
            findings.error("SQL_KEYWORD", f'"{word}" is SQL, not SOQL. {hint}', "SELECT", column.expression.span)


def _explain(text: str, problem: SyntaxProblem, findings: Findings) -> None:
    tokens = tokenize(text)
    at = next((index for index, start in enumerate(tokens.starts) if start >= problem.position), 0)
    span = (tokens.starts[at], max(tokens.ends[at], tokens.starts[at]))
    if tokens.words[at] == "*":
        findings.error("SQL_STAR", STAR, "SELECT", span)
        return
    if "cannot be a condition by itself" in problem.message:
        findings.error("SUBQUERY_CONDITION", SUBQUERY, "WHERE", span)
        return
    near = [index for index in (at, at - 1, at - 2, at + 1) if 0 <= index < len(tokens.words)]
    place = next((index for index in near if tokens.words[index] in KEYWORDS), None)
    if place is not None and tokens.kinds[at] != "end":
        word = tokens.written(place)
        message = f'"{word}" is SQL, not SOQL. {KEYWORDS[word.lower()]}'
        findings.error("SQL_KEYWORD", message, "", (tokens.starts[place], tokens.ends[place]))
        return
    if tokens.words[at] in ("order", "limit", "group", "offset") and _is_in_semi_join(tokens, at):
        message = f"{tokens.words[at].upper()} is not allowed in a subquery with IN."
        findings.error("SEMIJOIN_CLAUSE", message, "WHERE", span)
        return
    if tokens.words[at] == "having":
        findings.error("HAVING_WITHOUT_GROUP", "HAVING needs GROUP BY.", "HAVING", span)
        return
    if tokens.words[at] in CLAUSES and (ordered := _reordered(text, tokens)) is not None:
        message = f'The clauses stand in another order: write "{_short(ordered, 200)}".'
        findings.error("SQL_FORM", message, tokens.words[at].upper(), (0, len(text)), ordered)
        return
    findings.error("SYNTAX", problem.message, "", (problem.position, max(problem.position, span[1])))


def _is_in_semi_join(tokens: Tokens, at: int) -> bool:
    """Whether a token stands in the select of an IN."""
    depth = 0
    for index in range(at - 1, 0, -1):
        depth += (tokens.words[index] == ")") - (tokens.words[index] == "(")
        if depth < 0:
            return tokens.words[index - 1] == "in" and tokens.words[index + 1] == "select"
    return False


def _reordered(text: str, tokens: Tokens) -> str | None:
    """The clauses in the order SOQL wants, if that makes a statement of it."""
    depth, begins = 0, []
    for index, word in enumerate(tokens.words):
        depth += (word == "(") - (word == ")")
        is_by = word not in ("group", "order") or tokens.words[index + 1] == "by"
        if depth == 0 and tokens.kinds[index] == "name" and word in CLAUSES and is_by:
            begins.append((tokens.starts[index], word))
    ends = [start for start, _ in begins[1:]] + [len(text)]
    parts = {word: text[start:end].strip() for (start, word), end in zip(begins, ends, strict=True)}
    if len(parts) != len(begins) or not begins or text[: begins[0][0]].strip():
        return None
    made = " ".join(parts[word] for word in CLAUSES if word in parts)
    try:
        SoqlParser(made, "rest").statement()
    except SyntaxProblem:
        return None
    return made


def _short(text: str, most: int = 40) -> str:
    squeezed = re.sub(r"\s+", " ", text)
    return squeezed if len(squeezed) <= most else f"{squeezed[:most]}…"
