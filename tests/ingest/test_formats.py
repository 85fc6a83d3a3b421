# ruff: noqa: E501 - files in one line are easier to compare
"""One table of small files for every format, with the Markdown that reading them gives."""

import io
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from email.message import EmailMessage
from pathlib import Path

import pytest
from PIL import Image

from bedstone.ingest.detection import detect, find_format, format_of, is_image, supported_formats
from bedstone.ingest.formats import FORMATS
from bedstone.ingest.reader import read_whole
from bedstone.services.knowledge.errors import unsupported_format
from ingest.test_reader import (
    A,
    P,
    R,
    W,
    docx,
    epub,
    message,
    odt,
    paragraph,
    pdf,
    picture,
    pptx,
    relations,
    xlsx,
    zipped,
)

HEAVY = ("lxml", "PIL", "pyromark", "pypdfium2", "numpy", "python_calamine", "tesserocr", "email.policy")


@dataclass(frozen=True)
class File:
    """A file and the Markdown of its pages."""

    name: str
    content: Callable[[], bytes]
    pages: tuple[str, ...]
    metadata: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def word_file(body: str, **parts: str) -> bytes:
    main = f"<w:document {W}><w:body>{body}</w:body></w:document>"
    members = {f"word/{name}.xml": f"<w:{name} {W}>{text}</w:{name}>" for name, text in parts.items()}
    return zipped(
        {"_rels/.rels": relations(a="officeDocument=word/document.xml"), "word/document.xml": main, **members}
    )


def word_lists() -> bytes:
    item = (
        '<w:p><w:pPr><w:numPr><w:ilvl w:val="{}"/><w:numId w:val="{}"/></w:numPr></w:pPr><w:r><w:t>{}</w:t></w:r></w:p>'
    )
    body = item.format(0, 1, "Fill the tank") + item.format(1, 1, "Slowly") + item.format(0, 2, "Done")
    body += "<w:p><w:r><w:t>One</w:t><w:br/><w:t>two</w:t><w:tab/><w:t>three</w:t></w:r></w:p>"
    level = '<w:lvl w:ilvl="{}"><w:numFmt w:val="{}"/></w:lvl>'
    numbering = (
        f'<w:abstractNum w:abstractNumId="7">{level.format(0, "decimal")}{level.format(1, "bullet")}</w:abstractNum>'
    )
    numbering += '<w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num>'
    notes = f'<w:footnote w:id="1">{paragraph("See the manual.")}</w:footnote>'
    return word_file(body, numbering=numbering, footnotes=notes)


def deck() -> bytes:
    """A slide with a list, a table with a merged cell, a chart and notes."""
    bullets = '<a:p><a:r><a:t>Pumps</a:t></a:r></a:p><a:p><a:pPr lvl="1"/><a:r><a:t>Small ones</a:t></a:r></a:p>'
    cell = "<a:tc{}><a:txBody><a:p><a:r><a:t>{}</a:t></a:r></a:p></a:txBody></a:tc>"
    rows = (("", "Hull"), ("", "A")), (("", "Hull"), ("", "B"))
    grid = "".join(f"<a:tr>{''.join(cell.format(mark, text) for mark, text in row)}</a:tr>" for row in rows)
    shapes = f"<p:sp><p:nvSpPr><p:nvPr/></p:nvSpPr><p:txBody>{bullets}</p:txBody></p:sp>"
    shapes += f"<p:graphicFrame><a:tbl>{grid}</a:tbl></p:graphicFrame>"
    c = 'xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart"'
    shapes += f'<p:graphicFrame><c:chart {c} {R} r:id="c"/></p:graphicFrame>'
    points = "<c:pt><c:v>{}</c:v></c:pt><c:pt><c:v>{}</c:v></c:pt>"
    series = f"<c:ser><c:tx><c:v>Litres</c:v></c:tx><c:cat>{points.format('May', 'June')}</c:cat><c:val>{points.format(3, 4)}</c:val></c:ser>"
    notes = "<p:sp><p:nvSpPr><p:nvPr/></p:nvSpPr><p:txBody><a:p><a:r><a:t>Speak up.</a:t></a:r></a:p></p:txBody></p:sp>"
    return zipped(
        {
            "_rels/.rels": relations(a="officeDocument=ppt/presentation.xml"),
            "ppt/presentation.xml": f'<p:presentation {P} {R}><p:sldIdLst><p:sldId r:id="a"/></p:sldIdLst></p:presentation>',
            "ppt/_rels/presentation.xml.rels": relations(a="slide=slides/slide1.xml"),
            "ppt/slides/slide1.xml": f"<p:sld {P} {A}><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:sld>",
            "ppt/slides/_rels/slide1.xml.rels": relations(n="notesSlide=../notes/n.xml", c="chart=../charts/c.xml"),
            "ppt/notes/n.xml": f"<p:notes {P} {A}>{notes}</p:notes>",
            "ppt/charts/c.xml": f"<c:chartSpace {c}>{series}</c:chartSpace>",
        }
    )


