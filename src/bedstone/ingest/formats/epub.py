"""Read books: the chapters in the order of the spine."""

from collections.abc import Iterator
from pathlib import Path
from posixpath import dirname, join, normpath
from urllib.parse import unquote

from bedstone.ingest.archives import Archive
from bedstone.ingest.extraction import ExtractionError, Notes, Page, ReadOptions
from bedstone.ingest.format import Format
from bedstone.ingest.formats.html import html_to_markdown
from bedstone.ingest.markdown_writer import join_blocks

CONTAINER = "META-INF/container.xml"
FORMAT = Format(
    name="epub", reader=f"{__name__}:read", suffixes=(".epub",), media_type="application/epub+zip", zip_member=CONTAINER
)
CHAPTERS = (".xhtml", ".html", ".htm")
OPF = "{http://www.idpf.org/2007/opf}"
DC = "{http://purl.org/dc/elements/1.1/}"


def read(path: Path, options: ReadOptions, notes: Notes) -> Iterator[Page]:
    """Yield one page: e-books have no fixed pages."""
    archive = Archive(path)
    root = archive.xml(CONTAINER, notes)
    package = next((item.get("full-path") for item in root.iter() if item.get("full-path")), None)
    if not package:
        raise ExtractionError("damaged", "The book is corrupt: its container names no package.")
    opf = archive.xml(package, notes)
    for name, tag in (("title", "title"), ("author", "creator"), ("created", "date")):
        notes.learn(name, opf.findtext(f".//{DC}{tag}"))
    files = {item.get("id"): unquote(item.get("href", "")) for item in opf.iter(f"{OPF}item")}
    order = [files.get(item.get("idref"), "") for item in opf.iter(f"{OPF}itemref")]
    chapters = []
    for file in order:
        name = normpath(join(dirname(package), file))
        if name in archive.names:
            chapters.append(html_to_markdown(archive.read(name), notes=notes)[1])
        else:
            notes.warn(f"Missing chapter: {file or 'unknown'}")
    for file in files.values():
        if file not in order and file.endswith(CHAPTERS):
            notes.leave_out("embedded file", file)
    yield Page(join_blocks(chapters))
