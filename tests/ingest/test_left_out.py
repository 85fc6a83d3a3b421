# ruff: noqa: E501 - files in one line are easier to compare
"""What heuristics must keep, and what they leave out, with exact counts."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pypdfium2
import pytest
from PIL import Image, ImageDraw, ImageFont

from bedstone.ingest.extraction import Notes, Page, ReadOptions
from bedstone.ingest.formats.html import html_to_markdown
from bedstone.ingest.formats.rst import rst_to_markdown
from bedstone.ingest.left_out import MAX_ITEMS, MAX_TEXT_CHARS, LeftOut
from bedstone.ingest.reader import read_whole
from support.corpus import (
    FOOT_Y,
    HEADER_Y,
    LEFT,
    PAGE_WIDTH,
    TOP_Y,
    A,
    P,
    R,
    Text,
    W,
    corpus,
    pdf_file,
    pdf_objects,
    pdf_of,
    plain,
    relations,
    zipped,
)
from support.processes import bedstone

C = 'xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart"'


def read(folder: Path, name: str, content: bytes | str, **options: Any) -> tuple[list[Page], Notes]:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_whole(path, ReadOptions(**options))


def listed(notes: Notes, kind: str) -> list[tuple[str, int, str]]:
    return [(item.text, item.count, item.pages) for item in notes.left_out.items if item.kind == kind]


def edge_pages(count: int, line: Callable[[int], str], y: float = TOP_Y, **style: Any) -> bytes:
    """Return a PDF with one line at an edge of each page, above or below different text."""
    body = "The {} crew carried crates number {} to the warehouse before the tide turned."
    return pdf_of(
        [
            [
                Text(line(page), LEFT, y, **style),
                *(Text(body.format(page, row), LEFT, 600 - 16 * row) for row in range(4)),
            ]
            for page in range(1, count + 1)
        ]
    )


@pytest.mark.parametrize(
    "line",
    [
        lambda page: f"Invoice 2026-{1036 + page}",
        lambda page: f"Article {page}",
        lambda page: f"Question {page}",
        lambda page: f"§ {page}",
        lambda page: f"{page}. Scope",
        lambda page: f"Meeting of 2026-01-{page:02}",
        lambda page: "Total due: 113 EUR",
        lambda page: "Balance of 1,250.00",
        lambda page: "Valid until 31.12.2026",
        lambda page: str(7 * page % 11 + 100),  # a column of figures
        lambda page: str(10 * page),
        lambda page: "2026" if page == 3 else f"Year {page}",
        lambda page: f"{page % 3}/12",
    ],
    ids=lambda line: line(3),
)
@pytest.mark.parametrize("y", [TOP_Y, FOOT_Y], ids=["top", "foot"])
def test_lines_at_an_edge_that_say_something_are_kept(line: Callable[[int], str], y: float, tmp_path: Path) -> None:
    pages, notes = read(tmp_path, "a.pdf", edge_pages(9, line, y))
    assert [page.number for page in pages if plain(line(page.number or 0)) not in plain(page.markdown)] == []
    assert notes.left_out.total == 0


def test_headings_that_repeat_are_kept(tmp_path: Path) -> None:
    for style in ({"size": 18}, {"bold": True}):
        pages, notes = read(tmp_path, "a.pdf", edge_pages(9, lambda page: "INVOICE", **style))
        assert all("# INVOICE" in page.markdown for page in pages)
        assert notes.left_out.total == 0


def test_titles_of_the_outline_are_kept(tmp_path: Path) -> None:
    pages_with_text = [[Text("Harbour Act", LEFT, TOP_Y), Text(f"Clause {page}", LEFT, 600)] for page in range(1, 10)]
    objects = pdf_objects(pages_with_text)
    page_5 = 2 + 2 * 5
    objects[0] = f"<< /Type /Catalog /Pages 2 0 R /Outlines {len(objects) + 1} 0 R >>"
    objects.append(f"<< /Type /Outlines /First {len(objects) + 2} 0 R /Last {len(objects) + 2} 0 R /Count 1 >>")
    objects.append(f"<< /Title (Harbour Act) /Parent {len(objects)} 0 R /Dest [{page_5} 0 R /Fit] >>")
    pages, notes = read(tmp_path, "a.pdf", pdf_file(objects))
    assert [page.number for page in pages if "Harbour Act" in page.markdown] == [1, 5]
    assert listed(notes, "repeated line") == [("Harbour Act", 7, "2-4, 6-9")]


def test_a_line_at_changing_heights_is_no_running_line(tmp_path: Path) -> None:
    pages = [
        [Text("Yours sincerely", LEFT, 20 + 5 * page), Text(f"Letter number {page} about berths", LEFT, 600)]
        for page in range(9)
    ]
    found, notes = read(tmp_path, "a.pdf", pdf_of(pages))
    assert all("Yours sincerely" in page.markdown for page in found)
    assert notes.left_out.total == 0


def test_short_documents_lose_nothing(tmp_path: Path) -> None:
    pages, notes = read(tmp_path, "a.pdf", edge_pages(3, str, FOOT_Y))
    assert [str(page.number) in page.markdown.split() for page in pages] == [True] * 3
    assert notes.left_out.total == 0


@pytest.mark.parametrize("form", ["{}", "- {} -", "Page {} of 12", "{}/12", "Seite {}", "p. {}"])
def test_page_numbers_that_follow_the_pages_are_counted(form: str, tmp_path: Path) -> None:
    pages, notes = read(tmp_path, "a.pdf", edge_pages(12, lambda page: form.format(page + 2), FOOT_Y))
    ((text, count, numbers),) = listed(notes, "page number")
    assert text == ", ".join(form.format(page + 2) for page in range(1, 13))
    assert (count, numbers) == (12, "1-12")
    assert not any(form.format((page.number or 0) + 2) in page.markdown.splitlines() for page in pages)


def test_roman_and_arabic_numbers_follow_each_other(tmp_path: Path) -> None:
    numbers = ["i", "ii", "iii", "iv", "v", "vi", *(str(number) for number in range(1, 9))]
    _, notes = read(tmp_path, "a.pdf", edge_pages(14, lambda page: numbers[page - 1], FOOT_Y))
    assert listed(notes, "page number") == [(", ".join(numbers), 14, "1-14")]


def test_a_title_and_a_page_number_in_one_line(tmp_path: Path) -> None:
    pages = [
        [
            Text("Harbour Act", LEFT, HEADER_Y),
            Text(str(page), PAGE_WIDTH - 60, HEADER_Y),
            Text(f"Clause about vessel {page} and its crew", LEFT, 600),
        ]
        for page in range(1, 10)
    ]
    found, notes = read(tmp_path, "a.pdf", pdf_of(pages))
    assert ["Harbour Act" in page.markdown for page in found] == [True] + [False] * 8
    assert listed(notes, "repeated line") == [("Harbour Act", 8, "2-9")]
    assert notes.left_out.counts["page number"] == 8


def test_documents_longer_than_the_sample_keep_what_is_rare(tmp_path: Path) -> None:
    header = edge_pages(130, lambda page: "Harbour Act" if page != 98 else "Harbour Act, amended in 2026", HEADER_Y)
    pages, notes = read(tmp_path, "a.pdf", header)
    assert "Harbour Act, amended in 2026" in pages[97].markdown
    assert "Harbour Act" in pages[0].markdown
    assert listed(notes, "repeated line") == [("Harbour Act", 128, "2-97, 99-130")]


def test_form_fields_and_comments_of_a_pdf_are_read(tmp_path: Path) -> None:
    field = "<< /Type /Annot /Subtype /Widget /FT /Tx /T (Berth) /V (Berth 1037) /Rect [60 600 200 620] >>"
    note = "<< /Type /Annot /Subtype /FreeText /Contents (Ask the pilot) /Rect [60 500 200 520] >>"
    page = "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Annots [4 0 R 5 0 R] >>"
    catalog = "<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [4 0 R] >> >>"
    content = pdf_file([catalog, "<< /Type /Pages /Count 1 /Kids [3 0 R] >>", page, field, note])
    (found,), _ = read(tmp_path, "a.pdf", content)
    assert found.markdown == "Form fields:\n\n- Berth: Berth 1037\n\nComments:\n\n- Ask the pilot"


def with_pictures(content: bytes, *boxes: tuple[float, float, float, float], text: str = "") -> bytes:
    """Return a PDF with pictures of a text on its first page: left, bottom, width, height."""
    image = Image.new("RGB", (1200, 400), "white")
    ImageDraw.Draw(image).text((40, 100), text, fill="black", font=ImageFont.load_default(72))
    with pypdfium2.PdfDocument(content) as document:
        page = document[0]
        for left, bottom, width, height in boxes:
            picture = pypdfium2.PdfImage.new(document)
            picture.set_bitmap(pypdfium2.PdfBitmap.from_pil(image))
            picture.set_matrix(pypdfium2.PdfMatrix(width, 0, 0, height, left, bottom))
            page.insert_obj(picture)
        page.gen_content()
        buffer = io.BytesIO()
        document.save(buffer)
    return buffer.getvalue()


def test_text_beside_a_scan_is_kept_with_what_ocr_finds(tmp_path: Path) -> None:
    stamp = pdf_of([[Text("Ref 2026-1037/B", LEFT, 20, 3)]])  # too small to be recognized
    scanned = with_pictures(stamp, (0, 400, 595, 198), text="Received at the harbour office\non the second of May")
    (page,), _ = read(tmp_path, "a.pdf", scanned)
    assert page.method == "ocr"
    assert "Ref 2026-1037/B" in page.markdown
    assert "harbour office" in page.markdown


def test_pictures_that_are_not_read_are_counted(tmp_path: Path) -> None:
    prose = [
        Text(f"Line {row} of a page with enough text of its own to need no OCR.", LEFT, 700 - 16 * row)
        for row in range(8)
    ]
    boxes = [(20 + 110 * (number % 5), 100 + 120 * (number // 5), 105, 115) for number in range(10)]
    _, notes = read(tmp_path, "a.pdf", with_pictures(pdf_of([prose]), *boxes))
    assert listed(notes, "picture") == [("picture", 10, "1")]
    _, notes = read(tmp_path, "b.pdf", with_pictures(pdf_of([prose]), *boxes[:2]), ocr_images="none")
    assert listed(notes, "picture") == [("picture", 2, "1")]


def word_file(body: str, *targets: tuple[str, str], **members: str) -> bytes:
    parts = {f"word/{name}.xml": text for name, text in members.items()}
    document = f"<w:document {W} {R} {C}><w:body>{body}</w:body></w:document>"
    named = {"_rels/.rels": relations(("officeDocument", "word/document.xml")), "word/document.xml": document}
    return zipped({**named, "word/_rels/document.xml.rels": relations(*targets), **parts})


def test_word_files_keep_headers_footers_charts_and_moved_text(tmp_path: Path) -> None:
    run = "<w:r><w:t>{}</w:t></w:r>"
    body = f"<w:p>{run.format('Kept')}<w:del><w:r><w:delText>Old price 12</w:delText></w:r></w:del></w:p>"
    body += f"<w:moveTo><w:p>{run.format('Moved here')}</w:p></w:moveTo>"
    body += '<w:p><w:r><w:drawing><c:chart r:id="r3"/></w:drawing></w:r></w:p>'
    box = f"<w:p><w:r><w:pict><w:txbxContent><w:p>{run.format('Box in the header')}</w:p></w:txbxContent></w:pict></w:r></w:p>"
    content = word_file(
        body,
        ("header", "header1.xml"),
        ("footer", "footer1.xml"),
        ("chart", "chart1.xml"),
        ("aFChunk", "part.html"),
        header1=f"<w:hdr {W}>{box}</w:hdr>",
        footer1=f"<w:ftr {W}><w:p>{run.format('2026')}</w:p></w:ftr>",
        chart1=f"<c:chartSpace {C}><c:ser><c:tx><c:v>Tons</c:v></c:tx><c:xVal><c:v>May</c:v></c:xVal><c:yVal><c:v>7</c:v></c:yVal></c:ser></c:chartSpace>",
    )
    (page,), notes = read(tmp_path, "a.docx", content)
    for text in ("Box in the header", "Kept", "Moved here", "| Tons | 7 |", "2026"):
        assert text in page.markdown
    assert listed(notes, "deleted text") == [("Old price 12", 1, "")]
    assert listed(notes, "embedded file") == [("word/part.html", 1, "")]


def test_slides_keep_diagrams_and_comments(tmp_path: Path) -> None:
    diagram = 'xmlns:d="http://schemas.openxmlformats.org/drawingml/2006/diagram"'
    frame = f'<p:graphicFrame><d:relIds {diagram} r:dm="r1"/></p:graphicFrame>'
    comment = f'<x:cm xmlns:x="http://schemas.microsoft.com/office/powerpoint/2018/8/main" {A}><x:txBody><a:p><a:r><a:t>Ask Ada</a:t></a:r></a:p></x:txBody></x:cm>'
    content = zipped(
        {
            "_rels/.rels": relations(("officeDocument", "ppt/presentation.xml")),
            "ppt/presentation.xml": f'<p:presentation {P} {R}><p:sldIdLst><p:sldId r:id="r1"/><p:sldId r:id="r9"/></p:sldIdLst></p:presentation>',
            "ppt/_rels/presentation.xml.rels": relations(("slide", "slides/s.xml")),
            "ppt/slides/s.xml": f"<p:sld {P} {A} {R}><p:cSld><p:spTree>{frame}</p:spTree></p:cSld></p:sld>",
            "ppt/slides/_rels/s.xml.rels": relations(("diagramData", "../d.xml"), ("comments", "../c.xml")),
            "ppt/d.xml": f"<d:dataModel {diagram} {A}><a:p><a:r><a:t>Load, then sail</a:t></a:r></a:p></d:dataModel>",
            "ppt/c.xml": comment,
        }
    )
    (page,), notes = read(tmp_path, "a.pptx", content)
    assert page.markdown == "- Load, then sail\n\nComments: Ask Ada"
    assert notes.warnings == ["Missing slides: 1"]


def test_sheets_keep_text_boxes(tmp_path: Path) -> None:
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    content = zipped(
        {
            "_rels/.rels": relations(("officeDocument", "xl/workbook.xml")),
            "xl/workbook.xml": f'<workbook xmlns="{main}" {R}><sheets><sheet name="Plan" sheetId="1" r:id="r1"/></sheets></workbook>',
            "xl/_rels/workbook.xml.rels": relations(("worksheet", "worksheets/s.xml")),
            "xl/worksheets/s.xml": f'<worksheet xmlns="{main}"><sheetData><row r="1"><c r="A1"><v>7</v></c></row></sheetData></worksheet>',
            "xl/worksheets/_rels/s.xml.rels": relations(("drawing", "../d.xml")),
            "xl/d.xml": f"<x {A}><a:p><a:r><a:t>Mind the tide</a:t></a:r></a:p></x>",
        }
    )
    (page,), _ = read(tmp_path, "a.xlsx", content)
    assert "Mind the tide" in page.markdown


@pytest.mark.parametrize("name", ["a.html", "a.svg"])
def test_a_text_longer_than_parsers_take_is_read(name: str, tmp_path: Path) -> None:
    markup = f"<p>Start</p><p>{'word ' * 2_100_000}</p><p>End of the log</p>"
    drawing = (
        f"<svg xmlns='http://www.w3.org/2000/svg'><text>{'word ' * 2_100_000}</text><text>End of the log</text></svg>"
    )
    (page,), _ = read(tmp_path, name, markup if name == "a.html" else drawing)
    assert page.markdown.endswith("End of the log")
    assert len(page.markdown) > 10_000_000


def test_documentation_keeps_heads_notes_captions_and_conditions() -> None:
    page = b"<main><nav>Menu</nav><article><header><h1>Tides</h1></header><aside>Mind the ebb.</aside></article></main>"
    assert html_to_markdown(page, contents_only=True)[1] == "# Tides\n\nMind the ebb."
    source = ".. figure:: a.png\n   :alt: x\n\n   The north quay\n\n.. only:: html\n\n   Open at nine.\n"
    assert rst_to_markdown(source).split() == ["The", "north", "quay", "Open", "at", "nine."]


def test_text_between_two_rules_is_no_front_matter(tmp_path: Path) -> None:
    (page,), notes = read(tmp_path, "a.md", "---\nThe harbour is closed\n---\n\nUntil May.\n")
    assert "The harbour is closed" in page.markdown
    assert notes.left_out.total == 0
    (page,), notes = read(tmp_path, "b.md", "---\ntitle: 'Tides'\ntags: [sea]\n---\n\nHigh at noon.\n")
    assert page.markdown == "High at noon."
    assert notes.metadata["title"] == "Tides"
    assert [text for text, _, _ in listed(notes, "front matter")] == ["title: 'Tides'", "tags: [sea]"]


def test_drawings_and_books_report_what_they_leave_out(tmp_path: Path) -> None:
    drawing = '<svg xmlns="http://www.w3.org/2000/svg"><text>Yes</text><text>No</text><text>Yes</text></svg>'
    _, notes = read(tmp_path, "a.svg", drawing)
    assert listed(notes, "repeated line") == [("Yes", 1, "")]
    package = '<package xmlns="http://www.idpf.org/2007/opf"><manifest><item id="a" href="a.xhtml"/><item id="b" href="b.xhtml"/></manifest><spine><itemref idref="a"/><itemref idref="c"/></spine></package>'
    book = zipped(
        {
            "META-INF/container.xml": '<container><rootfile full-path="p.opf"/></container>',
            "p.opf": package,
            "a.xhtml": "<html><body><p>Read me</p><p hidden>Not me</p></body></html>",
            "b.xhtml": "<html><body><p>Aside</p></body></html>",
        }
    )
    _, notes = read(tmp_path, "a.epub", book)
    assert notes.left_out.counts == {"hidden text": 1, "embedded file": 1}
    assert notes.warnings == ["Missing chapter: unknown"]


def test_headers_of_rich_text_sections_are_kept_once(tmp_path: Path) -> None:
    section = r"{\header Port letter\par}Text of section %d.\par\sect "
    content = r"{\rtf1\ansi " + "".join(section % number for number in (1, 2, 3)) + "}"
    (page,), notes = read(tmp_path, "a.rtf", content)
    assert page.markdown.count("Port letter") == 1
    assert all(f"Text of section {number}." in page.markdown for number in (1, 2, 3))
    assert listed(notes, "repeated line") == [("Port letter", 2, "")]


def test_counts_are_exact_where_the_list_is_cut(tmp_path: Path) -> None:
    hidden = "".join(f"<p hidden>{number} {'x' * 500}</p>" for number in range(1000))
    _, notes = read(tmp_path, "a.html", f"<p>Shown</p>{hidden}")
    assert notes.left_out.counts == {"hidden text": 1000}
    assert len(notes.left_out.items) == MAX_ITEMS
    assert max(len(item.text) for item in notes.left_out.items) == MAX_TEXT_CHARS
    left_out = LeftOut()
    for page in range(1, 99, 2):
        left_out.add("repeated line", "Harbour Act", page)
    assert (left_out.total, left_out.items[0].pages[:10], left_out.items[0].pages[-1]) == (49, "1, 3, 5, 7", "…")
    for found in (notes.left_out, left_out):
        written = json.loads(json.dumps(found.to_dict()))
        assert LeftOut.from_dict(written).to_dict() == written


def test_the_command_lists_what_was_left_out(tmp_path: Path) -> None:
    path = next(file for file in corpus() if file.name == "invoices.pdf").write(tmp_path)
    left_out = json.loads(bedstone("knowledge", "extract", path, "--json").stdout)["left_out"]
    assert left_out["total"] == 47
    assert left_out["counts"] == {"page number": 24, "repeated line": 23}
    assert {"kind": "repeated line", "text": "Harbour Supplies Ltd", "count": 23, "pages": "2-24"} in left_out["items"]
    shown = bedstone("knowledge", "extract", path)
    assert "Left out: page number (24), repeated line (23)." in shown.stderr
    assert "Invoice 2026-1060" in shown.stdout