def sheet_of_values() -> bytes:
    """Numbers, truth values and a date, whose style makes it one."""
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    cells = '<c r="A1"><v>12.50</v></c><c r="B1" t="b"><v>1</v></c><c r="C1" s="1"><v>45292</v></c><c r="D1"><v>1e20</v></c>'
    styles = '<cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs>'
    return zipped(
        {
            "_rels/.rels": relations(a="officeDocument=xl/workbook.xml"),
            "xl/workbook.xml": f'<workbook xmlns="{main}" {R}><sheets><sheet name="Values" sheetId="1" r:id="s"/></sheets></workbook>',
            "xl/_rels/workbook.xml.rels": relations(s="worksheet=worksheets/sheet1.xml", t="styles=styles.xml"),
            "xl/styles.xml": f'<styleSheet xmlns="{main}">{styles}</styleSheet>',
            "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData><row r="1">{cells}</row></sheetData></worksheet>',
        }
    )


def open_sheet() -> bytes:
    names = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "text", "table")
    )
    row = '<table:table-row><table:table-cell office:value-type="string"><text:p>Rope</text:p></table:table-cell></table:table-row>'
    return zipped(
        {
            "mimetype": "application/vnd.oasis.opendocument.spreadsheet",
            "content.xml": f'<office:document-content {names}><office:body><office:spreadsheet><table:table table:name="Deck">{row}</table:table></office:spreadsheet></office:body></office:document-content>',
            "META-INF/manifest.xml": '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"/>',
        }
    )


def html_message() -> bytes:
    mail = EmailMessage()
    mail["Subject"], mail["From"], mail["Cc"] = "Tides", "ada@example.com", "eve@example.com"
    mail.set_content("<p>High <b>water</b> at noon.</p><ul><li>Bring boots</ul>", subtype="html")
    return bytes(mail)


def bitmap(kind: str) -> bytes:
    buffer = io.BytesIO()
    Image.open(io.BytesIO(picture("Harbour master"))).save(buffer, kind)
    return buffer.getvalue()


