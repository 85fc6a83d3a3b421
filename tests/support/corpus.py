# ruff: noqa: E501 - files in one line are easier to compare
"""Files of some 200 pages, slides and sheets with a known text: invoices, laws, minutes, questions, slides, sheets.

    for file in corpus():
        path = file.write(folder)
        for number, page in enumerate(file.pages, start=1):
            page.lines      # must be in the text, in this order
            page.repeated   # running headers, footers and page numbers: in the text, or reported as left out

Compare with `plain`, which removes white space and the marks of Markdown. Cells of a row are separated by " | ".
"""

import io
import re
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from email.message import EmailMessage
from html import escape
from pathlib import Path

MARKS = re.compile(r"[\s|*_`#>\\\[\]-]+")
RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
P = 'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
R = f'xmlns:r="{RELATION}"'
SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
PLACES = ("north quay", "south quay", "dry dock", "coal pier", "fish market", "customs house", "grain silo")
GOODS = ("rope", "anchors", "lanterns", "buoys", "charts", "winches", "tarpaulins", "flares", "pumps")
STAFF = ("Ada Marsh", "Ben Oduya", "Carla Voss", "Dmitri Lund", "Efua Mensah", "Farid Nasser")
PAGE_WIDTH, PAGE_HEIGHT = 595, 842
LEFT, HEADER_Y, TOP_Y, FOOT_Y, FOOTER_Y = 60, 812, 790, 44, 24
LINE_HEIGHT = 16


@dataclass(frozen=True)
class CorpusPage:
    """A page, slide or sheet: what must be in its text, and what repeats on the others."""

    lines: tuple[str, ...]
    repeated: tuple[str, ...] = ()
    name: str | None = None  # of a sheet


@dataclass(frozen=True)
class CorpusFile:
    """A file and its pages; without `has_pages` readers report one page without a number."""

    name: str
    content: bytes
    pages: tuple[CorpusPage, ...]
    has_pages: bool = True

    def __str__(self) -> str:
        return self.name

    def write(self, folder: Path) -> Path:
        """Write the file, and return its path."""
        path = folder / self.name
        path.write_bytes(self.content)
        return path


@dataclass(frozen=True)
class Text:
    """A line on a page of a PDF, at a distance from the lower left corner."""

    text: str
    x: float
    y: float
    size: float = 10
    bold: bool = False


def plain(text: str) -> str:
    """Return text without white space and marks of Markdown, to compare."""
    return MARKS.sub("", text).lower()


def corpus() -> list[CorpusFile]:
    """Return the files, always the same."""
    makers: tuple[Callable[[], CorpusFile], ...] = (
        *(_invoices, _monthly_invoices, _law, _minutes, _questions, _slides, _sheets),
        *(_word_minutes, _web_page, _open_text, _rich_text, _message),
    )
    return [make() for make in makers]


# ---- PDF


def pdf_of(pages: Sequence[Sequence[Text]]) -> bytes:
    """Return a PDF of these lines, in the Latin alphabet."""
    return pdf_file(pdf_objects(pages))


