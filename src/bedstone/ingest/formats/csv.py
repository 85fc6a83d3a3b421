"""Read delimited text: commas, semicolons, tabs or bars between the cells."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from bedstone.ingest.encodings import decode
from bedstone.ingest.extraction import Notes, Page, ReadOptions
from bedstone.ingest.format import Format
from bedstone.ingest.markdown_writer import table

FORMAT = Format(name="csv", reader=f"{__name__}:read", suffixes=(".csv", ".tsv"), media_type="text/csv")
DELIMITERS = ",;\t|"
SAMPLE = 20_000


def read(path: Path, options: ReadOptions, notes: Notes) -> Iterator[Page]:
    """Yield one page with one table."""
    text = decode(path.read_bytes(), notes)
    csv.field_size_limit(2**31 - 1)
    sample = text[:SAMPLE]
    try:
        delimiter = csv.Sniffer().sniff(sample, DELIMITERS).delimiter
    except csv.Error:
        delimiter = max(DELIMITERS, key=sample.count)
    yield Page(table(list(csv.reader(io.StringIO(text), delimiter=delimiter))))