PAGE = (
    b'<html><head><title>Rates</title><meta charset="utf-8"><script>x</script></head><body><h2>Rates <em>now</em></h2>'
    b"<table><caption>All</caption><tr><th colspan=2>Both</th></tr><tr><td rowspan=2>1</td><td>2|3</td></tr><tr><td>4</td></tr></table>"
    b"<p hidden>secret</p><p style='display: none'>secret</p><ol><li>one<li>two<ul><li>deep</ul></ol><pre>a  b\n c</pre>"
    b"<blockquote><p>quoted</p></blockquote><p>Use <code>x_y</code>, <img alt='a boat'><br>then <a href='/go'>go</a>.</p>"
    b"<table><tr><td><table><tr><td>inner</td></tr></table></td></tr></table></body></html>"
)
DRAWING = (
    b'<svg xmlns="http://www.w3.org/2000/svg"><title>Valve</title><desc>A diagram</desc><style>x</style><g><title>Part</title>'
    b"<text>open <tspan>slowly</tspan></text></g><switch><foreignObject><div>In full</div></foreignObject><text>In f...</text></switch></svg>"
)
RICH = (
    rb"{\rtf1\ansi\ansicpg1252{\fonttbl{\f0 Arial;}}{\info{\title no}}Dear \u8364? Ren\'e9\emdash\par {\*\secret no}"
    rb"A\cell B\cell\row \{braces\} and\~space\line Bye}"
)
TABLE = (
    File(
        "manual.docx",
        docx,
        ("# Manual\n\n## Safety\n\nkept\n\n| Part | Price |\n| --- | --- |\n| Bolt | 3 |\n| Bolt | 4\\|5 |",),
        {"title": "The manual", "author": "Ada"},
    ),
    File(
        "steps.docm",
        word_lists,
        ("1. Fill the tank\n\n   - Slowly\n\n- Done\n\nOne\ntwo three\n\nFootnotes:\n\n- See the manual.",),
    ),
    File("show.pptx", pptx, ("# First shown\n\nopening words", "# Second shown\n\nlast words")),
    File(
        "deck.pptm",
        deck,
        (
            "Pumps\n  - Small ones\n\n| Hull | A |\n| --- | --- |\n| Hull | B |\n\n|  | May | June |\n| --- | --- | --- |\n| Litres | 3 | 4 |\n\nNotes: Speak up.",
        ),
    ),
    File("stock.xlsx", xlsx, ("# Stock\n\n| Name | Count |\n| --- | --- |\n| Nut | 12 |",)),
    File(
        "values.xlsm", sheet_of_values, ("# Values\n\n| 12.5 | TRUE | 2024-01-01 | 1e+20 |\n| --- | --- | --- | --- |",)
    ),
    File("deck.ods", open_sheet, ("# Deck\n\n| Rope |\n| --- |",)),
    File(
        "paper.pdf",
        lambda: pdf("Whales: They sing at night.", "Krill: Small and many."),
        ("# Whales\n\nThey sing at night.", "# Krill\n\nSmall and many."),
    ),
    File("late.pdf", lambda: b"\n" * 200 + pdf("Whales: They sing."), ("# Whales\n\nThey sing.",)),
    File(
        "page.html",
        lambda: PAGE,
        (
            "## Rates now\n\nAll\n\n| Both | Both |\n| --- | --- |\n| 1 | 2\\|3 |\n| 1 | 4 |\n\n1. one\n2. two\n   - deep\n\n```\na  b\n c\n```\n\n> quoted\n\nUse `x_y`, a boat then go.\n\n| inner |\n| --- |",
        ),
        {"title": "Rates"},
    ),
    File("old.htm", lambda: "<p>Grüße</p>".encode("cp1252"), ("Grüße",)),
    File("scan.png", lambda: picture("Harbour master"), ("Harbour master",), {"width": "900", "height": "160"}),
    File("scan.jpeg", lambda: picture("Lighthouse", "JPEG"), ("Lighthouse",), {"width": "900", "height": "160"}),
    File("scan.bmp", lambda: bitmap("BMP"), ("Harbour master",), {"width": "900", "height": "160"}),
    File("scan.gif", lambda: bitmap("GIF"), ("Harbour master",), {"width": "900", "height": "160"}),
    File("scan.tiff", lambda: bitmap("TIFF"), ("Harbour master",), {"width": "900", "height": "160"}),
    File("scan.webp", lambda: bitmap("WEBP"), ("Harbour master",), {"width": "900", "height": "160"}),
    File(
        "drawing.svg",
        lambda: DRAWING,
        ("# Valve\n\nA diagram\n\nPart\n\nopen slowly\n\nIn full",),
        {"title": "Valve"},
    ),
    File("notes.md", lambda: b"---\ntitle: x\n---\n# Notes\r\n\r\nhello\x07", ("# Notes\n\nhello",), {"title": "x"}),
    File("notes.txt", lambda: "Größe".encode("utf-16"), ("Größe",)),
    File(
        "server.log",
        lambda: "Réf. n° 12 : 50 €".encode("cp1252"),
        ("Réf. n° 12 : 50 €",),
        warnings=("Not UTF-8; decoded as cp1252",),
    ),
    File("data.json", lambda: b'{"a": 1}\n', ('```json\n{"a": 1}\n```',)),
    File("data.csv", lambda: b"a;b\n1;2\n", ("| a | b |\n| --- | --- |\n| 1 | 2 |",)),
    File("data.tsv", lambda: b'name\tsize\n"a\nb"\t2,5\n\n', ("| name | size |\n| --- | --- |\n| a b | 2,5 |",)),
    File(
        "mail.eml",
        message,
        (
            "# Grüße aus Köln\n\nFrom: ada@example.com\nTo: bob@example.com\n\nThe bridge is open.\n\n\nAttachments:\n- plan.pdf",
        ),
        {"title": "Grüße aus Köln", "author": "ada@example.com"},
    ),
    File(
        "html.eml",
        html_message,
        ("# Tides\n\nFrom: ada@example.com\nCc: eve@example.com\n\nHigh water at noon.\n\n- Bring boots",),
        {"title": "Tides", "author": "ada@example.com"},
    ),
    File("book.epub", epub, ("# Sooner\n\nwords\n\n# Later",)),
    File("tides.odt", odt, ("## Tides\n\nHigh water\n\n| a | b |\n| --- | --- |\n| a | b |",)),
    File("letter.rtf", lambda: RICH, ("Dear € René—\n\nA | B\n{braces} and\xa0space\nBye",)),
)