def pdf_objects(pages: Sequence[Sequence[Text]]) -> list[str]:
    """Return the objects of a PDF: its catalog, its list of pages, and two of each page, the second one the page."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", ""]
    fonts = " ".join(
        f"/{name} << /Type /Font /Subtype /Type1 /BaseFont /{font} /Encoding /WinAnsiEncoding >>"
        for name, font in (("F", "Helvetica"), ("B", "Helvetica-Bold"))
    )
    numbers = []
    for page in pages:
        drawing = "\n".join(_draw(item) for item in page)
        objects.append(f"<< /Length {len(drawing.encode('cp1252'))} >>\nstream\n{drawing}\nendstream")
        box = f"/MediaBox [0 0 {PAGE_WIDTH} {PAGE_HEIGHT}] /Resources << /Font << {fonts} >> >>"
        objects.append(f"<< /Type /Page /Parent 2 0 R {box} /Contents {len(objects)} 0 R >>")
        numbers.append(len(objects))
    objects[1] = f"<< /Type /Pages /Count {len(numbers)} /Kids [{' '.join(f'{n} 0 R' for n in numbers)}] >>"
    return objects


def pdf_file(objects: Sequence[str]) -> bytes:
    """Return a PDF of these objects; the first one is its catalog."""
    data, places = b"%PDF-1.4\n", []
    for number, item in enumerate(objects, start=1):
        places.append(len(data))
        data += f"{number} 0 obj\n{item}\nendobj\n".encode("cp1252")
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(objects) + 1
    end = f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{len(data)}"
    return data + f"{end}\n%%EOF".encode()


def _draw(item: Text) -> str:
    text = re.sub(r"([\\()])", r"\\\1", item.text)
    return f"BT /{'B' if item.bold else 'F'} {item.size} Tf {item.x} {item.y} Td ({text}) Tj ET"


def pdf_page(first: str, body: Iterable[str], last: str = "", *, header: str = "", footer: str = "") -> list[Text]:
    """Return a page: header and footer at the edges, the first and last line of its text close to them."""
    lines = [Text(header, LEFT, HEADER_Y, 8)] if header else []
    lines.append(Text(first, LEFT, TOP_Y))
    y = TOP_Y - 2 * LINE_HEIGHT
    for row in body:
        lines += [Text(cell, LEFT + 260 * column, y) for column, cell in enumerate(row.split(" | "))]
        y -= LINE_HEIGHT
    if last:
        lines.append(Text(last, LEFT, FOOT_Y))
    if footer:
        lines.append(Text(footer, PAGE_WIDTH / 2 - 20, FOOTER_Y, 8))
    return lines


def _pdf_file(name: str, pages: Sequence[tuple[CorpusPage, list[Text]]]) -> CorpusFile:
    return CorpusFile(name, pdf_of([texts for _, texts in pages]), tuple(page for page, _ in pages))


def _full_page(first: str, body: list[str], last: str, header: str, footer: str) -> tuple[CorpusPage, list[Text]]:
    texts = pdf_page(first, body, last, header=header, footer=footer)
    repeated = tuple(text for text in (header, footer) if text)
    return CorpusPage(tuple(text for text in (first, *body, last) if text), repeated), texts


def _invoices() -> CorpusFile:
    """Invoices of different customers: number at the top, total at the foot of each page."""
    pages = []
    for number in range(24):
        goods = [GOODS[(number + step) % len(GOODS)] for step in range(4)]
        body = [f"Delivered to the {PLACES[number % 7]} by {STAFF[number % 6]}, order {5200 + number}."]
        body += [f"{step + 2 + number} {item} | {17 * (number + 1) + step} EUR" for step, item in enumerate(goods)]
        body.append(f"Please pay within {10 + number} days.")
        total = f"Total due: {113 + 7 * number} EUR"
        footer = f"Page {number + 1} of 24"
        pages.append(_full_page(f"Invoice 2026-{1037 + number}", body, total, "Harbour Supplies Ltd", footer))
    return _pdf_file("invoices.pdf", pages)


def _monthly_invoices() -> CorpusFile:
    """Eight invoices of one subscription: every total is the same, and still belongs to its invoice."""
    pages = []
    for number in range(8):
        body = [f"Mooring of the vessel at the {PLACES[number % 7]} in month {number + 1}.", "Thank you."]
        first = f"Invoice 2026-{1037 + number}"
        pages.append(_full_page(first, body, "Total due: 113 EUR", "Mooring service", str(number + 1)))
    return _pdf_file("monthly.pdf", pages)


def _law() -> CorpusFile:
    """A law with an article on each page, longer than the sample that styles are learned from."""
    pages = []
    for number in range(1, 67):
        place, goods = PLACES[number % 7], GOODS[number % 9]
        body = [
            f"({part}) A vessel that carries {goods} to the {place} must give notice {number + part} hours before."
            for part in (1, 2, 3)
        ]
        last = f"Notices under article {number} are kept for {number + 1} years."
        pages.append(_full_page(f"Article {number}", body, last, "Harbour Act", f"- {number} -"))
    return _pdf_file("law.pdf", pages)


def _minutes() -> CorpusFile:
    """Minutes of weekly meetings: the date at the top, who keeps them at the foot."""
    pages = []
    for week in range(1, 29):
        date = f"2026-{1 + week // 4:02}-{7 * (week % 4) + 1:02}"
        body = [
            f"Present: {STAFF[week % 6]}, {STAFF[(week + 1) % 6]} and {week} guests.",
            f"The board agreed to repair the {PLACES[week % 7]} for {1000 + 35 * week} EUR.",
            f"Motion {week} was carried by {week + 4} votes.",
        ]
        last = f"Next meeting in room {100 + week}, minutes by {STAFF[(week + 3) % 6]}."
        pages.append(_full_page(f"Meeting of {date}", body, last, "Harbour board", f"{week + 2}/30"))
    return _pdf_file("minutes.pdf", pages)


def _questions() -> CorpusFile:
    """A list of questions, one on each page; the number of the page is that of the question."""
    pages = []
    for number in range(1, 41):
        body = [
            f"How many {GOODS[number % 9]} does the {PLACES[number % 7]} need in a year?",
            f"Answer: it needs {37 * number + 5}, as {STAFF[number % 6]} has counted.",
        ]
        pages.append(_full_page(f"Question {number}", body, f"Points: {number % 5 + 1}", "", str(number)))
    return _pdf_file("questions.pdf", pages)


# ---- Office


def zipped(members: dict[str, str]) -> bytes:
    """Return a ZIP archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def relations(*targets: tuple[str, str]) -> str:
    """Return the relationships of a member, with the ids r1, r2 and so on."""
    rows = "".join(
        f'<Relationship Id="r{number}" Type="{RELATION}/{kind}" Target="{target}"/>'
        for number, (kind, target) in enumerate(targets, start=1)
    )
    return f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{rows}</Relationships>'


