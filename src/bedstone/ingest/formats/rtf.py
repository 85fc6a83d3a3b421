"""Read RTF as plain text, without the formatting."""

import re
from collections.abc import Iterator
from pathlib import Path

from bedstone.ingest.extraction import ExtractionError, Notes, Page, ReadOptions
from bedstone.ingest.format import Format

FORMAT = Format(
    name="rtf", reader=f"{__name__}:read", suffixes=(".rtf",), media_type="application/rtf", magic=(b"{\\rtf",)
)
TOKEN = re.compile(rb"\\'([0-9a-fA-F]{2})|\\([a-z]{1,32})(-?\d{1,10})? ?|\\([^a-z])|([{}])|([^\\{}\r\n]+)", re.DOTALL)
SILENT = {
    b"fonttbl", b"colortbl", b"stylesheet", b"info", b"pict", b"object", b"themedata", b"datastore", b"listtable",
    b"listoverridetable", b"rsidtbl", b"generator", b"xmlnstbl", b"latentstyles", b"fldinst", b"bkmkstart",
    b"bkmkend", b"colorschememapping", b"mmathPr",
}  # fmt: skip
# Groups with text, even inside groups without: text boxes, comments, what an object shows.
SPOKEN = {b"shptxt", b"annotation", b"result"}
# Each section may repeat these; a text that is there already is left out.
EDGES = {f"{name}{side}".encode() for name in ("header", "footer") for side in ("", "l", "r", "f")}
BREAKS = {b"par": "\n\n", b"line": "\n", b"tab": "\t", b"cell": " | ", b"row": "\n", b"page": "\n\n", b"sect": "\n\n"}
SIGNS = {b"emdash": "\u2014", b"endash": "\u2013", b"bullet": "\u2022", b"lquote": "\u2018", b"rquote": "\u2019"}
SIGNS |= {b"ldblquote": "\u201c", b"rdblquote": "\u201d"}
ESCAPED = {b"~": "\u00a0", b"_": "-", b"-": "", b"\\": "\\", b"{": "{", b"}": "}"}
CODE_PAGES = {b"ansi": "cp1252", b"mac": "mac_roman", b"pc": "cp437", b"pca": "cp850"}
MAX_DEPTH = 10_000


def read(path: Path, options: ReadOptions, notes: Notes) -> Iterator[Page]:
    """Yield one page with the document."""
    data = path.read_bytes()
    if not data.lstrip().startswith(b"{\\rtf"):
        raise ExtractionError("damaged", "Not a valid RTF file.")
    text = "".join(_Reader(notes).words(data))
    lines = (re.sub(r"[ \t]+", " ", line).strip(" |") for line in text.split("\n"))
    yield Page(re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip())


class _Reader:
    """Converts tokens to text, and skips groups such as font tables."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._edges: set[str] = set()
        self._edge: list[str] | None = None  # the header or footer that is open
        self._edge_depth = 0
        self._encoding = "cp1252"
        self._pending = bytearray()
        self._stack: list[tuple[bool, int]] = []
        self._silent = False
        self._fallback = 1  # characters after a Unicode one, for programs without Unicode
        self._skip = 0

    def words(self, data: bytes) -> Iterator[str]:
        """Yield the text; headers and footers as paragraphs of their own, each once."""
        for text in self._texts(data):
            if self._edge is None:
                yield text
                continue
            self._edge.append(text)
            if len(self._stack) < self._edge_depth:
                yield self._close_edge("".join(self._edge).strip())
        if self._edge:
            yield self._close_edge("".join(self._edge).strip())

    def _close_edge(self, text: str) -> str:
        self._edge = None
        if text in self._edges:
            self._notes.leave_out("repeated line", text)
            return ""
        self._edges.add(text)
        return f"\n\n{text}\n\n"

    def _texts(self, data: bytes) -> Iterator[str]:
        for found in TOKEN.finditer(data):
            hexadecimal, word, number, sign, brace, text = found.groups()
            if hexadecimal is not None:
                self._byte(int(hexadecimal, 16))
                continue
            if self._pending:
                yield self._pending.decode(self._encoding, errors="replace")
                self._pending.clear()
            if brace is not None:
                self._group(brace)
                yield ""
            elif word is not None:
                yield self._control(word, number)
            elif sign is not None:
                yield self._sign(sign)
            else:
                yield self._plain(text)

    def _byte(self, value: int) -> None:
        if self._skip:
            self._skip -= 1
        elif not self._silent:
            self._pending.append(value)

    def _group(self, brace: bytes) -> None:
        if brace == b"}":
            self._silent, self._fallback = self._stack.pop() if self._stack else (False, 1)
            return
        if len(self._stack) > MAX_DEPTH:
            raise ExtractionError("too_deep", "The file is nested too deeply.")
        self._stack.append((self._silent, self._fallback))

    def _control(self, word: bytes, number: bytes | None) -> str:
        if word in SILENT:
            self._silent = True
        elif word in SPOKEN:
            self._silent = False
            return "\n\n"
        elif word in EDGES and not self._silent and self._edge is None:
            self._edge, self._edge_depth = [], len(self._stack)
        elif word in CODE_PAGES:
            self._encoding = CODE_PAGES[word]
        elif word == b"ansicpg" and number:
            self._encoding = _valid_encoding(f"cp{int(number)}", self._encoding)
        elif word == b"uc" and number:
            self._fallback = int(number)
        elif word == b"u" and number and not self._silent:
            self._skip = self._fallback
            return chr(int(number) % 65536)
        elif not self._silent:
            return BREAKS.get(word) or SIGNS.get(word, "")
        return ""

    def _sign(self, sign: bytes) -> str:
        if sign == b"*":
            self._silent = True
        if self._silent:
            return ""
        return "\n\n" if sign in (b"\n", b"\r") else ESCAPED.get(sign, "")

    def _plain(self, text: bytes) -> str:
        kept, self._skip = text[self._skip :], max(0, self._skip - len(text))
        return "" if self._silent else kept.decode(self._encoding, errors="replace")


def _valid_encoding(encoding: str, default: str) -> str:
    try:
        "".encode(encoding)
    except LookupError:
        return default
    return encoding
