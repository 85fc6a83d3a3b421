"""Convert reStructuredText to Markdown: headings, code, links and roles, without most directives."""

import re
from collections.abc import Iterator

from bedstone.ingest.markdown_writer import code_block, escape_signs

ADORNMENT = re.compile(r"([=\-`:.'\"~^_*+#<>])\1{2,}\s*$")
DIRECTIVE = re.compile(r"^(\s*)\.\.\s+([\w:-]+)::\s*(.*)$")
COMMENT_OR_TARGET = re.compile(r"^\s*\.\.(\s+.*)?$")
OPTION = re.compile(r"^\s*:[\w-]+:(\s.*)?$")
CODE_DIRECTIVES = {
    *("code", "code-block", "code-cell", "sourcecode", "literalinclude", "parsed-literal", "productionlist", "prompt"),
    *("doctest", "testcode", "testoutput", "testsetup", "testcleanup", "ipython", "jupyter-execute"),
    *("graphviz", "mermaid", "math"),
}
HASH = re.compile(r"^(\s*)(?=#)")  # a heading in Markdown, plain text in reStructuredText
SILENT_DIRECTIVES = {"contents", "toctree", "image", "raw", "include", "index", "meta", "highlight"}
SILENT_ARGUMENTS = {"figure", "only"}  # a file or a condition; below it is text
CODE = re.compile(r"(`[^`]*`)")
INLINE = (
    (re.compile(r"``([^`]+)``"), r"`\1`"),
    (re.compile(r"`([^`<]+?)\s*<([^>`]+)>`__?"), r"[\1](\2)"),
    (re.compile(r":[\w:+.-]+:`([^`<]+?)\s*<[^>`]+>`"), r"\1"),
    (re.compile(r":[\w:+.-]+:`~?([^`]+)`"), r"`\1`"),
    (re.compile(r"`([^`]+)`__?\b"), r"\1"),
)


def rst_to_markdown(source: str) -> str:
    """Convert a document; the order in which adornments appear decides the levels of headings."""
    return "\n".join(_Converter(source.expandtabs(4).splitlines()).lines())


class _Converter:
    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._at = 0
        self._styles: list[str] = []

    def lines(self) -> Iterator[str]:
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if heading := self._heading():
                yield heading
            elif directive := DIRECTIVE.match(line):
                yield from self._directive(*directive.groups())
            elif COMMENT_OR_TARGET.match(line):
                self._at += 1
                self._body(_indent(line))
            elif line.rstrip().endswith("::"):
                self._at += 1
                text = line.rstrip()[:-1].rstrip(":").rstrip()
                yield _inline(f"{text}:" if text else "")
                yield from _fence("", self._body(_indent(line)))
            else:
                self._at += 1
                yield HASH.sub(r"\1\\", _inline(line))

    def _heading(self) -> str | None:
        """Return the heading at this place: a title above a line, or between two."""
        above, title, below = (self._lines[self._at + offset : self._at + offset + 1] for offset in (0, 1, 2))
        if below and ADORNMENT.match(above[0]) and title[0].strip() and above[0].strip() == below[0].strip():
            self._at += 3
            return self._format_heading(title[0], f"over{above[0][0]}")
        text = above[0]
        if title and text.strip() and not text.startswith(" ") and not ADORNMENT.match(text):
            line = title[0]
            if ADORNMENT.match(line) and len(line.strip()) >= len(text.strip()):
                self._at += 2
                return self._format_heading(text, line[0])
        return None

    def _format_heading(self, text: str, style: str) -> str:
        if style not in self._styles:
            self._styles.append(style)
        return f"\n{'#' * min(self._styles.index(style) + 1, 6)} {_inline(text.strip())}\n"

    def _directive(self, indent: str, name: str, argument: str) -> Iterator[str]:
        self._at += 1
        body = self._body(len(indent))
        first = next((at for at, line in enumerate(body) if line.strip() and not OPTION.match(line)), len(body))
        body = body[first:]
        if name in CODE_DIRECTIVES:
            yield from _fence(argument if " " not in argument else "", body)
        elif name not in SILENT_DIRECTIVES:
            yield ""
            yield _inline(argument) if name not in SILENT_ARGUMENTS else ""
            yield from _Converter([line.removeprefix(" " * _indent(body[0])) for line in body] if body else []).lines()

    def _body(self, indent: int) -> list[str]:
        """Take the lines that follow with a deeper indent."""
        start = self._at
        while self._at < len(self._lines) and (
            not self._lines[self._at].strip() or _indent(self._lines[self._at]) > indent
        ):
            self._at += 1
        return self._lines[start : self._at]


def _fence(language: str, body: list[str]) -> Iterator[str]:
    lines = [line for line in body if line.strip()]
    if lines:
        indent = min(map(_indent, lines))
        yield f"\n{code_block(chr(10).join(line[indent:] for line in body), language)}\n"


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _inline(text: str) -> str:
    for pattern, replacement in INLINE:
        text = pattern.sub(replacement, text)
    # Markdown would treat the remaining characters as markup.
    return "".join(part if part.startswith("`") else escape_signs(part) for part in CODE.split(text))