def _slides() -> CorpusFile:
    """Slides with a footer, a date and a number in placeholders, and a company name on the master."""
    pages, members = [], {}
    for number in range(1, 25):
        title = f"Project {number}: {PLACES[number % 7]}"
        lines = (f"Budget of {410 + 9 * number} EUR for {GOODS[number % 9]}.", f"Owner: {STAFF[number % 6]}, {number}.")
        shapes = [("title", title), ("", "\n".join(lines)), ("ftr", "Harbour plan"), ("sldNum", str(number))]
        shapes.append(("dt", "2026-11-05"))
        members[f"ppt/slides/slide{number}.xml"] = f"<p:sld {P} {A}>{_shape_tree(shapes)}</p:sld>"
        members[f"ppt/slides/_rels/slide{number}.xml.rels"] = relations(("slideLayout", "../slideLayouts/l.xml"))
        repeated = ("Harbour plan", str(number), "2026-11-05", "Port authority")
        pages.append(CorpusPage((title, *lines), repeated))
    ids = "".join(f'<p:sldId r:id="r{number}"/>' for number in range(1, 25))
    slides = [("slide", f"slides/slide{number}.xml") for number in range(1, 25)]
    members |= {
        "_rels/.rels": relations(("officeDocument", "ppt/presentation.xml")),
        "ppt/presentation.xml": f"<p:presentation {P} {R}><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>",
        "ppt/_rels/presentation.xml.rels": relations(*slides),
        "ppt/slideLayouts/l.xml": f"<p:sldLayout {P} {A}>{_shape_tree([('title', 'Click to edit')])}</p:sldLayout>",
        "ppt/slideLayouts/_rels/l.xml.rels": relations(("slideMaster", "../slideMasters/m.xml")),
        "ppt/slideMasters/m.xml": f"<p:sldMaster {P} {A}>{_shape_tree([('', 'Port authority')])}</p:sldMaster>",
    }
    return CorpusFile("slides.pptx", zipped(members), tuple(pages))


def _shape_tree(shapes: Iterable[tuple[str, str]]) -> str:
    written = ""
    for kind, text in shapes:
        mark = f'<p:ph type="{kind}"/>' if kind else ""
        paragraphs = "".join(f"<a:p><a:r><a:t>{escape(line)}</a:t></a:r></a:p>" for line in text.splitlines())
        written += f"<p:sp><p:nvSpPr><p:nvPr>{mark}</p:nvPr></p:nvSpPr><p:txBody>{paragraphs}</p:txBody></p:sp>"
    return f"<p:cSld><p:spTree>{written}</p:spTree></p:cSld>"


