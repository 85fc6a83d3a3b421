"""Files that try to take more than they give: time, memory or disk. Each has about `size` bytes, or claims more."""

import io
import json
import random
import zipfile
import zlib
from collections.abc import Callable, Iterator
from email.message import EmailMessage
from html import escape
from itertools import count

from support.corpus import (
    SHEET,
    A,
    P,
    R,
    Text,
    W,
    pdf_file,
    pdf_objects,
    pdf_of,
    pdf_page,
    relations,
    zipped,
)

Make = Callable[[int], bytes]
RARE = ("tide", "lamp", "rope", "buoy", "quay", "pump", "mast", "keel", "oar", "sail", "dock", "crane", "wharf")


def _words(size: int) -> str:
    """Return words that hardly repeat."""
    return " ".join(_numbered(size))


def _numbered(size: int) -> Iterator[str]:
    length = 0
    for number in count():
        word = f"{RARE[number % 13]}{number * 7919 % 100_003}"
        length += len(word) + 1
        if length > size:
            return
        yield word


def _sentences(size: int) -> str:
    return ". ".join(" ".join(words) for words in zip(*[_numbered(size)] * 8, strict=False)) + "."


def _repeated(text: str, size: int) -> str:
    return text * (size // len(text))


def _counted(text: str, size: int) -> str:
    """Return a text again and again, with the number of the copy in place of N."""
    length = len(text) + 3
    return "".join(text.replace("N", str(number)) for number in range(size // length))


def _nested_headings(size: int) -> str:
    above = "\n\n".join(f"{'#' * level} {_words(300)}" for level in range(1, 6))
    return f"{above}\n\n" + _counted(f"###### N {_words(60)}\n\n{_words(70)} N\n\n", size)


def _long_headings(size: int) -> str:
    return _counted(f"# {_words(3_000)} N\n\n{_words(100)} N\n\n", size)


def _table(head: str, row: str, size: int) -> str:
    rule = "|" + " --- |" * head.count("|")
    return f"{head}\n{rule}\n" + _counted(f"{row}\n", size)


def _docx(body: str) -> bytes:
    return zipped(
        {
            "_rels/.rels": relations(("officeDocument", "word/document.xml")),
            "word/document.xml": f"<w:document {W}><w:body>{body}</w:body></w:document>",
        }
    )


def _paragraph(text: str, style: str = "") -> str:
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{properties}<w:r><w:t>{escape(text)}</w:t></w:r></w:p>"


def _shuffled(size: int) -> bytes:
    """Return a text of the same blocks in ever other order: it packs well, but no chunk repeats another."""
    dice = random.Random(1)
    blocks = [_words(120 + number) for number in range(60)]
    return _docx("".join(_paragraph(" ".join(dice.choices(blocks, k=4))) for _ in range(size // 600)))


def _shared_string(size: int) -> bytes:
    """Return a sheet in which one long text is the value of every cell."""
    rows = "".join(f'<row r="{row}"><c r="A{row}" t="s"><v>0</v></c></row>' for row in range(1, size // 60))
    workbook = zipfile.ZipFile(io.BytesIO(_xlsx(rows)))
    members = {name: workbook.read(name).decode() for name in workbook.namelist()}
    strings = f'<sst xmlns="{SHEET}"><si><t>{_words(20_000)}</t></si></sst>'
    parts = relations(("worksheet", "worksheets/sheet1.xml"), ("sharedStrings", "sharedStrings.xml"))
    return zipped({**members, "xl/sharedStrings.xml": strings, "xl/_rels/workbook.xml.rels": parts})


def _xlsx(rows: str, sheets: int = 1) -> bytes:
    numbers = range(1, sheets + 1)
    listed = "".join(f'<sheet name="S{number}" sheetId="{number}" r:id="r{number}"/>' for number in numbers)
    sheet = f'<worksheet xmlns="{SHEET}"><sheetData>{rows}</sheetData></worksheet>'
    return zipped(
        {
            "_rels/.rels": relations(("officeDocument", "xl/workbook.xml")),
            "xl/workbook.xml": f'<workbook xmlns="{SHEET}" {R}><sheets>{listed}</sheets></workbook>',
            "xl/_rels/workbook.xml.rels": relations(*[("worksheet", f"worksheets/sheet{n}.xml") for n in numbers]),
            **{f"xl/worksheets/sheet{number}.xml": sheet for number in numbers},
        }
    )


def _cell(column: str, row: int, text: str) -> str:
    return f'<c r="{column}{row}" t="inlineStr"><is><t>{text}</t></is></c>'


def _wide_head_sheet(size: int) -> bytes:
    head = f'<row r="1">{_cell("A", 1, _words(20_000))}</row>'
    rows = "".join(f'<row r="{row}"><c r="A{row}"><v>{row}</v></c></row>' for row in range(2, size // 100))
    return _xlsx(head + rows)


def _diagonal_sheet(size: int) -> bytes:
    """Return a sheet whose only cells are in its diagonal: a table of it is almost empty."""
    columns = min(700, size // 100)
    names = [_column(number) for number in range(1, columns + 1)]
    return _xlsx("".join(f'<row r="{at}">{_cell(name, at, f"x{at}")}</row>' for at, name in enumerate(names, start=1)))


def _column(number: int) -> str:
    name = ""
    while number:
        number, rest = divmod(number - 1, 26)
        name = chr(65 + rest) + name
    return name


def _pptx(title: str, slides: int) -> bytes:
    shape = (
        '<p:sp><p:nvSpPr><p:nvPr><p:ph type="title"/></p:nvPr></p:nvSpPr>'
        f"<p:txBody><a:p><a:r><a:t>{title}</a:t></a:r></a:p></p:txBody></p:sp>"
    )
    slide = f"<p:sld {P} {A}><p:cSld><p:spTree>{shape}</p:spTree></p:cSld></p:sld>"
    numbers = range(1, slides + 1)
    ids = "".join(f'<p:sldId r:id="r{number}"/>' for number in numbers)
    return zipped(
        {
            "_rels/.rels": relations(("officeDocument", "ppt/presentation.xml")),
            "ppt/presentation.xml": f"<p:presentation {P} {R}><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>",
            "ppt/_rels/presentation.xml.rels": relations(*[("slide", f"slides/slide{n}.xml") for n in numbers]),
            **{f"ppt/slides/slide{number}.xml": slide for number in numbers},
        }
    )


def _epub(chapter: str, times: int) -> bytes:
    container = '<container><rootfiles><rootfile full-path="b.opf"/></rootfiles></container>'
    spine = '<itemref idref="c"/>' * times
    opf = (
        '<package xmlns="http://www.idpf.org/2007/opf"><manifest><item id="c" href="c.xhtml"/></manifest>'
        f"<spine>{spine}</spine></package>"
    )
    members = {"mimetype": "application/epub+zip", "META-INF/container.xml": container, "b.opf": opf}
    return zipped({**members, "c.xhtml": f"<html><body>{chapter}</body></html>"})


def _claimed_pages(_: int) -> bytes:
    objects = pdf_objects([pdf_page("First", ["The only page there is."])])
    objects[1] = "<< /Type /Pages /Count 1000000 /Kids [4 0 R] >>"
    return pdf_file(objects)


def _one_page_often(size: int) -> bytes:
    """Return a document whose pages are all the same one."""
    objects = pdf_objects([pdf_page("First", _sentences(4_000).split(". "))])
    times = min(20_000, size // 6)
    objects[1] = f"<< /Type /Pages /Count {times} /Kids [{'4 0 R ' * times}] >>"
    return pdf_file(objects)


def _long_title_pdf(size: int) -> bytes:
    objects = pdf_objects([pdf_page("Tides", _sentences(1_500).split(". ")) for _ in range(8)])
    objects.append(f"<< /Title ({_words(size)}) /Author ({_words(size // 4)}) >>")
    return pdf_file(objects).replace(b"/Root 1 0 R", f"/Root 1 0 R /Info {len(objects)} 0 R".encode())


def _big_title_pages(size: int) -> bytes:
    large = [Text(_words(90), 20, 780 - 30 * line, 22, bold=True) for line in range(8)]
    return pdf_of([[*large, Text(_words(80), 20, 400)] for _ in range(max(2, size // 4_000))])


def _packed_pdf(size: int) -> bytes:
    """Return a document whose page is a stream that unpacks to a thousand times its size."""
    drawing = "".join(f"BT /F 9 Tf 20 {line % 800} Td (same line again) Tj ET\n" for line in range(size // 4))
    packed = zlib.compress(drawing.encode(), 9).decode("latin-1")
    objects = pdf_objects([pdf_page("x", [])])
    objects[2] = f"<< /Length {len(packed)} /Filter /FlateDecode >>\nstream\n{packed}\nendstream"
    data, places = b"%PDF-1.4\n", []
    for number, item in enumerate(objects, start=1):
        places.append(len(data))
        data += f"{number} 0 obj\n".encode() + item.encode("latin-1") + b"\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    trailer = f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(data)}\n%%EOF"
    return data + f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}{trailer}".encode()


def _mail(size: int) -> bytes:
    mail = EmailMessage()
    mail["Subject"] = "long"
    mail.set_content("tide " * 20)
    for number in range(size // 600):
        mail.add_attachment(b"x", maintype="image", subtype="png", filename=f"{number}{'n' * 200}.png")
    return bytes(mail)


def _markdown(make: Callable[[int], str]) -> Make:
    return lambda size: make(size).encode()


BOMBS: dict[str, Make] = {
    "heading.md": _markdown(lambda size: f"# {_words(size // 2)}\n\n{_sentences(size // 2)}"),
    "heading-and-words.md": _markdown(lambda size: f"# {_words(size // 10)}\n\n" + _counted("Short text N.\n\n", size)),
    "headings.md": _markdown(lambda size: _counted("# hN\n\n", size)),
    "headings-and-bodies.md": _markdown(lambda size: _counted("## heading N\n\nbN\n\n", size)),
    "nested-headings.md": _markdown(_nested_headings),
    "long-headings.md": _markdown(_long_headings),
    "setext.md": _markdown(lambda size: _counted(f"{_words(400)} N\n===\n\nbody N\n\n", size)),
    "wide-table.md": _markdown(lambda size: _table(f"| {' | '.join(_numbered(size // 2))} |", "| aN |", size // 2)),
    "head-of-one-chunk.md": _markdown(lambda size: _table(f"| {_words(470)} |", "| aN |", size)),
    "long-rule.md": _markdown(lambda size: f"| a |\n|{'-' * (size // 2)}|\n" + _counted("| bN |\n", size // 2)),
    "long-row.md": _markdown(lambda size: f"| a |\n| --- |\n| {_words(size)} |\n"),
    "lists.md": _markdown(lambda size: "".join(f"{'  ' * depth}- a\n" for depth in range(int(size**0.5)))),
    "quotes.md": _markdown(lambda size: ">" * (size // 10) + " x"),
    "fence.md": _markdown(lambda size: f"```\n{_words(size)}\n```"),
    "blank-fence.md": _markdown(lambda size: f"```\na\n{chr(10) * size}b\n```"),
    "links.md": _markdown(lambda size: _counted("[aN](b) ", size)),
    "brackets.md": _markdown(lambda size: "[" * size),
    "emphasis.md": _markdown(lambda size: _counted("*a _bN ", size)),
    "footnotes.md": _markdown(lambda size: _repeated("[^1]\n\n[^1]: note\n\n", size)),
    "tags.md": _markdown(lambda size: _repeated("<a><!--", size)),
    "entities.md": _markdown(lambda size: _repeated("&amp;&#x41;", size)),
    "blank.txt": _markdown(lambda size: "a" + "\n" * size + "b"),
    "line.txt": _markdown(lambda size: "x" * size),
    "dots.txt": _markdown(lambda size: "." * size + "x"),
    "sentences.txt": _markdown(lambda size: _counted("aN. ", size)),
    "words.txt": _markdown(_sentences),
    "array.json": lambda size: json.dumps(list(range(size // 7))).encode(),
    "wide.csv": lambda size: b"a," * 2_000 + b"\n" + _counted("bN\n", size).encode(),
    "tags.html": lambda size: (b"<p>" * (size // 6)) + b"<h1>" + _words(size // 2).encode(),
    "headings.html": lambda size: f"<h1>{_words(290)}</h1>{_counted('<h2>tide N</h2><p>lamp N</p>', size)}".encode(),
    "table.html": lambda size: (
        f"<table><tr><th colspan=1000>a</th></tr>{_counted('<tr><td>bN', size)}</table>".encode()
    ),
    "heading.docx": lambda size: _docx(_paragraph(_words(290), "Heading1") + _paragraph("tide lamp") * (size // 100)),
    "same.docx": lambda size: _docx(_paragraph(_words(480)) * (size // 50)),
    "shuffled.docx": _shuffled,
    "titles.pptx": lambda size: _pptx(_words(280), min(2_000, size // 500)),
    "wide-head.xlsx": _wide_head_sheet,
    "shared-string.xlsx": _shared_string,
    "diagonal.xlsx": _diagonal_sheet,
    "chapters.epub": lambda size: _epub(f"<p>{_sentences(5_000)}</p>", size // 500),
    "claimed.pdf": _claimed_pages,
    "one-page-often.pdf": _one_page_often,
    "long-title.pdf": _long_title_pdf,
    "large-letters.pdf": _big_title_pages,
    "packed.pdf": _packed_pdf,
    "attachments.eml": _mail,
}

# Those that are refused at a size of a megabyte: their text is many times as large as they are.
REFUSED = frozenset({"same.docx", "shuffled.docx", "shared-string.xlsx", "chapters.epub", "one-page-often.pdf"})
