"""Convert reStructuredText to Markdown: headings, code, links and roles, without most directives."""

import re
from collections.abc import Iterator
from dataclasses import replace

from bedstone.ingest.formats.rst_entries import entry_kind, is_same_name, write_entry, write_heading, write_signatures
from bedstone.ingest.markdown import Block, markdown_blocks
from bedstone.ingest.markdown_writer import code_block, escape_signs

ADORNMENT = re.compile(r"([=\-`:.'\"~^_*+#<>])\1{2,}\s*$")
SHORT_ADORNMENT = re.compile(r"([=\-~^*+#])\1\s*$")  # of a title with one or two letters
DIRECTIVE = re.compile(r"^(\s*)\.\.\s+([\w:-]+)::\s*(.*)$")
COMMENT_OR_TARGET = re.compile(r"^\s*\.\.(\s+.*)?$")
OPTION = re.compile(r"^\s*:[\w-]+:(\s.*)?$")
CODE_DIRECTIVES = {
    *("code", "code-block", "code-cell", "sourcecode", "literalinclude", "parsed-literal", "productionlist", "prompt"),
    *("doctest", "testcode", "testoutput", "testsetup", "testcleanup", "ipython", "jupyter-execute", "console"),
    *("graphviz", "mermaid", "math"),
}
HASH = re.compile(r"^(\s*)(?=#)")  # a heading in Markdown, plain text in reStructuredText
ENTRY_HEADING = re.compile(rb"^(#+) .* \1\s*$")
MAX_LABEL_LINES = 50  # between an entry and the section that it names
FOOTNOTE = re.compile(r"^(\s*)\.\.\s+(\[[^\]\s]+\])(\s+.*)?$")
SILENT_DIRECTIVES = {
    *("contents", "toctree", "image", "raw", "include", "index", "meta", "highlight", "highlightlang"),
    *("currentmodule", "py:currentmodule", "program", "default-domain", "sectionauthor", "moduleauthor"),
}
VERSIONS = {
    "versionadded": "New in version",
    "versionchanged": "Changed in version",
    "deprecated": "Deprecated since version",
}
SILENT_ARGUMENTS = {"figure", "only"}  # a file or a condition; below it is text
CODE = re.compile(r"(`[^`]*`)")
# Possessive quantifiers and a bounded name of roles: a line of spaces or colons would take quadratic time otherwise.
INLINE = (
    (re.compile(r"``([^`]+)``"), r"`\1`"),
    (re.compile(r"`(\s*+[^`<\s]++(?:\s++[^`<\s]++)*+)\s*+<([^>`]+)>`__?"), r"[\1](\2)"),
    (re.compile(r":[\w:+.-]{1,80}:`(\s*+[^`<\s]++(?:\s++[^`<\s]++)*+)\s*+<[^>`]+>`"), r"\1"),
    (re.compile(r":pep:`(\d+)`"), r"PEP \1"),
    (re.compile(r":rfc:`(\d+)`"), r"RFC \1"),
    (re.compile(r":[\w:+.-]{1,80}:`~?([^`]+)`"), r"`\1`"),
    (re.compile(r"`([^`]+)`__?\b"), r"\1"),
    (re.compile(r"(\[[\w#*]+\])_\b"), r"\1"),
)


def rst_to_markdown(source: str) -> str:
    """Convert a document; the order in which adornments appear decides the levels of headings."""
    return "\n".join(_Converter(source.expandtabs(4).splitlines()).lines())


def rst_blocks(markdown: str) -> list[Block]:
    """Return the blocks of a converted document; headings with closing signs are entries."""
    data = markdown.encode()
    return [
        replace(block, is_entry=bool(block.level) and ENTRY_HEADING.search(data[block.start : block.end]) is not None)
        for block in markdown_blocks(markdown)
    ]


