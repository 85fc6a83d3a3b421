"""Write Markdown: headings, tables, code blocks, escaped text."""

import re
from collections.abc import Sequence

SPACES = re.compile(r"\s+")
BACKTICKS = re.compile(r"`+")
# Characters that Markdown treats as markup; an underscore inside a word is not.
MARKUP = re.compile(r"[\\<*`\[\]]|(?<![^\W_])_+|_+(?![^\W_])|^#(?=#*\s)")
SIGNS = re.compile(r"<|(?<![^\W_])_+|_+(?![^\W_])")
MAX_HEADING_CHARS = 300
MAX_CELLS = 1_000_000
MIN_SPARSE_CELLS = 20_000  # a smaller table keeps its empty cells
MAX_PADDING = 20  # cells for each one with text


def collapse_spaces(text: str) -> str:
    """Replace each run of white space by one space."""
    return SPACES.sub(" ", text).strip()


def heading(level: int, text: str) -> str:
    """Write a heading of level 1 to 6; text as long as a paragraph stays plain."""
    line = collapse_spaces(text)
    return f"{'#' * min(max(level, 1), 6)} {line}" if 0 < len(line) <= MAX_HEADING_CHARS else line


def table(rows: Sequence[Sequence[str]]) -> str:
    """Write a table whose first row is its head; empty rows and columns are left out."""
    cells = [[collapse_spaces(cell).replace("|", "\\|") for cell in row] for row in rows]
    cells = [row for row in cells if any(row)]
    if not cells:
        return ""
    width = max(map(len, cells))
    filled = sum(1 for row in cells for cell in row if cell)
    if width * len(cells) > min(MAX_CELLS, max(MIN_SPARSE_CELLS, MAX_PADDING * filled)):
        # A few wide rows among many, or a cell here and there: padding would multiply the text.
        return "\n".join(" | ".join(cell for cell in row if cell) for row in cells)
    full = [row + [""] * (width - len(row)) for row in cells]
    used = [column for column in range(width) if any(row[column] for row in full)]
    first, *rest = [[row[column] for column in used] for row in full]
    lines = [first, ["---"] * len(used), *rest]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def code_block(text: str, language: str = "") -> str:
    """Write code in a fence longer than any inside it."""
    longest = max((len(run) for run in BACKTICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.strip(chr(10))}\n{fence}"


def escape_signs(text: str) -> str:
    """Escape tags and underscores, and keep other markup."""
    return SIGNS.sub(lambda found: "".join(f"\\{sign}" for sign in found[0]), text)


def escape(text: str) -> str:
    """Escape everything that Markdown would treat as markup."""
    return MARKUP.sub(lambda found: "".join(f"\\{sign}" for sign in found[0]), text)


def join_blocks(blocks: Sequence[str]) -> str:
    """Join the blocks that are not empty with blank lines."""
    return "\n\n".join(block for block in blocks if block.strip())
