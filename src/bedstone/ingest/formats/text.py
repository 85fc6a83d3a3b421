"""Split plain text into paragraphs; nothing in it is markup."""

import re

from bedstone.ingest.markdown import Block

BLANK = re.compile(rb"\n[ \t\r]*\n\s*")


def text_blocks(source: str) -> list[Block]:
    """Return the paragraphs, which blank lines separate."""
    data = source.encode()
    blocks, start = [], 0
    for end, after in [*(found.span() for found in BLANK.finditer(data)), (len(data), len(data))]:
        text = data[start:end]
        left = len(text) - len(text.lstrip())
        if text.strip():
            blocks.append(Block(start + left, start + len(text.rstrip()), text.decode().strip()))
        start = after
    return blocks
