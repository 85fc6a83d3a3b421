"""Small hostile files: bombs, loops, traps, and damaged or mislabelled files, written with the standard library."""

import io
import struct
import zipfile
import zlib
from collections.abc import Callable
from email.message import EmailMessage
from pathlib import Path

SECRET = "TEXT-FROM-ANOTHER-FILE"
SECRET_NAME = "secret.txt"
WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
SHEET = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
LAUGHS = '<!DOCTYPE x [<!ENTITY a0 "ha">{}]>'.format(
    "".join(f'<!ENTITY a{level} "{f"&a{level - 1};" * 10}">' for level in range(1, 10))
)


def write_hostile_files(folder: Path) -> list[Path]:
    """Write every hostile file, and beside them a text that no reader may return from another file."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / SECRET_NAME).write_text(SECRET)
    for name, make in FILES.items():
        (folder / name).write_bytes(make(folder))
    return sorted(folder / name for name in FILES)


def _zip(members: dict[str, bytes], **sizes: int) -> bytes:
    """Return a zip archive; `sizes` adds members of so many zeros, which compress to almost nothing."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
        for name, size in sizes.items():
            archive.writestr(f"{name}.bin", bytes(size))
    return buffer.getvalue()


def _docx(body: str, head: str = "", **sizes: int) -> bytes:
    document = f"{head}<w:document {WORD}><w:body>{body}</w:body></w:document>"
    return _zip({"[Content_Types].xml": b"<Types/>", "word/document.xml": document.encode()}, **sizes)


def _xlsx(sheet: str) -> bytes:
    workbook = f'<workbook {SHEET}><sheets><sheet name="A" sheetId="1"/></sheets></workbook>'
    members = {"[Content_Types].xml": b"<Types/>", "xl/workbook.xml": workbook.encode()}
    return _zip({**members, "xl/worksheets/sheet1.xml": sheet.encode()})


def _paragraph(text: str) -> str:
    return f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"


def _pdf(*objects: str, trailer: str = "/Root 1 0 R") -> bytes:
    body = "".join(f"{number} 0 obj\n{text}\nendobj\n" for number, text in enumerate(objects, 1))
    return f"%PDF-1.4\n{body}trailer << /Size {len(objects) + 1} {trailer} >>\n%%EOF\n".encode()


def _png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    pixels = zlib.compress(bytes(1 << 16))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def _eml() -> bytes:
    message = EmailMessage()
    message.set_content("innermost")
    for _ in range(60):
        outer = EmailMessage()
        outer["Subject"] = "nested"
        outer.set_content("see below")
        outer.add_attachment(message)
        message = outer
    return bytes(message)


def _external_entity(folder: Path) -> str:
    return f'<!DOCTYPE x [<!ENTITY x SYSTEM "file://{folder / SECRET_NAME}">]>'


def _svg(folder: Path) -> bytes:
    opening = '<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10">'
    return f"{_external_entity(folder)}{opening}<text>&x;</text></svg>".encode()


FILES: dict[str, Callable[[Path], bytes]] = {
    "bomb.docx": lambda _: _docx(_paragraph("tulips"), filler=256 << 20),
    "entities.docx": lambda _: _docx(_paragraph("&a9;"), LAUGHS),
    "outside.docx": lambda folder: _docx(_paragraph("&x;"), _external_entity(folder)),
    "deep.docx": lambda _: _docx("<w:p>" * 5_000 + "</w:p>" * 5_000),
    "truncated.docx": lambda _: _docx(_paragraph("tulips"))[:-40],
    "entities.xlsx": lambda _: _xlsx(f"{LAUGHS}<worksheet {SHEET}>&a9;</worksheet>"),
    "text.xlsx": lambda _: b"a,b\n1,2\n",
    "loop.pdf": lambda _: _pdf("<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Count 9 /Kids [2 0 R 2 0 R] >>"),
    "rootless.pdf": lambda _: _pdf("<< >>", trailer="/Root 9 0 R"),
    "truncated.pdf": lambda _: b"%PDF-1.7\n1 0 obj\n<< /Type /Cat",
    "garbage.pdf": lambda _: b"%PDF-1.4\n" + bytes(range(256)) * 64,
    "gigapixel.png": lambda _: _png(60_000, 60_000),
    "broken.png": lambda _: _png(10, 10)[:40],
    "picture.jpg": lambda _: b"\xff\xd8\xff\xe0" + bytes(64),
    "outside.svg": _svg,
    "deep.html": lambda _: b"<div>" * 100_000 + b"tulips",
    "tags.html": lambda _: b"<p" * 200_000,
    "traversal.epub": lambda _: _zip({"mimetype": b"application/epub+zip", "../../escape.xhtml": b"<p>out</p>"}),
    "nested.eml": lambda _: _eml(),
    "deep.rtf": lambda _: b"{\\rtf1" + b"{" * 200_000 + b"tulips",
    "deep.json": lambda _: b"[" * 20_000 + b"]" * 20_000,
    "line.csv": lambda _: b"a," * 20_000,
    "zip.odt": lambda _: _zip({"mimetype": b"application/vnd.oasis.opendocument.text", "content.xml": b"<a><b></a>"}),
    "empty.pdf": lambda _: b"",
}