@pytest.mark.parametrize("file", TABLE, ids=lambda file: file.name)
def test_every_format_is_read_with_its_structure(file: File, tmp_path: Path) -> None:
    path = tmp_path / file.name
    path.write_bytes(file.content())
    pages, notes = read_whole(path)
    assert tuple(page.markdown for page in pages) == file.pages
    assert notes.metadata == file.metadata
    assert tuple(notes.warnings) == file.warnings


def test_the_table_has_every_format() -> None:
    assert {format_of(file.name) for file in TABLE} == set(FORMATS.builtin)


@pytest.mark.parametrize("file", TABLE, ids=lambda file: file.name)
def test_the_content_tells_the_format_where_it_can(file: File, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(file.content())
    declaration = find_format(format_of(file.name) or "")
    assert declaration
    is_telling = declaration.magic or declaration.is_zip
    is_exception = file.name == "scan.webp"  # known by its suffix only
    assert detect(path) == (declaration.name if is_telling and not is_exception else None)
    assert detect(path, file.name) == declaration.name
    assert detect(path, "wrong.txt") == (declaration.name if is_telling and not is_exception else "txt")


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("plain.docx", b"words", "docx"),
        ("archive.docx", zipped({"a.txt": "x"}), "docx"),
        ("archive.txt", zipped({"a.txt": "x"}), None),
        ("archive.docx", b"PK\x03\x04 cut off", "docx"),
        ("old.xls", b"\xd0\xcf\x11\xe0" + bytes(500), "xlsx"),
        ("old.doc", b"\xd0\xcf\x11\xe0" + bytes(500), None),
        ("old.txt", b"\xd0\xcf\x11\xe0" + bytes(500), None),
        ("BM is a label.txt", b"BM is a label", "txt"),
        ("far.txt", bytes(1020) + b"%PDF-1.4", "txt"),
        ("picture.txt", b"BM" + bytes(8) + b"%PDF-1.4", "png"),
        ("SHOUT.PDF", b"words", "pdf"),
        ("none", b"words", None),
        ("empty.json", b"", "json"),
    ],
)
def test_the_suffix_decides_where_the_content_does_not(
    name: str, content: bytes, expected: str | None, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    assert detect(tmp_path / name) == expected


def test_declarations_are_consistent() -> None:
    formats = [FORMATS.load(name) for name in FORMATS.builtin]
    assert [item.name for item in formats] == list(FORMATS.builtin)
    suffixes = [suffix for item in formats for suffix in item.suffixes]
    assert len(suffixes) == len(set(suffixes))
    assert all(re.fullmatch(r"\.[a-z]+", suffix) for suffix in suffixes)
    assert all(item.suffixes[0] == f".{item.name}" for item in formats)
    assert all(re.fullmatch(r"[a-z]+/[a-z.+-]+[a-z0-9]+", item.media_type) for item in formats)
    assert [item.name for item in formats if item.is_image] == ["jpg", "png", "svg"]
    assert (is_image("png"), is_image("pdf"), is_image("gone")) == (True, False, False)
    assert find_format("gone") is None


def test_an_unsupported_file_names_the_formats_of_the_contract_first() -> None:
    error = unsupported_format(".exe")
    assert str(error) == "Unsupported file format: .exe. Use PDF, DOCX, PPTX, XLSX, HTML, JPG, PNG, or SVG"
    assert error.details == {
        "supported_formats": ["pdf", "docx", "pptx", "xlsx", "html", "jpg", "png", "svg"],
        "additional_formats": ["md", "txt", "csv", "json", "eml", "epub", "rtf", "odt"],
    }
    assert {item.name for item in supported_formats()} >= set(FORMATS.builtin)


def test_detecting_formats_loads_no_reader_library(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf("A: b"))
    program = (
        "import sys; from pathlib import Path; from bedstone.ingest.detection import detect\n"
        f"assert detect(Path({str(tmp_path / 'a.pdf')!r})) == 'pdf'\n"
        f"print([name for name in {(*HEAVY, 'importlib.metadata')!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"