class _Converter:
    """Converts lines below a heading of some level; entries inside are one level deeper."""

    def __init__(self, lines: list[str], level: int = 0) -> None:
        self._lines = lines
        self._at = 0
        self._styles: list[str] = []
        self._base = self._level = level
        self._heading: str | None = None  # the one that was just written
        self._labels: list[str] = []  # entries that only name the section that follows

    def lines(self) -> Iterator[str]:
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if not line.strip():
                self._at += 1
                yield ""
            elif found := self._heading_at(self._at):
                yield self._write_heading(*found)
            elif directive := DIRECTIVE.match(line):
                yield from self._directive(*directive.groups())
            elif note := FOOTNOTE.match(line):
                self._at += 1
                yield from self._convert([f"{note[2]}{note[3]}", *self._body(_indent(line))])
            elif COMMENT_OR_TARGET.match(line):
                self._at += 1
                self._body(_indent(line))
            else:
                yield from self._paragraph()

    def _heading_at(self, at: int) -> tuple[str, str, int] | None:
        """Return text, style and number of lines of the heading at a place: a title above a line, or between two."""
        above, title, below = (self._lines[at + offset : at + offset + 1] for offset in (0, 1, 2))
        if below and ADORNMENT.match(above[0]) and title[0].strip() and above[0].strip() == below[0].strip():
            return title[0].strip(), f"over{above[0][0]}", 3
        text = above[0] if above else ""
        if title and text.strip() and not text.startswith(" ") and not ADORNMENT.match(text):
            line = title[0]
            is_adornment = ADORNMENT.match(line) or SHORT_ADORNMENT.match(line)
            if is_adornment and len(line.strip()) >= len(text.strip()):
                return text.strip(), line[0], 2
        return None

    def _write_heading(self, text: str, style: str, count: int) -> str:
        self._at += count
        if style not in self._styles:
            self._styles.append(style)
        self._level = min(self._base + self._styles.index(style) + 1, 6)
        is_entry = bool(self._labels) or self._is_before_entry(text)
        labels = [label for label in self._labels if not is_same_name(text, label)]
        self._heading, self._labels = text, []
        return f"\n{write_heading(self._level, _inline(text), is_entry=is_entry)}\n{write_signatures(labels)}"

    def _paragraph(self) -> Iterator[str]:
        """Convert the lines up to a blank one together: a role may go on in the next line."""
        first, self._heading = self._lines[self._at], None
        start = self._at
        while self._at < len(self._lines) and self._lines[self._at].strip():
            if self._at > start and self._starts_other(self._at):
                break
            self._at += 1
            if self._lines[self._at - 1].rstrip().endswith("::"):
                break
        lines = self._lines[start : self._at]
        if first.lstrip().startswith(">>> "):
            yield from _fence("pycon", lines)
        elif lines[-1].rstrip().endswith("::"):
            last = lines[-1].rstrip()[:-1].rstrip(":").rstrip()
            yield _text([*lines[:-1], f"{last}:"] if last else lines[:-1])
            yield from _fence("", self._body(_indent(lines[-1])))
        else:
            yield _text(lines)

    def _starts_other(self, at: int) -> bool:
        return self._heading_at(at) is not None or COMMENT_OR_TARGET.match(self._lines[at]) is not None

    def _directive(self, indent: str, name: str, argument: str) -> Iterator[str]:
        self._at += 1
        body = self._body(len(indent))
        if (kind := entry_kind(name)) and argument:
            yield from self._entry(kind, argument, body)
            return
        body = _without_options(body)
        self._heading = self._heading if name in SILENT_DIRECTIVES else None
        if name in CODE_DIRECTIVES:
            yield from _fence(argument if " " not in argument else "", body)
        elif name in VERSIONS:
            version, _, text = argument.partition(" ")
            yield from self._convert([f"{VERSIONS[name]} {version}: {text}".rstrip(" :") + ":", *_dedent(body)])
        elif name not in SILENT_DIRECTIVES:
            yield ""
            yield _inline(argument) if name not in SILENT_ARGUMENTS else ""
            yield from self._convert(_dedent(body))

    def _entry(self, kind: str, argument: str, body: list[str]) -> Iterator[str]:
        """Convert an entry: a heading of its own, unless it only names the section before or after it."""
        end = next((at for at, line in enumerate(body) if not line.strip() or OPTION.match(line)), len(body))
        signatures = [" ".join(text.replace("\\", "").split()) for text in [argument, *body[:end]]]
        body = _dedent(_without_options(body[end:]))
        if not any(line.strip() for line in body) and self._is_before_heading():
            self._labels += signatures if kind != "module" else []
            return
        above = self._heading
        if above is not None and (kind == "module" or is_same_name(above, signatures[0])):
            yield write_signatures(signatures, above)
            yield from self._convert(body)
            return
        self._heading, level = None, min(self._level + 1, 6)
        yield write_entry(level, kind, signatures)
        yield from _Converter(body, level).lines()

    def _is_before_heading(self) -> bool:
        """Return whether nothing but targets and other entries without text stands before the next heading."""
        for at in range(self._at, min(self._at + MAX_LABEL_LINES, len(self._lines))):
            line = self._lines[at]
            if self._heading_at(at):
                return True
            if line.strip() and not COMMENT_OR_TARGET.match(line) and not OPTION.match(line):
                return False
        return False

    def _is_before_entry(self, heading: str) -> bool:
        """Return whether an entry of the same name follows, which the heading belongs to."""
        following = self._lines[self._at : self._at + MAX_LABEL_LINES]
        line = next((line for line in following if line.strip()), "")
        directive = DIRECTIVE.match(line)
        return directive is not None and bool(entry_kind(directive[2])) and is_same_name(heading, directive[3])

    def _convert(self, lines: list[str]) -> Iterator[str]:
        yield from _Converter(lines, self._level).lines()

    def _body(self, indent: int) -> list[str]:
        """Take the lines that follow with a deeper indent."""
        start = self._at
        while self._at < len(self._lines) and (
            not self._lines[self._at].strip() or _indent(self._lines[self._at]) > indent
        ):
            self._at += 1
        return self._lines[start : self._at]


def _text(lines: list[str]) -> str:
    return "\n".join(HASH.sub(r"\1\\", line) for line in _inline("\n".join(lines)).split("\n"))


def _without_options(body: list[str]) -> list[str]:
    first = next((at for at, line in enumerate(body) if line.strip() and not OPTION.match(line)), len(body))
    return body[first:]


def _dedent(body: list[str]) -> list[str]:
    return [line.removeprefix(" " * _indent(body[0])) for line in body] if body else []


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