def _sheets() -> CorpusFile:
    """A workbook with a hidden sheet, comments on cells, and a header for printing."""
    names = ("Budget", "Staff", "Stock", "Berths", "Dues", "Repairs", "Fuel", "Tides")
    pages, members, listed = [], {}, ""
    for number, name in enumerate(names, start=1):
        rows = [f"{name} item | Amount | Keeper"]
        rows += [f"{GOODS[row]} {number}{row} | {91 * number + row} | {STAFF[row % 6]}" for row in range(8)]
        note = f"Checked for {name.lower()} in week {number}."
        head = "<headerFooter><oddHeader>&amp;LPort accounts&amp;R&amp;P</oddHeader></headerFooter>"
        members[f"xl/worksheets/sheet{number}.xml"] = (
            f'<worksheet xmlns="{SHEET}"><sheetData>{_sheet_rows(rows)}</sheetData>{head}</worksheet>'
        )
        members[f"xl/worksheets/_rels/sheet{number}.xml.rels"] = relations(("comments", f"../comments{number}.xml"))
        comment = f'<comment ref="B2"><text><r><t>{note}</t></r></text></comment>'
        members[f"xl/comments{number}.xml"] = (
            f'<comments xmlns="{SHEET}"><commentList>{comment}</commentList></comments>'
        )
        hidden = ' state="hidden"' if name == "Dues" else ""
        listed += f'<sheet name="{name}" sheetId="{number}"{hidden} r:id="r{number}"/>'
        pages.append(CorpusPage((name, *rows, note), ("Port accounts",), name))
    sheets = [("worksheet", f"worksheets/sheet{number}.xml") for number in range(1, len(names) + 1)]
    members |= {
        "_rels/.rels": relations(("officeDocument", "xl/workbook.xml")),
        "xl/workbook.xml": f'<workbook xmlns="{SHEET}" {R}><sheets>{listed}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": relations(*sheets),
    }
    return CorpusFile("sheets.xlsx", zipped(members), tuple(pages))


def _sheet_rows(rows: Sequence[str]) -> str:
    written = ""
    for y, row in enumerate(rows, start=1):
        cells = "".join(
            f'<c r="{column}{y}"><v>{text}</v></c>'
            if text.isdigit()
            else f'<c r="{column}{y}" t="inlineStr"><is><t>{text}</t></is></c>'
            for column, text in zip("ABC", row.split(" | "), strict=True)
        )
        written += f'<row r="{y}">{cells}</row>'
    return written


def _word_minutes() -> CorpusFile:
    """A Word document with headings, a header, and a footer with an address and the number of the page."""
    lines = []
    for week in range(1, 21):
        lines.append(f"Meeting of 2026-{1 + week // 4:02}-{7 * (week % 4) + 2:02}")
        lines.append(f"{STAFF[week % 6]} reported {week + 11} repairs at the {PLACES[week % 7]}.")
        lines.append(f"Total due: {113 + week} EUR")
    body = "".join(f"<w:p><w:r><w:t>{line}</w:t></w:r></w:p>" for line in lines)
    header = "<w:p><w:r><w:t>Harbour board minutes</w:t></w:r></w:p>"
    footer = "<w:p><w:r><w:t>Quay Street 7, Port Ellen</w:t></w:r></w:p>"
    number = "<w:p><w:r><w:instrText>PAGE</w:instrText></w:r><w:r><w:t>Page 1 of 3</w:t></w:r></w:p>"
    members = {
        "_rels/.rels": relations(("officeDocument", "word/document.xml")),
        "word/_rels/document.xml.rels": relations(("header", "header1.xml"), ("footer", "footer1.xml")),
        "word/document.xml": f"<w:document {W}><w:body>{body}</w:body></w:document>",
        "word/header1.xml": f"<w:hdr {W}>{header}</w:hdr>",
        "word/footer1.xml": f"<w:ftr {W}>{footer}{number}</w:ftr>",
    }
    page = CorpusPage((*lines, "Harbour board minutes", "Quay Street 7, Port Ellen"), ("Page 1 of 3",))
    return CorpusFile("minutes.docx", zipped(members), (page,), has_pages=False)


# ---- other formats


def _web_page() -> CorpusFile:
    """A page with menus, tables, a drawing, and hidden parts."""
    lines, hidden = ["Home", "Tides and berths", "Harbour rates", "Related: pilotage"], ["Old rate: 12 EUR"]
    rows = [f"Berth {number} | {13 * number} EUR a day" for number in range(1, 25)]
    cells = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row.split(' | '))}</tr>" for row in rows)
    hidden += ["Please turn on scripts.", "Template of a row"]
    markup = (
        "<html><head><title>Harbour rates</title><script>var hidden = 'no text'</script></head><body>"
        "<header><nav><ul>Menu<li>Home</li> <li>Tides and berths</li></ul></nav></header>"
        f"<main><h1>Harbour rates</h1><table>Rates of 2026<tr><form><td>Since 2026-01-14</td></form></tr>{cells}</table>"
        f"<p hidden>{hidden[0]}</p><noscript>{hidden[1]}</noscript><template>{hidden[2]}</template>"
        "<svg><text>Quay plan 3</text></svg><table><tr><td>Fees</td><tr><table><td>Pilot: 113 EUR</td></table></table></main>"
        "<aside>Related: pilotage</aside><footer>Call 0221-1037 for a berth</footer></body></html>"
    )
    lines += [
        "Menu",
        "Rates of 2026",
        "Since 2026-01-14",
        *rows,
        "Quay plan 3",
        "Fees",
        "Pilot: 113 EUR",
        "Call 0221-1037 for a berth",
    ]
    return CorpusFile("rates.html", markup.encode(), (CorpusPage(tuple(lines), tuple(hidden)),), has_pages=False)


