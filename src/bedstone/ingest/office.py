"""What the parts of an Office file have in common: properties and relationships."""

from dataclasses import dataclass
from io import BytesIO
from posixpath import dirname, join, normpath

from bedstone.ingest.archives import Archive
from bedstone.ingest.extraction import Notes, ReadOptions, Unreadable

PROPERTIES = {
    "title": "{http://purl.org/dc/elements/1.1/}title",
    "author": "{http://purl.org/dc/elements/1.1/}creator",
    "subject": "{http://purl.org/dc/elements/1.1/}subject",
    "created": "{http://purl.org/dc/terms/}created",
    "modified": "{http://purl.org/dc/terms/}modified",
}


def learn_properties(archive: Archive, notes: Notes) -> None:
    """Title, author and dates."""
    root = archive.optional_xml("docProps/core.xml", notes)
    if root is not None:
        for name, tag in PROPERTIES.items():
            notes.learn(name, root.findtext(tag))


@dataclass(frozen=True)
class Relationships:
    """Parts a part refers to: by id, and by kind."""

    by_id: dict[str, str]
    kinds: dict[str, list[str]]

    def of_type(self, kind: str) -> str | None:
        """The first part of a kind."""
        return next(iter(self.kinds.get(kind, [])), None)

    def all_of_type(self, kind: str) -> list[str]:
        """Every part of a kind."""
        return self.kinds.get(kind, [])


def relationships(archive: Archive, part: str, notes: Notes) -> Relationships:
    """What a part refers to; "" is the whole file."""
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


def texts_in_pictures(archive: Archive, parts: Relationships, options: ReadOptions, notes: Notes) -> list[str]:
    """What the pictures of a document or slide say, if that is asked for."""
    if options.ocr_images != "all" or not options.ocr:
        return []
    from PIL import Image, UnidentifiedImageError  # noqa: PLC0415

    from bedstone.ingest.ocr import picture_text  # noqa: PLC0415

    found = []
    for name in dict.fromkeys(parts.all_of_type("image")):
        try:
            with Image.open(BytesIO(archive.optional(name) or b"")) as picture:
                found.append(picture_text(picture, options))
        except (Image.DecompressionBombError, UnidentifiedImageError, OSError, SyntaxError, ValueError):
            notes.warn(f"The picture {name} could not be read")
        except Unreadable as error:
            notes.warn(f"Pictures were not recognised: {error.message}")
            break
    return [text for text in found if text]
