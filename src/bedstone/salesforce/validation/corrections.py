"""The corrected query: apply the fixes, and check the result again."""

from collections.abc import Callable
from dataclasses import replace

from bedstone.salesforce.soql import SyntaxProblem, parse_soql, write
from bedstone.salesforce.validation.findings import Findings, Message, apply_edits
from bedstone.salesforce.validation.parsing import Parsed, parse_leniently

MAX_ROUNDS = 3
Check = Callable[[Parsed, Findings], None]  # report what is wrong with a parsed query


def correct_query(findings: Findings, check: Check) -> tuple[str | None, list[Message]]:
    """Return the query with every fix if it is valid then, else None and the errors that appeared on the way."""
    hidden: list[Message] = []
    for _ in range(MAX_ROUNDS):
        if not findings.is_correctable or findings.is_valid:
            break
        text = apply_edits(findings.text, findings.edits.items()).strip()
        fixed = Findings(text)
        parsed = parse_leniently(text, fixed)
        if parsed is None:
            break
        if parsed.deviations and not parsed.unquoted_positions:
            text = write(parsed.query)
            fixed = Findings(text)
            parsed = parse_leniently(text, fixed)
        if text == findings.text:
            break
        findings = fixed
        if parsed is None:
            continue
        check(parsed, findings)
        if findings.is_valid:
            return (text, []) if _is_soql(text) else (None, hidden)
        hidden += [item for item in findings.messages if item.type == "error"]
    return None, hidden


def _is_soql(text: str) -> bool:
    try:
        parse_soql(text)
    except SyntaxProblem:
        return False
    return True


def reveal(hidden: list[Message], messages: list[Message]) -> list[Message]:
    """Return the errors that only show once the first one is corrected, at its place."""
    first = messages[0]
    known = {item.message for item in messages}
    return [
        replace(item, line=first.line, column=first.column, message=f"With that corrected: {item.message}")
        for item in hidden
        if item.message not in known
    ]
