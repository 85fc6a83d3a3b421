"""Pages of originals as pictures, drawn in the worker process."""

import base64
import io
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageChops, ImageDraw

from bedstone.ingest.extraction import ExtractionError
from bedstone.ingest.locating import Box, locate
from bedstone.ingest.page_words import PageWords
from bedstone.ingest.process import Limits
from bedstone.ingest.render_pool import PoolBusyError, RenderPool
from support.corpus import Text, pdf_file, pdf_objects, pdf_of, slow_forms
from support.hostile import SECRET, write_hostile_files

HOSTILE = Path(__file__).resolve().parents[3] / "shared" / "bench" / "make_hostile.py"
SVG = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" {}>{}</svg>'
BLANK = Text(" ", 100, 100)
SENTENCE = (Text("A disc thinner than 1.8 mm is to be re-", 90, 640, 14), Text("placed, (both) at once.", 90, 620, 14))
OTHERS = (Text("Replacing a brake disc", 90, 700, 22, bold=True), Text("Bed the pads in.", 90, 600, 14))


@pytest.fixture(scope="module")
def pool() -> Iterator[RenderPool]:
    pool = RenderPool()
    yield pool
    pool.close()


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, bytes], Path]:
    def write(name: str, content: bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return write


Write = Callable[[str, bytes], Path]


def ask(pool: RenderPool, work: str, path: Path, **options: Any) -> dict[str, Any]:
    names = {"jpeg": "jpg", "tif": "png", "gif": "png"}
    suffix = path.suffix[1:]
    return pool.ask({"work": work, "path": str(path), "format": names.get(suffix, suffix), "page": 1, **options})


def sizes(pool: RenderPool, path: Path) -> list[tuple[float, float]]:
    runs = ask(pool, "measure", path)["sizes"]
    return [(width, height) for count, width, height in runs for _ in range(count)]


def draw(pool: RenderPool, path: Path, width: int = 640, page: int = 1) -> Image.Image:
    data = base64.b64decode(ask(pool, "render", path, page=page, width=width)["picture"])
    picture = Image.open(io.BytesIO(data))
    assert picture.format == "WEBP"
    return picture.convert("RGB")


def boxes_of(pool: RenderPool, path: Path, passage: str, page: int = 1) -> list[Box]:
    words = PageWords.unpack(ask(pool, "locate", path, page=page)["words"])
    assert words is not None
    return locate(words, [passage])[0]


def reason_of(work: Callable[[], object]) -> str:
    with pytest.raises(ExtractionError) as caught:
        work()
    return caught.value.reason


def altered_pdf(lines: tuple[Text, ...], page: str) -> bytes:
    """Return a PDF of one page with more entries."""
    objects = pdf_objects([lines])
    objects[3] = objects[3].replace("/Type /Page", f"/Type /Page {page}")
    return pdf_file(objects)


class _Listener:
    """A port that counts who connects to it."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.setblocking(False)
        self.port = self._socket.getsockname()[1]

    def stop(self) -> int:
        count = 0
        try:
            while True:
                self._socket.accept()[0].close()
                count += 1
        except BlockingIOError:
            return count
        finally:
            self._socket.close()


# PDF


@pytest.mark.parametrize(
    "page",
    [
        "",
        "/Rotate 90",
        "/Rotate 180",
        "/Rotate 270",
        "/CropBox [60 500 420 760]",
        "/Rotate 90 /CropBox [60 500 420 760]",
        "/UserUnit 2",
    ],
)
def test_the_boxes_of_a_sentence_cover_what_it_draws_and_little_else(pool: RenderPool, write: Write, page: str) -> None:
    whole = write("whole.pdf", altered_pdf((*OTHERS, *SENTENCE), page))
    rest = write("rest.pdf", altered_pdf(OTHERS, page))
    drawn = ImageChops.difference(draw(pool, whole, 1280), draw(pool, rest, 1280)).convert("L")
    ink = drawn.point(lambda level: 255 if level > 96 else 0)
    boxes = boxes_of(pool, whole, "A disc thinner than 1.8 mm is to be replaced, (both) at once.")
    assert len(boxes) == 2
    mask = Image.new("L", ink.size, 0)
    for box in boxes:
        left, right = round(box.x * ink.width), round((box.x + box.w) * ink.width)
        top, bottom = round(box.y * ink.height), round((box.y + box.h) * ink.height)
        ImageDraw.Draw(mask).rectangle((left, top, right, bottom), fill=255)
        assert ink.crop((left, top, right, bottom)).getbbox() is not None
    assert ImageChops.subtract(ink, mask).histogram()[255] <= 0.01 * ink.histogram()[255]
    left, top, right, bottom = ink.getbbox() or (0, 0, 0, 0)
    assert mask.histogram()[255] <= 1.5 * (right - left) * (bottom - top)


def test_rotation_and_crop_box_are_part_of_the_size(pool: RenderPool, write: Write) -> None:
    assert sizes(pool, write("a.pdf", pdf_of([OTHERS]))) == [(595, 842)]
    assert sizes(pool, write("b.pdf", altered_pdf(OTHERS, "/Rotate 90"))) == [(842, 595)]
    cropped = write("c.pdf", altered_pdf(OTHERS, "/Rotate 90 /CropBox [60 500 420 760]"))
    assert sizes(pool, cropped) == [(260, 360)]
    assert draw(pool, cropped).size == (640, 887)


def test_pages_of_any_size_are_drawn_within_bounds(pool: RenderPool, write: Write) -> None:
    def page(box: str) -> Path:
        objects = pdf_objects([OTHERS])
        objects[3] = objects[3].replace("[0 0 595 842]", box)
        return write("page.pdf", pdf_file(objects))

    assert draw(pool, page("[0 0 14400 14400]")).size == (640, 640)
    assert draw(pool, page("[0 0 0.5 0.5]"), 2000).size == (2000, 2000)
    long_page = draw(pool, page("[0 0 100 10000]"), 2000)
    assert long_page.height <= 8_000
    assert long_page.width == 80
    assert draw(pool, page("[0 0 10000 100]")).size == (640, 7)
    assert sizes(pool, page("[0 0 0 0]")) == [(612, 792)]
    assert draw(pool, page("[0 0 0 0]")).width == 640
    assert reason_of(lambda: draw(pool, page("[0 0 1 99999999]"))) == "damaged"
    assert sizes(pool, page("[0 0 1 99999999]")) == [(612, 792)]


def test_a_page_that_does_not_exist_is_named(pool: RenderPool, write: Write) -> None:
    path = write("a.pdf", pdf_of([OTHERS, SENTENCE]))
    assert draw(pool, path, page=2).getbbox()
    for page in (0, 3, 10**9):
        assert reason_of(lambda: draw(pool, path, page=page)) == "page_missing"  # noqa: B023 - called at once


def test_form_fields_are_drawn(pool: RenderPool, write: Write) -> None:
    drawing = "0 0 0 rg 0 0 200 50 re f"
    stream = f"<< /Subtype /Form /BBox [0 0 200 50] /Length {len(drawing)} >>\nstream\n{drawing}\nendstream"
    field = "<< /Subtype /Widget /FT /Tx /T (name) /V (x) /Rect [100 100 300 150] /F 4 /AP << /N 6 0 R >> >>"
    objects = [*pdf_objects([[BLANK]]), field, stream]
    objects[0] = "<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [5 0 R] >> >>"
    objects[3] = objects[3].replace("/Type /Page", "/Type /Page /Annots [5 0 R]")
    assert min(draw(pool, write("form.pdf", pdf_file(objects))).convert("L").tobytes()) < 50


def test_ten_thousand_pages_are_measured_quickly(pool: RenderPool, write: Write) -> None:
    drawing = "BT /F 12 Tf 90 640 Td (Page) Tj ET"
    head = ["<< /Type /Catalog /Pages 2 0 R >>", "", f"<< /Length {len(drawing)} >>\nstream\n{drawing}\nendstream"]
    page = "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 3 0 R >>"
    kids = " ".join(f"{number} 0 R" for number in range(4, 10_004))
    head[1] = f"<< /Type /Pages /Count 10000 /Kids [{kids}] >>"
    path = write("long.pdf", pdf_file([*head, *[page] * 10_000]))
    ask(pool, "measure", write("warm.pdf", pdf_of([OTHERS])))
    began = time.monotonic()
    answer = ask(pool, "measure", path)
    assert time.monotonic() - began < 3
    assert answer == {"sizes": [[10_000, 595, 842]], "notes": []}
    assert draw(pool, path, 120, page=9_999).size == (120, 170)


def test_a_document_that_claims_millions_of_pages_says_what_is_not_shown(pool: RenderPool, write: Write) -> None:
    objects = pdf_objects([OTHERS])
    objects[1] = objects[1].replace("/Count 1", "/Count 1000000")
    answer = ask(pool, "measure", write("claim.pdf", pdf_file(objects)))
    assert sum(count for count, *_ in answer["sizes"]) == 20_000
    assert answer["notes"] == ["Only the first 20,000 pages are shown; 980,000 more are not."]


def test_text_that_is_written_without_spaces_is_split_into_characters(pool: RenderPool, write: Write) -> None:
    words = PageWords.unpack(ask(pool, "locate", write("a.pdf", pdf_of([[Text("x" * 90, 20, 700)]])))["words"])
    assert words is not None
    assert [len(word.text) for word in words.words] == [32, 32, 26]


# Pictures


def arrow() -> Image.Image:
    """Return a picture that is black in its upper left quarter."""
    image = Image.new("RGB", (400, 200), "white")
    ImageDraw.Draw(image).rectangle((0, 0, 199, 99), fill="black")
    return image


def saved(image: Image.Image, kind: str, **options: Any) -> bytes:
    target = io.BytesIO()
    image.save(target, kind, **options)
    return target.getvalue()


@pytest.mark.parametrize(("kind", "suffix"), [("JPEG", "jpeg"), ("PNG", "png"), ("TIFF", "tif")])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_pictures_are_upright_as_the_camera_noted(
    pool: RenderPool, write: Write, kind: str, suffix: str, orientation: int
) -> None:
    undo = {
        2: [Image.Transpose.FLIP_LEFT_RIGHT],
        3: [Image.Transpose.ROTATE_180],
        4: [Image.Transpose.FLIP_TOP_BOTTOM],
        5: [Image.Transpose.TRANSPOSE],
        6: [Image.Transpose.ROTATE_90],
        7: [Image.Transpose.TRANSVERSE],
        8: [Image.Transpose.ROTATE_270],
    }
    stored = arrow()
    for step in undo.get(orientation, []):
        stored = stored.transpose(step)
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = write(f"photo.{suffix}", saved(stored, kind, exif=exif))
    assert sizes(pool, path) == [(400, 200)]
    shown = draw(pool, path)
    assert shown.size == (400, 200)
    assert [sum(shown.getpixel(at)) < 100 for at in ((100, 50), (300, 50), (100, 150), (300, 150))] == [  # type: ignore[arg-type]
        True,
        False,
        False,
        False,
    ]


def test_every_page_of_a_tiff_is_drawn_but_only_the_first_frame_of_a_gif(pool: RenderPool, write: Write) -> None:
    frames = [Image.new("L", (50 * number, 60), 255) for number in (1, 2, 3)]
    fax = write("fax.tif", saved(frames[0], "TIFF", save_all=True, append_images=frames[1:]))
    assert sizes(pool, fax) == [(50, 60), (100, 60), (150, 60)]
    assert draw(pool, fax, page=3).size == (150, 60)
    assert reason_of(lambda: draw(pool, fax, page=4)) == "page_missing"
    moving = [Image.new("L", (50, 60), level) for level in (0, 128, 255)]
    assert len(sizes(pool, write("a.gif", saved(moving[0], "GIF", save_all=True, append_images=moving[1:])))) == 1


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "CMYK", "I;16", "F"])
def test_pictures_of_every_kind_keep_light_and_dark(pool: RenderPool, write: Write, mode: str) -> None:
    if mode == "I;16":
        image = Image.new("I;16", (400, 200), 60_000)
        ImageDraw.Draw(image).rectangle((0, 0, 199, 99), fill=500)
    else:
        image = arrow().convert(mode)
    suffix, kind = ("tif", "TIFF") if mode in ("F", "CMYK", "I;16") else ("png", "PNG")
    shown = draw(pool, write(f"a.{suffix}", saved(image, kind))).convert("L")
    assert shown.getpixel((100, 50)) < 40  # type: ignore[operator]
    assert shown.getpixel((300, 150)) > 215  # type: ignore[operator]


def test_transparent_parts_are_white(pool: RenderPool, write: Write) -> None:
    assert draw(pool, write("a.png", saved(Image.new("RGBA", (40, 40), (0, 0, 0, 0)), "PNG"))).getpixel((9, 9)) == (
        255,
        255,
        255,
    )


def test_a_large_photo_is_scaled_down(pool: RenderPool, write: Write) -> None:
    path = write("large.jpeg", saved(Image.new("RGB", (6_000, 4_000), "grey"), "JPEG"))
    assert draw(pool, path, 1280).size == (1280, 853)


# SVG


def svg(body: str, head: str = 'width="400" height="200"', before: str = "") -> bytes:
    return (before + SVG.format(head, body)).encode()


@pytest.mark.parametrize(
    ("head", "size"),
    [
        ('width="400" height="200"', (400, 200)),
        ('width="1in" height="25.4mm"', (96, 96)),
        ('viewBox="0 0 30 90"', (30, 90)),
        ('width="60" viewBox="0 0 30 90"', (60, 180)),
        ('width="100%" height="100%" viewBox="0,0,30,90"', (30, 90)),
        ("", (300, 150)),
        ('width="0" height="0"', (300, 150)),
        ('width="1e9" height="1e9"', (1e6, 1e6)),
    ],
)
def test_the_size_of_a_drawing_is_what_it_says(
    pool: RenderPool, write: Write, head: str, size: tuple[float, float]
) -> None:
    path = write("a.svg", svg('<rect width="20" height="20"/>', head))
    assert sizes(pool, path) == [size]
    assert draw(pool, path, 120).width == 120


def test_a_drawing_is_drawn_with_its_text(pool: RenderPool, write: Write) -> None:
    drawing = svg(
        '<rect width="200" height="100"/><text x="210" y="150" font-family="Nowhere" font-size="40">Text</text>'
    )
    shown = draw(pool, write("a.svg", drawing)).convert("L")
    assert shown.getpixel((100, 50)) == 0
    fonts = ask(pool, "measure", write("b.svg", drawing))["notes"]
    assert fonts == [] or "fonts" in fonts[0]
    if not fonts:
        assert shown.crop((320, 160, 640, 320)).getextrema()[0] < 128  # type: ignore[operator]


def test_modern_colours_are_those_of_the_light_theme(pool: RenderPool, write: Write) -> None:
    style = "fill: light-dark(rgb(255, 0, 0), var(--dark, #000)); stroke: var(--line, light-dark(#ff0000, #000))"
    drawing = svg(f'<style>rect {{ opacity: var(--a, 1) }}</style><rect width="400" height="200" style="{style}"/>')
    assert draw(pool, write("a.svg", drawing)).getpixel((320, 160))[0] > 200  # type: ignore[index]


def test_a_drawing_reads_no_other_files_and_asks_no_server(pool: RenderPool, write: Write, tmp_path: Path) -> None:
    secret = write("secret.png", saved(Image.new("RGB", (100, 100), "red"), "PNG"))
    inner = base64.b64encode(svg(f'<image href="{secret}" width="100" height="100"/>')).decode()
    listener = _Listener()
    address = f"http://127.0.0.1:{listener.port}/x"
    references = [
        f'<image href="{secret}" width="100" height="100"/>',
        f'<image xlink:href="{secret.as_uri()}" width="100" height="100"/>',
        '<image href="secret.png" width="100" height="100"/>',
        f'<image href=" {secret}" width="100" height="100"/>',
        f'<image href="data:image/svg+xml;base64,{inner}" width="100" height="100"/>',
        f'<image href="{address}" width="100" height="100"/>',
        f'<filter id="f"><feImage href="{secret}"/></filter><rect width="9" height="9" fill="white" filter="url(#f)"/>',
        f'<style>@import url("{address}"); @font-face {{ font-family: a; src: url({address}) }}</style>',
        f'<rect width="50" height="50" style="fill: url({secret}#a) white"/>',
        f'<script href="{address}"/><foreignObject><iframe src="{address}"/></foreignObject>',
        f'<use href="{secret}#a"/>',
    ]
    for number, reference in enumerate(references):
        path = write(f"{number}.svg", svg(reference))
        shown = draw(pool, path).convert("RGB")
        assert all(red - green < 60 for _, (red, green, _) in shown.getcolors(2**20) or []), reference  # type: ignore[misc]
        assert ask(pool, "measure", path)["notes"] == [
            "Scripts, web pages inside the drawing and files that it refers to are not shown."
        ], reference
    assert listener.stop() == 0


def test_a_picture_inside_a_drawing_is_drawn(pool: RenderPool, write: Write) -> None:
    data = base64.b64encode(saved(Image.new("RGB", (10, 10), "blue"), "PNG")).decode()
    path = write("a.svg", svg(f'<image href="data:image/png;base64,{data}" width="400" height="200"/>'))
    assert draw(pool, path).getpixel((320, 100))[2] > 200  # type: ignore[index]
    assert ask(pool, "measure", path)["notes"] == []


def test_what_a_drawing_multiplies_is_bounded(pool: RenderPool, write: Write) -> None:
    levels = "".join(f'<g id="l{n}">{f"""<use href="#l{n - 1}"/>""" * 10}</g>' for n in range(1, 12))
    reuse = write("reuse.svg", svg(f'<defs><rect id="l0" width="1" height="1"/>{levels}</defs><use href="#l11"/>'))
    assert reason_of(lambda: draw(pool, reuse)) == "damaged"
    loop = write("loop.svg", svg('<g id="a"><use href="#b"/></g><g id="b"><use href="#a"/></g><use href="#a"/>'))
    assert reason_of(lambda: draw(pool, loop)) in ("damaged", "worker_crashed")
    entities = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10))
    laughs = f'<!DOCTYPE svg [<!ENTITY a0 "ha">{entities}]>'
    draw(pool, write("laughs.svg", svg('<text y="90">&a9;</text>', before=laughs)))
    assert reason_of(lambda: draw(pool, write("deep.svg", svg("<g>" * 5_000 + "</g>" * 5_000)))) == "too_deep"
    assert reason_of(lambda: draw(pool, write("a.svg", b"<html/>"))) == "damaged"


# Hostile files, limits and the pool


def test_no_hostile_file_gets_more_than_an_error_or_a_picture(tmp_path: Path) -> None:
    pool = RenderPool(Limits(seconds=15))
    files = [path for path in write_hostile_files(tmp_path / "own") if path.suffix in (".pdf", ".png", ".jpg", ".svg")]
    if HOSTILE.is_file():
        subprocess.run([sys.executable, str(HOSTILE), str(tmp_path / "more")], check=True, capture_output=True)
        files += [path for path in (tmp_path / "more").iterdir() if path.suffix in (".pdf", ".png", ".svg")]
    outcomes: dict[str, list[str]] = {}
    for path in sorted(files):
        for work in ("measure", "render", "locate"):
            try:
                answer = json.dumps(ask(pool, work, path, width=640))
                assert SECRET not in answer
                outcomes.setdefault(path.name, []).append("drawn")
            except ExtractionError as error:
                outcomes.setdefault(path.name, []).append(error.reason)
    pool.close()
    reasons = {reason for found in outcomes.values() for reason in found}
    assert reasons <= {"drawn", "damaged", "too_large", "too_deep", "password_required"}
    assert outcomes["gigapixel.png"][:2] == ["too_large", "too_large"]


def slow_pdf() -> bytes:
    """Return a PDF whose only page takes minutes to draw."""
    objects = pdf_objects([[BLANK]])
    first = len(objects) + 1
    objects += slow_forms(first)
    objects[2] = "<< /Length 5 >>\nstream\n/X Do\nendstream"
    objects[3] = objects[3].replace("/Resources <<", f"/Resources << /XObject << /X {first} 0 R >>")
    return pdf_file(objects)


def test_a_page_that_takes_too_long_ends_and_the_next_one_is_drawn(write: Write) -> None:
    pool = RenderPool(Limits(seconds=4))
    slow, quick = write("slow.pdf", slow_pdf()), write("quick.pdf", pdf_of([OTHERS]))
    began = time.monotonic()
    assert reason_of(lambda: draw(pool, slow)) == "time_limit"
    assert time.monotonic() - began < 10
    assert pool.workers() == []
    assert draw(pool, quick).width == 640
    pool.close()


def test_a_page_that_takes_too_much_memory_fails(write: Write) -> None:
    pool = RenderPool(Limits(seconds=20, memory=400 * 2**20))
    path = write("large.png", saved(Image.new("RGB", (9_000, 9_000)), "PNG", compress_level=1))
    assert reason_of(lambda: draw(pool, path)) == "memory_limit"
    pool.close()


def test_a_worker_that_is_killed_is_replaced(write: Write) -> None:
    pool = RenderPool(Limits(seconds=20))
    slow, quick = write("slow.pdf", slow_pdf()), write("quick.pdf", pdf_of([OTHERS]))
    failures: list[str] = []
    thread = threading.Thread(target=lambda: failures.append(reason_of(lambda: draw(pool, slow))))
    thread.start()
    process = None
    while process is None:
        process = next((worker.process for worker in pool.workers()), None)
    process.kill()
    thread.join(10)
    assert failures == ["worker_killed"]
    assert draw(pool, quick).width == 640
    pool.close()


def test_workers_are_kept_while_pages_are_asked_for_and_end_afterwards(write: Write) -> None:
    pool = RenderPool(idle_seconds=0.2)
    path = write("a.pdf", pdf_of([OTHERS, SENTENCE]))
    draw(pool, path, page=1)
    (worker,) = pool.workers()
    process = worker.process
    draw(pool, path, page=2)
    assert [item.process for item in pool.workers()] == [process]
    assert process is not None
    assert process.wait(10) is not None
    assert pool.workers() == []
    assert draw(pool, path).width == 640
    pool.close()
    with pytest.raises(PoolBusyError):
        draw(pool, path)


def test_no_more_processes_and_requests_than_allowed(write: Write) -> None:
    pool = RenderPool(Limits(seconds=2), workers=1, waiting=1)
    slow = write("slow.pdf", slow_pdf())
    outcomes: list[str] = []

    def work() -> None:
        try:
            draw(pool, slow)
        except PoolBusyError:
            outcomes.append("busy")
        except ExtractionError as error:
            outcomes.append(error.reason)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    assert len(pool.workers()) <= 1
    for thread in threads:
        thread.join(20)
    assert sorted(set(outcomes)) == ["busy", "time_limit"]
    assert outcomes.count("time_limit") == 2
    pool.close()


def test_a_worker_has_no_tokens_and_no_proxies(monkeypatch: pytest.MonkeyPatch, write: Write) -> None:
    monkeypatch.setenv("BEDSTONE_MCP__TOKEN", "tulip")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    pool = RenderPool()
    draw(pool, write("a.pdf", pdf_of([OTHERS])))
    (worker,) = pool.workers()
    assert worker.process is not None
    environment = Path(f"/proc/{worker.process.pid}/environ")
    if environment.exists():
        names = {entry.partition(b"=")[0] for entry in environment.read_bytes().split(b"\0")}
        assert not names & {b"BEDSTONE_MCP__TOKEN", b"HTTPS_PROXY", b"HOME"}
    pool.close()
