"""Plain text: paragraphs are blocks, and nothing is markup."""

import re

from bedstone.ingest.markdown import Block

PARAGRAPH = re.compile(rb"\S.*?(?=\r?\n[ \t]*\r?\n|\s*\Z)", re.DOTALL)


def text_blocks(source: str) -> list[Block]:
    """Paragraphs, divided by blank lines."""
    data = source.encode()
    return [Block(found.start(), found.end(), found[0].decode()) for found in PARAGRAPH.finditer(data)]
