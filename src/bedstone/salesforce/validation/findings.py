"""What a validation finds, and the text that follows from its fixes."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from bedstone.salesforce.soql.problems import place
from bedstone.salesforce.soql.tree import Span

MAX_MESSAGES = 50
MessageType = Literal["error", "warning", "correction", "info"]
Severity = MessageType | Literal["repairable"]  # repairable: an error that writing the tree again repairs


class Finding(NamedTuple):
    """What a rule says about a stretch of the query; `fix` is the text that repairs it."""

    message: str
    span: Span
    fix: str | None = None
    clause: str | None = None  # None: the clause being walked
    severity: Severity | None = None  # None: the severity of the rule


@dataclass(frozen=True)
class Message:
    """One line of a report, with its place in the query."""

    type: MessageType
    code: str
    message: str
    clause: str = ""
    line: int = 1
    column: int = 1
    original: str | None = None
    corrected: str | None = None


@dataclass(frozen=True)
class Report:
    """Whether the query is valid as sent, every message, and the corrected query if there is one."""

    valid: bool
    messages: list[Message]
    corrected: str | None = None


@dataclass
class Findings:
    """Collects messages about one text, and the edits that repair it."""

    text: str
    messages: list[Message] = field(default_factory=list)
    edits: dict[Span, str] = field(default_factory=dict)
    is_correctable: bool = True  # every error so far has a fix
    is_valid: bool = True

    def add(  # noqa: PLR0917 - the parts of a message
        self, severity: Severity, code: str, message: str, clause: str, span: Span, fix: str | None = None
    ) -> None:
        """Add a message; beyond the maximum only remember that there are more."""
        if len(self.messages) >= MAX_MESSAGES:
            self.is_correctable = False
            return
        if severity == "error":
            if fix is None:
                self.is_correctable = False
            else:
                self.edits[span] = fix
        kind: MessageType = "error" if severity == "repairable" else severity
        if kind == "error":
            self.is_valid = False
        line, column = place(self.text, span[0])
        original = self.text[slice(*span)] if span[1] > span[0] else None
        self.messages.append(Message(kind, code, message, clause, line, column, original, fix))

    def error(self, code: str, message: str, clause: str, span: Span, fix: str | None = None) -> None:
        """Report something an org rejects, with its fix if that is certain."""
        self.add("error", code, message, clause, span, fix)

    def correct_name(self, name: str, corrected: str, owner: str, clause: str, span: Span) -> None:
        """Follow the report of an unknown name by its correction."""
        message = f'"{name}" was corrected to "{corrected}" on {owner}.'
        self.add("correction", "NAME_CORRECTED", message, clause, span, corrected)

    def schema_unknown(self, message: str) -> None:
        """Report a part of the query that cannot be checked."""
        self.add("info", "SCHEMA_UNKNOWN", message, "", (0, 0))

    @property
    def is_full(self) -> bool:
        """Whether further messages would be dropped."""
        return len(self.messages) >= MAX_MESSAGES


def apply_edits(text: str, edits: Iterable[tuple[Span, str]]) -> str:
    """Replace stretches of a text; of two that overlap, the first wins."""
    pieces, last = [], 0
    for (start, end), replacement in sorted(edits):
        if start < last:
            continue
        pieces += [text[last:start], replacement]
        last = end
    return "".join([*pieces, text[last:]])
