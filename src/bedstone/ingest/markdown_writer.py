"""Structure as Markdown: headings, tables, lists."""

import re
from collections.abc import Sequence

SPACES = re.compile(r"\s+")
BACKTICKS = re.compile(r"`+")
# Signs that would be taken for markup: not an underscore inside a word.
MARKUP = re.compile(r"[\\<*`\[\]]|(?<![^\W_])_+|_+(?![^\W_])|^#(?=#*\s)")
SIGNS = re.compile(r"<|(?<![^\W_])_+|_+(?![^\W_])")
LONGEST_HEADING = 300
MOST_CELLS = 1_000_000


def squeezed(text: str) -> str:
    """White space reduced to single spaces."""
    return SPACES.sub(" ", text).strip()


def heading(level: int, text: str) -> str:
    """A heading, of a level Markdown has; a whole paragraph is none."""
    line = squeezed(text)
    return f"{'#' * min(max(level, 1), 6)} {line}" if 0 < len(line) <= LONGEST_HEADING else line


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows as a table whose first row is its head; empty rows and columns are left out."""
    cells = [[squeezed(cell).replace("|", "\\|") for cell in row] for row in rows]
    cells = [row for row in cells if any(row)]
    if not cells:
        return ""
    width = max(map(len, cells))
    if width * len(cells) > MOST_CELLS:  # a few wide rows among many: nobody pads them
        return "\n".join(" | ".join(row) for row in cells)
    full = [row + [""] * (width - len(row)) for row in cells]
    used = [column for column in range(width) if any(row[column] for row in full)]
    first, *rest = [[row[column] for column in used] for row in full]
    lines = [first, ["---"] * len(used), *rest]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def listing(text: str, language: str = "") -> str:
    """Code in a fence longer than any inside it."""
    longest = max((len(run) for run in BACKTICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.strip(chr(10))}\n{fence}"


def escaped_signs(text: str) -> str:
    """Without what would be taken for tags or names in bold, where other markup is meant."""
    return SIGNS.sub(lambda found: "".join(f"\\{sign}" for sign in found[0]), text)


def escaped(text: str) -> str:
    """Text that says the same when it is read as Markdown."""
    return MARKUP.sub(lambda found: "".join(f"\\{sign}" for sign in found[0]), text)


def joined(blocks: Sequence[str]) -> str:
    """Blocks with a blank line between."""
    return "\n\n".join(block for block in blocks if block.strip())
