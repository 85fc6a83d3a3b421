"""What a validation finds, and the text that follows from its corrections."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from bedstone.salesforce.soql.problems import place
from bedstone.salesforce.soql.tree import Span

MOST_MESSAGES = 50
Kind = Literal["error", "warning", "correction", "info"]


@dataclass(frozen=True)
class Finding:
    """One message, with its place in the query."""

    type: Kind
    code: str
    message: str
    clause: str = ""
    line: int = 1
    column: int = 1
    original: str | None = None
    corrected: str | None = None


@dataclass(frozen=True)
class Report:
    """Whether the query as sent is good, all that was found, and the query as it should be, if that is known."""

    valid: bool
    messages: list[Finding]
    corrected: str | None = None


@dataclass
class Findings:
    """Collects messages and the edits that would mend them."""

    text: str
    messages: list[Finding] = field(default_factory=list)
    edits: dict[Span, str] = field(default_factory=dict)
    is_mendable: bool = True  # every error so far has an edit

    def error(self, code: str, message: str, clause: str, span: Span, corrected: str | None = None) -> None:
        """Something an org refuses; with its correction, if it is certain."""
        self._add("error", code, message, clause, span, corrected=corrected)
        if corrected is None:
            self.is_mendable = False
        else:
            self.edits[span] = corrected

    def rewritten(self, code: str, message: str, clause: str, span: Span, corrected: str | None = None) -> None:
        """An error that writing the tree again mends."""
        self._add("error", code, message, clause, span, corrected=corrected)

    def name_corrected(self, written: str, name: str, owner: str, clause: str, span: Span) -> None:
        """Follows the error it repairs."""
        message = f'"{written}" was corrected to "{name}" on {owner}.'
        self._add("correction", "NAME_CORRECTED", message, clause, span, corrected=name)

    def warning(self, code: str, message: str, clause: str, span: Span) -> None:
        """Something an org runs, but should not."""
        self._add("warning", code, message, clause, span)

    def info(self, code: str, message: str) -> None:
        """Something to know."""
        self._add("info", code, message, "", (0, 0))

    @property
    def is_full(self) -> bool:
        """Whether more would not be told: nobody needs to look for it."""
        return len(self.messages) >= MOST_MESSAGES

    @property
    def is_valid(self) -> bool:
        return not any(item.type == "error" for item in self.messages)

    def _add(  # noqa: PLR0917 - the parts of a message
        self, kind: Kind, code: str, message: str, clause: str, span: Span, corrected: str | None = None
    ) -> None:
        if len(self.messages) >= MOST_MESSAGES:
            self.is_mendable = False
            return
        line, column = place(self.text, span[0])
        original = self.text[slice(*span)] if span[1] > span[0] else None
        self.messages.append(Finding(kind, code, message, clause, line, column, original, corrected))


def edited(text: str, edits: Iterable[tuple[Span, str]]) -> str:
    """A text with some stretches replaced; of stretches that overlap, the first counts."""
    made, last = [], 0
    for (start, end), replacement in sorted(edits):
        if start < last:
            continue
        made += [text[last:start], replacement]
        last = end
    return "".join([*made, text[last:]])
