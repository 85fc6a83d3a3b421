"""Read what Office formats share: properties, relationships and pictures."""

from dataclasses import dataclass
from io import BytesIO
from posixpath import dirname, join, normpath

from bedstone.ingest.archives import Archive
from bedstone.ingest.extraction import ExtractionError, Notes, ReadOptions

PROPERTIES = {
    "title": "{http://purl.org/dc/elements/1.1/}title",
    "author": "{http://purl.org/dc/elements/1.1/}creator",
    "subject": "{http://purl.org/dc/elements/1.1/}subject",
    "created": "{http://purl.org/dc/terms/}created",
    "modified": "{http://purl.org/dc/terms/}modified",
}


def learn_properties(archive: Archive, notes: Notes) -> None:
    """Add title, author and dates to the notes."""
    root = archive.optional_xml("docProps/core.xml", notes)
    if root is not None:
        for name, tag in PROPERTIES.items():
            notes.learn(name, root.findtext(tag))


@dataclass(frozen=True)
class Relationships:
    """The members that a member refers to: by id, and by kind."""

    by_id: dict[str, str]
    kinds: dict[str, list[str]]

    def of_type(self, kind: str) -> str | None:
        """Return the first member of a kind."""
        return next(iter(self.kinds.get(kind, [])), None)

    def all_of_type(self, kind: str) -> list[str]:
        """Return every member of a kind."""
        return self.kinds.get(kind, [])


def relationships(archive: Archive, part: str, notes: Notes) -> Relationships:
    """Return what a member refers to; "" is the archive itself."""
    folder, _, name = part.rpartition("/")
    root = archive.optional_xml(f"{folder}/_rels/{name}.rels".lstrip("/"), notes)
    by_id: dict[str, str] = {}
    kinds: dict[str, list[str]] = {}
    for item in root if root is not None else ():
        if item.get("TargetMode") == "External":
            continue
        target = item.get("Target", "")
        path = target.lstrip("/") if target.startswith("/") else normpath(join(dirname(part), target))
        by_id[item.get("Id", "")] = path
        kinds.setdefault(item.get("Type", "").rpartition("/")[2], []).append(path)
    return Relationships(by_id, kinds)


def note_embedded(parts: Relationships, notes: Notes, page: int | None = None) -> None:
    """Note the files inside a document, slide or sheet, which are not read."""
    for kind in ("package", "oleObject", "aFChunk"):
        for name in parts.all_of_type(kind):
            notes.leave_out("embedded file", name, page)


def read_pictures(
    archive: Archive, parts: Relationships, options: ReadOptions, notes: Notes, page: int | None = None
) -> list[str]:
    """Return the text in the pictures of a document or slide, if the options ask for it."""
    names = list(dict.fromkeys(parts.all_of_type("image")))
    if options.ocr_images != "all" or not options.ocr:
        notes.leave_out("picture", "picture", page, len(names))
        return []
    from PIL import Image, UnidentifiedImageError  # noqa: PLC0415

    from bedstone.ingest.ocr import read_picture  # noqa: PLC0415

    found = []
    for number, name in enumerate(names):
        try:
            with Image.open(BytesIO(archive.optional(name) or b"")) as picture:
                found.append(read_picture(picture, options, notes, page))
        except (Image.DecompressionBombError, UnidentifiedImageError, OSError, SyntaxError, ValueError):
            notes.warn(f"Picture {name} cannot be read")
            notes.leave_out("picture", name, page)
        except ExtractionError as error:
            notes.warn(f"OCR of pictures failed: {error.message}")
            notes.leave_out("picture", "picture", page, len(names) - number)
            break
    return [result.text for result in found if result is not None]
