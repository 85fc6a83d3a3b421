"""File formats, one per file. Other packages add theirs under the entry point group `bedstone.formats`."""

from bedstone.extensions import Kind
from bedstone.ingest.format import Format

# In this order the error for an unsupported file lists them.
FORMATS: Kind[Format] = Kind(
    "formats",
    {
        "pdf": "bedstone.ingest.formats.pdf:FORMAT",
        "docx": "bedstone.ingest.formats.docx:FORMAT",
        "pptx": "bedstone.ingest.formats.pptx:FORMAT",
        "xlsx": "bedstone.ingest.formats.xlsx:FORMAT",
        "html": "bedstone.ingest.formats.html:FORMAT",
        "jpg": "bedstone.ingest.formats.image:JPEG",
        "png": "bedstone.ingest.formats.image:PNG",
        "svg": "bedstone.ingest.formats.svg:FORMAT",
        "md": "bedstone.ingest.formats.plain:MARKDOWN",
        "txt": "bedstone.ingest.formats.plain:TEXT",
        "csv": "bedstone.ingest.formats.csv:FORMAT",
        "json": "bedstone.ingest.formats.plain:JSON",
        "eml": "bedstone.ingest.formats.eml:FORMAT",
        "epub": "bedstone.ingest.formats.epub:FORMAT",
        "rtf": "bedstone.ingest.formats.rtf:FORMAT",
        "odt": "bedstone.ingest.formats.odt:FORMAT",
    },
)
