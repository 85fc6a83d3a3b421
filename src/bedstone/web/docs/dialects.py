"""Turn the notes and containers of site generators into quotations, which every reader of Markdown knows.

MkDocs writes `!!! note` before an indented text, Docusaurus and VitePress put `:::note` and `:::` around it, GitHub
begins a quotation with `[!NOTE]`.
"""

import re
from collections.abc import Iterator, Sequence

INDENTED_NOTE = re.compile(
    r"([ \t]*)(?:!!!|\?\?\?\+?)[ \t]+([A-Za-z][\w-]*)(?:[ \t]+[\w-]+)*(?:[ \t]+\"([^\"\n]*)\")?[ \t]*$"
)
CONTAINER = re.compile(r"[ \t]*:{3,}[ \t]*\{?([A-Za-z][\w-]*)\}?(?:\[([^\]\n]*)\]|[ \t]+([^\n]*))?[ \t]*$")
CONTAINER_END = re.compile(r"[ \t]*:{3,}[ \t]*$")
ALERT = re.compile(r"([ \t]*>[ \t]*)\[!([A-Za-z]+)\][+-]?[ \t]*(.*)$")
FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
INDENTATION = 4
MAX_DEPTH = 20  # of containers in each other


def to_plain_markdown(text: str) -> str:
    """Return Markdown in which notes are quotations that begin with their title; code stays as it is."""
    if "!!!" not in text and "???" not in text and ":::" not in text and "[!" not in text:
        return text
    return "\n".join(_convert(text.split("\n")))


def _convert(lines: Sequence[str]) -> Iterator[str]:
    number, fence, depth = 0, "", 0
    while number < len(lines):
        line = lines[number]
        number += 1
        quoted = "> " * depth
        if found := FENCE.match(line):
            fence = "" if fence and found[1].startswith(fence) else fence or found[1]
        if fence or FENCE.match(line):
            yield f"{quoted}{line}"
        elif found := INDENTED_NOTE.match(line):
            end = _end_of_note(lines, number, len(found[1]))
            inside = [item[len(found[1]) + INDENTATION :] for item in lines[number:end]]
            yield from _quote(_title(found[2], found[3]), _convert(inside), quoted)
            number = end
        elif depth < MAX_DEPTH and (found := CONTAINER.match(line)):
            depth += 1
            yield from ("", f"{'> ' * depth}**{_title(found[1], found[2] or found[3])}**", "> " * depth)
        elif depth and CONTAINER_END.match(line):
            depth -= 1
            yield "> " * depth
        elif found := ALERT.match(line):
            rest = f" {found[3]}" if found[3] else ""
            yield f"{quoted}{found[1]}**{_title(found[2], None)}**{rest}"
            yield f"{quoted}{found[1]}"
        else:
            yield f"{quoted}{line}"


def _end_of_note(lines: Sequence[str], start: int, indentation: int) -> int:
    """Return the number of the line behind an indented note."""
    end = start
    for number in range(start, len(lines)):
        line = lines[number]
        if line.strip():
            if not line.startswith(" " * (indentation + INDENTATION)):
                break
            end = number + 1
    return end


def _quote(title: str, lines: Iterator[str], before: str) -> Iterator[str]:
    yield from ("", f"{before}> **{title}**", f"{before}>")
    yield from (f"{before}> {line}" for line in lines)
    yield ""


def _title(kind: str, given: str | None) -> str:
    return given.strip() if given and given.strip() else kind.capitalize()
