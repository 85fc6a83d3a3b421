"""Count the page-sized pictures in a PDF without parsing it: a hint at how much OCR it needs."""

import re
from pathlib import Path

# The dictionary of a picture is never compressed; other numbers that look like one only change an estimate.
WIDTH = re.compile(rb"/Width\s{0,4}(\d{1,6})")
MIN_WIDTH = 1_000  # pixels: a page at 120 dpi
BLOCK_BYTES = 2**22
MAX_BYTES = 64 * 2**20


def count_page_images(path: Path) -> int:
    """Return how many pictures in the first 64 MB of a file are as wide as a page."""
    count = 0
    with path.open("rb") as file:
        for _ in range(0, MAX_BYTES, BLOCK_BYTES):
            block = file.read(BLOCK_BYTES)
            count += sum(int(found[1]) >= MIN_WIDTH for found in WIDTH.finditer(block))
            if len(block) < BLOCK_BYTES:
                break
    return count
