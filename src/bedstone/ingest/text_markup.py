"""Tell whether a text file is written in reStructuredText or Markdown: only markup that prose does not have counts."""

import re
from typing import Literal

Markup = Literal["rst", "markdown", "text"]
MAX_SAMPLE = 100_000  # characters
RST_SIGNS = {
    "directive": re.compile(r"^[ ]*\.\. [\w:+.-]+::(?: |$)", re.MULTILINE),
    "target": re.compile(r"^\.\. _[^\n:]+:(?: |$)", re.MULTILINE),
    "role": re.compile(r"(?<![\w`]):[a-z][\w:+.-]*:`[^`\n]+`"),
    "literal": re.compile(r"(?<![\w`])``[^`\n]+``(?!`)"),
    "reference": re.compile(r"(?<![\w`])`[^`\n]+ <[^>\n]+>`__?\b"),
}
# An underlined title, which plain text and Markdown have too.
TITLE = re.compile(r"(?:^|\n[ \t]*\n)(?:([=\-~^*#\"'`+])\1{2,}\n)?(\S[^\n]*)\n([=\-~^*#\"'`+])\3{2,}[ \t]*(?=\n|$)")
PROOFS_OF_RST = {"directive", "target", "role", "reference"}
MARKDOWN_SIGNS = {
    "fence": re.compile(r"^ {0,3}```[\w-]*[ \t]*$", re.MULTILINE),
    "link": re.compile(r"(?<![\w\])])!?\[[^\]\n]+\]\([^()\s]+\)"),
    "table": re.compile(r"^\|?[^\n|]*\|[^\n]*\n[ ]*\|?[ ]*:?-{3,}:?[ ]*\|[-| :]*$", re.MULTILINE),
}
# Enough beside a heading of level 2 or more; `# text` is also a comment.
WEAK_MARKDOWN_SIGNS = {
    "strong": re.compile(r"(?<![\w*])\*\*[^\s*](?:[^*\n]*[^\s*])?\*\*(?![\w*])"),
    "code": re.compile(r"(?<![\w`])`[^`\n]+`(?![\w`])"),
}
HEADING = re.compile(r"(?:\A|\n[ \t]*\n)(#{1,6}) \S[^\n]*(?=\n[ \t]*(?:\n|\Z)|\Z)")


def detect_markup(source: str) -> Markup:
    """Return the markup of a text; without two kinds of evidence it is plain."""
    sample = source[:MAX_SAMPLE].replace("\r\n", "\n")
    found = {name for name, pattern in RST_SIGNS.items() if pattern.search(sample)}
    if found & PROOFS_OF_RST and (len(found) > 1 or _has_title(sample)):
        return "rst"
    levels = {len(marks) for marks in HEADING.findall(sample)}
    signs = MARKDOWN_SIGNS | (WEAK_MARKDOWN_SIGNS if levels - {1} else {})
    if levels and any(pattern.search(sample) for pattern in signs.values()):
        return "markdown"
    return "text"


def _has_title(sample: str) -> bool:
    """Return whether a line is underlined as far as it goes."""
    return any(len(match[0].rstrip().rpartition("\n")[2]) >= len(match[2]) for match in TITLE.finditer(sample))
