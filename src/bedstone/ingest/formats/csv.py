"""Tables in text: commas, semicolons, tabs or bars between the cells."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from bedstone.ingest.encodings import decoded
from bedstone.ingest.extraction import Notes, Page, ReadOptions
from bedstone.ingest.markdown_writer import table

DELIMITERS = ",;\t|"
SNIFFED = 20_000


def read(path: Path, options: ReadOptions, notes: Notes) -> Iterator[Page]:
    """One table."""
    text = decoded(path.read_bytes(), notes)
    csv.field_size_limit(2**31 - 1)
    sample = text[:SNIFFED]
    try:
        delimiter = csv.Sniffer().sniff(sample, DELIMITERS).delimiter
    except csv.Error:
        delimiter = max(DELIMITERS, key=sample.count)
    yield Page(table(list(csv.reader(io.StringIO(text), delimiter=delimiter))))
