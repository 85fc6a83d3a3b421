"""AsciiDoc, declared. Every process that detects formats imports this module; only the worker imports the reader."""

from bedstone.ingest.format import Format

FORMAT = Format(
    name="adoc",
    reader="acme_diary.adoc_reader:read",
    suffixes=(".adoc", ".asciidoc"),
    media_type="text/asciidoc",
    magic=(b"//adoc",),
)