def _open_text() -> CorpusFile:
    """An OpenDocument text whose header and footer are in its styles."""
    names = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for name in ("office", "text", "table", "style", "drawing")
    )
    lines = [f"Question {number}: what does berth {number} cost?" for number in range(1, 21)]
    boxed = "<text:h>Annex<drawing:frame><drawing:text-box><text:p>Boxed note 7</text:p></drawing:text-box></drawing:frame></text:h>"
    body = "".join(f"<text:p>{line}</text:p>" for line in lines) + boxed
    edges = "<style:header><text:p>Open harbour</text:p></style:header><style:footer><text:p>Tariff 2026</text:p></style:footer>"
    content = zipped(
        {
            "mimetype": "application/vnd.oasis.opendocument.text",
            "content.xml": f"<office:document-content {names}><office:body><office:text>{body}</office:text></office:body></office:document-content>",
            "styles.xml": f"<office:document-styles {names}><office:master-styles><style:master-page>{edges}</style:master-page></office:master-styles></office:document-styles>",
        }
    )
    page = CorpusPage((*lines, "Annex", "Boxed note 7", "Open harbour", "Tariff 2026"))
    return CorpusFile("tariff.odt", content, (page,), has_pages=False)


def _rich_text() -> CorpusFile:
    """An RTF letter with a header, a footer, a text box and a comment."""
    lines = [f"Article {number}: berth {number + 3} is closed." for number in range(1, 11)]
    edges = r"{\header Port letter\par}{\footer Reply to box 1037\par}"
    box = r"{\shp{\*\shpinst{\sp{\sn x}{\sv 1}}{\shptxt Boxed total 113 EUR\par}}}{\*\annotation Ask Ada}"
    body = "".join(line + r"\par " for line in lines)
    text = r"{\rtf1\ansi" + edges + body + box + "}"
    page = CorpusPage((*lines, "Port letter", "Reply to box 1037", "Boxed total 113 EUR", "Ask Ada"))
    return CorpusFile("letter.rtf", text.encode(), (page,), has_pages=False)


def _message() -> CorpusFile:
    """A message with a quoted part, a second text and an attachment."""
    mail = EmailMessage()
    mail["Subject"], mail["From"], mail["To"] = "Meeting of 2026-01-14", "ada@example.com", "ben@example.com"
    mail.set_content("The total is 113 EUR.\n> What is the total of invoice 2026-1037?\n")
    mail.add_alternative("<p>The total is 113 EUR.</p><p>Sent by the port office.</p>", subtype="html")
    mail.make_mixed()
    mail.add_attachment("Second part of 2026-11-05.", disposition="inline")
    mail.add_attachment(b"x", maintype="application", subtype="pdf", filename="plan.pdf")
    lines = ("Meeting of 2026-01-14", "The total is 113 EUR.", "What is the total of invoice 2026-1037?")
    page = CorpusPage((*lines, "Second part of 2026-11-05."), ("Sent by the port office.", "plan.pdf"))
    return CorpusFile("message.eml", bytes(mail), (page,), has_pages=False)


SHADING = (
    "<< /ShadingType 2 /ColorSpace /DeviceGray /Coords [0 0 600 800] /Extend [true true] "
    "/Function << /FunctionType 2 /Domain [0 1] /C0 [0] /C1 [1] /N 1 >> >>"
)


def slow_forms(first: int) -> list[str]:
    """Return forms that draw each other, numbered from `first`: 20,000 shadings take minutes, and little memory."""
    forms = []
    for level in range(5):
        drawing = "/X Do " * 12 if level < 4 else "/S sh"
        inner = f"/XObject << /X {first + level + 1} 0 R >>" if level < 4 else f"/Shading << /S {SHADING} >>"
        resources = f"/BBox [0 0 600 800] /Resources << {inner} >>"
        head = f"<< /Type /XObject /Subtype /Form {resources} /Length {len(drawing)} >>"
        forms.append(f"{head}\nstream\n{drawing}\nendstream")
    return forms
