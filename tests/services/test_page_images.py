"""Originals of documents: pictures of pages and their cache, places of passages, rich text."""

import io
import json
import os
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageChops, ImageDraw, ImageFont

from bedstone.errors import InvalidInput
from bedstone.ingest.process import Limits
from bedstone.ingest.render_pool import RenderPool
from bedstone.search.embedders.hashing import HashingEmbedder
from bedstone.services.knowledge.errors import OriginalMissing, PageNotFound, RenderingBusy, RenderingFailed
from bedstone.services.knowledge.file_storage import FileStorage
from bedstone.services.knowledge.options import KnowledgeOptions
from bedstone.services.knowledge.page_images import FAILURE_SECONDS, WIDTHS, Originals
from bedstone.services.knowledge.picture_cache import PictureCache
from bedstone.services.knowledge.records import FileDocument
from bedstone.services.knowledge.service import KnowledgeBase
from bedstone.store.blob_stores.folder import FolderBlobs
from bedstone.store.engines.memory import MemoryStore
from support.corpus import Text, corpus, pdf_file, pdf_objects, pdf_of, slow_forms
from support.scans import scanned_pdf

MANUAL = Path(__file__).parents[2] / "demo" / "files" / "porter-workshop-manual.pdf"
WIDTH = WIDTHS[1]


@pytest.fixture
def base(tmp_path: Path) -> Iterator[KnowledgeBase]:
    base = make_base(tmp_path)
    yield base
    base.close()


def make_base(folder: Path) -> KnowledgeBase:
    (folder / "index").mkdir(parents=True, exist_ok=True)
    base = KnowledgeBase(MemoryStore(), KnowledgeOptions(folder / "documents", folder / "index"), HashingEmbedder)
    base.open()
    return base


def add(base: KnowledgeBase, path: Path, **options: Any) -> FileDocument:
    task = base.wait(base.add(path, **options).id)
    assert task.status == "completed", task.error
    return base.get_document((task.result or {})["document_id"])


def add_content(base: KnowledgeBase, folder: Path, name: str, content: bytes | str) -> FileDocument:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return add(base, path)


def opened(picture: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(picture))
    assert image.format == "WEBP"
    return image.convert("L")


def pictures(folder: Path) -> list[str]:
    return sorted(path.name.split("-", 2)[-1] for path in (folder / "index" / "pictures").glob("*/*"))


class CountingPool(RenderPool):
    """A pool that remembers what it was asked."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.requests: list[str] = []

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self.requests.append(request["work"])
        return super().ask(request)


@pytest.fixture
def pool() -> Iterator[CountingPool]:
    pool = CountingPool(Limits(seconds=20))
    yield pool
    pool.close()


def originals_of(folder: Path, pool: RenderPool, **options: Any) -> Originals:
    """Return the originals of a base, drawn by another pool."""
    storage = FileStorage(FolderBlobs(folder / "documents"), folder / "index" / ".adding")
    return Originals(storage, PictureCache(folder / "index" / "pictures"), pool, **options)


# Pictures


def test_every_format_is_shown_in_its_own_way(base: KnowledgeBase, tmp_path: Path) -> None:
    kinds = {item.name.rpartition(".")[2]: base.originals.kind(add(base, item.write(tmp_path))) for item in corpus()}
    kinds |= {
        name.rpartition(".")[2]: base.originals.kind(add_content(base, tmp_path, name, content))
        for name, content in {
            "a.txt": "Plain text",
            "a.json": '{"a": "plain text"}',
            "a.md": "# Rich text",
            "a.csv": "a,b\n1,2\n",
            "a.svg": '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><text>Drawing</text></svg>',
        }.items()
    }
    assert {name for name, kind in kinds.items() if kind == "pages"} == {"pdf", "svg"}
    assert {name for name, kind in kinds.items() if kind == "text"} == {"txt", "json"}
    assert {name for name, kind in kinds.items() if kind == "rich"} >= {
        "docx",
        "html",
        "odt",
        "rtf",
        "eml",
        "md",
        "csv",
    }


def test_a_page_is_drawn_once_and_then_read_from_the_disk(
    base: KnowledgeBase, tmp_path: Path, pool: CountingPool
) -> None:
    document = add(base, MANUAL)
    shown = originals_of(tmp_path, pool)
    assert shown.page_sizes(document) == [(612.0, 792.0)] * 3
    assert shown.notices(document) == []
    assert pictures(tmp_path) == ["sizes.json"]
    picture = shown.picture(document, 2, WIDTH)
    assert opened(picture).size == (640, 829)
    assert pictures(tmp_path) == ["2-640.webp", "sizes.json"]
    assert [shown.picture(document, 2, WIDTH) for _ in range(3)] == [picture] * 3
    assert shown.page_sizes(document) == [(612.0, 792.0)] * 3
    assert pool.requests == ["measure", "render"]
    assert originals_of(tmp_path, pool).picture(document, 2, WIDTH) == picture
    assert pool.requests == ["measure", "render"]
    assert opened(shown.picture(document, 2, 120)).width == 120


def test_what_does_not_exist_is_named(base: KnowledgeBase, tmp_path: Path) -> None:
    document = add(base, MANUAL)
    with pytest.raises(InvalidInput, match="120, 640"):
        base.originals.picture(document, 1, 100)
    for page in (0, -1, 4):
        with pytest.raises(PageNotFound):
            base.originals.picture(document, page, WIDTH)
    text = add_content(base, tmp_path, "a.txt", "text")
    with pytest.raises(PageNotFound):
        base.originals.picture(text, 1, WIDTH)
    with pytest.raises(PageNotFound):
        base.originals.page_sizes(text)
    assert base.originals.boxes(text, 1, ["text"]) == [[]]
    assert base.originals.path(document).read_bytes() == MANUAL.read_bytes()
    base.originals.path(document).unlink()
    with pytest.raises(OriginalMissing):
        base.originals.path(document)
    with pytest.raises(OriginalMissing):
        base.originals.picture(document, 1, WIDTH)


def test_callers_who_want_the_same_page_at_once_get_one_drawing(
    base: KnowledgeBase, tmp_path: Path, pool: CountingPool
) -> None:
    document = add(base, MANUAL)
    shown, found, start = originals_of(tmp_path, pool), [], threading.Barrier(8)

    def look() -> None:
        start.wait()
        found.append(shown.picture(document, 1, WIDTH))

    threads = [threading.Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(found) == 8
    assert len(set(found)) == 1
    assert pool.requests == ["render"]


def test_removing_a_document_removes_its_pictures(base: KnowledgeBase, tmp_path: Path) -> None:
    first, second = add(base, MANUAL), add_content(base, tmp_path, "b.pdf", pdf_of([[Text("Tulips", 90, 700)]]))
    for document in (first, second):
        base.originals.picture(document, 1, WIDTH)
        base.originals.boxes(document, 1, ["Tulips"])
    assert pictures(tmp_path) == ["1-640.webp", "1-640.webp", "1.words.json", "1.words.json"]
    base.remove(first.id)
    assert pictures(tmp_path) == ["1-640.webp", "1.words.json"]
    base.clear()
    assert pictures(tmp_path) == []
    assert list((tmp_path / "index" / "pictures").iterdir()) == []


def test_a_new_version_of_a_file_has_pictures_of_its_own(base: KnowledgeBase, tmp_path: Path) -> None:
    before = add_content(base, tmp_path, "a.pdf", pdf_of([[Text("Tulips", 90, 700, 40)]]))
    old = base.originals.picture(before, 1, WIDTH)
    after = add_content(base, tmp_path, "a.pdf", pdf_of([[Text("Daffodils", 90, 300, 40)]]))
    assert pictures(tmp_path) == []
    assert base.originals.picture(after, 1, WIDTH) != old


def test_a_picture_that_is_done_after_its_document_is_gone_is_not_kept(
    base: KnowledgeBase, tmp_path: Path, pool: CountingPool
) -> None:
    document = add(base, MANUAL)

    class RemovingPool(CountingPool):
        def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
            answer = super().ask(request)
            base.remove(document.id)
            return answer

    late = RemovingPool()
    assert originals_of(tmp_path, late).picture(document, 1, WIDTH)
    assert pictures(tmp_path) == []
    late.close()


@pytest.mark.skipif(os.name == "nt", reason="permissions of Unix")
def test_pictures_are_private(base: KnowledgeBase, tmp_path: Path) -> None:
    base.originals.picture(add(base, MANUAL), 1, WIDTH)
    folder = tmp_path / "index" / "pictures"
    modes = {path.stat().st_mode & 0o777 for path in (folder, *folder.glob("*"))}
    assert modes == {0o700}
    assert {path.stat().st_mode & 0o777 for path in folder.glob("*/*")} == {0o600}


def test_without_a_place_for_pictures_they_are_drawn_each_time(
    base: KnowledgeBase, tmp_path: Path, pool: CountingPool
) -> None:
    document = add(base, MANUAL)
    (tmp_path / "index" / "pictures").write_text("not a folder")
    shown = originals_of(tmp_path, pool)
    assert shown.picture(document, 1, WIDTH) == shown.picture(document, 1, WIDTH)
    assert shown.page_sizes(document) == [(612.0, 792.0)] * 3
    assert pool.requests == ["render", "render", "measure"]


# Failures


def slow_pdf() -> bytes:
    """Return a PDF with text on its first page, and forms that draw each other on its second one."""
    objects = pdf_objects([[Text("Tulips", 90, 700)], [Text("Daffodils", 90, 700)]])
    first = len(objects) + 1
    objects += slow_forms(first)
    objects[5] = objects[5].replace("/Resources <<", f"/Resources << /XObject << /X {first} 0 R >>")
    return pdf_file(objects)


def with_slow_second_page(base: KnowledgeBase, folder: Path) -> FileDocument:
    """Return a document whose second page takes forever; it was not so when it was read."""
    document = add_content(base, folder, "a.pdf", pdf_of([[Text("Tulips", 90, 700)]]))
    objects = slow_pdf().replace(b"(Daffodils) Tj", b"(x) Tj /X Do ")
    base.originals.path(document).write_bytes(objects)
    return document


def test_a_page_that_takes_too_long_fails_once_and_the_others_are_drawn(base: KnowledgeBase, tmp_path: Path) -> None:
    document = with_slow_second_page(base, tmp_path)
    pool, now = CountingPool(Limits(seconds=4)), [0.0]
    shown = originals_of(tmp_path, pool, clock=lambda: now[0])
    for _ in range(3):
        with pytest.raises(RenderingFailed) as caught:
            shown.picture(document, 2, WIDTH)
        assert (caught.value.reason, caught.value.details["page"]) == ("time_limit", 2)
        assert caught.value.message == "Drawing the page takes too long."
    with pytest.raises(RenderingFailed):
        shown.picture(document, 2, 120)
    assert pool.requests == ["render"]
    assert opened(shown.picture(document, 1, WIDTH)).width == 640
    now[0] = FAILURE_SECONDS + 1
    with pytest.raises(RenderingFailed):
        shown.picture(document, 2, WIDTH)
    assert pool.requests == ["render"] * 3
    pool.close()


def test_a_killed_worker_costs_one_picture_and_is_not_remembered(
    base: KnowledgeBase, tmp_path: Path, pool: CountingPool
) -> None:
    document = with_slow_second_page(base, tmp_path)
    shown, failures = originals_of(tmp_path, pool), []

    def look() -> None:
        with pytest.raises(RenderingFailed) as caught:
            shown.picture(document, 2, WIDTH)
        failures.append(caught.value.reason)

    thread = threading.Thread(target=look)
    thread.start()
    process = None
    while process is None:
        process = next((worker.process for worker in pool.workers()), None)
    process.kill()
    thread.join(20)
    assert failures == ["worker_killed"]
    thread = threading.Thread(target=look)
    thread.start()
    while len(pool.requests) < 2 or not pool.workers():
        pass
    pool.close()
    thread.join(20)
    assert pool.requests == ["render", "render"]


def test_a_document_that_cannot_be_opened_fails_as_a_whole(
    base: KnowledgeBase, tmp_path: Path, pool: CountingPool
) -> None:
    document = add_content(base, tmp_path, "a.pdf", pdf_of([[Text("Tulips", 90, 700)]]))
    base.originals.path(document).write_bytes(b"%PDF-1.7 broken")
    shown = originals_of(tmp_path, pool)
    with pytest.raises(RenderingFailed, match="Not a PDF"):
        shown.page_sizes(document)
    for page in (1, 2):
        with pytest.raises(RenderingFailed):
            shown.picture(document, page, WIDTH)
    assert shown.boxes(document, 1, ["Tulips"]) == [[]]
    assert pool.requests == ["measure"]


def test_too_many_pages_at_once_are_refused(base: KnowledgeBase, tmp_path: Path) -> None:
    document = add(base, MANUAL)
    full = RenderPool(waiting=0)
    with pytest.raises(RenderingBusy):
        originals_of(tmp_path, full).picture(document, 1, WIDTH)
    full.close()


# The cache


def test_the_cache_stays_below_its_limit_and_keeps_what_is_used(tmp_path: Path) -> None:
    cache = PictureCache(tmp_path / "pictures", max_bytes=100_000)
    for number in range(300):
        cache.put(f"doc{number % 7}", f"{number}.webp", bytes(1_000))
        os.utime(tmp_path / "pictures" / f"doc{number % 7}" / f"{number}.webp", (number, number))
        assert cache.get("doc0", "0.webp") is not None, number  # used again and again
        total = sum(path.stat().st_size for path in (tmp_path / "pictures").glob("*/*"))
        assert total <= 100_000
    kept = {int(path.stem) for path in (tmp_path / "pictures").glob("*/*")}
    assert len(kept) >= 60
    assert kept - {0} >= set(range(300 - 50, 300))
    assert cache.get("doc1", "1.webp") is None


def test_empty_folders_go_with_their_last_picture(tmp_path: Path) -> None:
    cache = PictureCache(tmp_path / "pictures", max_bytes=10_000)
    for number in range(50):
        cache.put(f"doc{number}", "1.webp", bytes(1_000))
    assert len(list((tmp_path / "pictures").iterdir())) <= 10


WRITER = """
import sys
from pathlib import Path
from bedstone.services.knowledge.picture_cache import PictureCache
cache = PictureCache(Path(sys.argv[1]), max_bytes=60_000)
for number in range(400):
    name = f"doc{number % 11}"
    cache.put(name, f"{number % 37}.webp", bytes([number % 37]) * 1_500)
    found = cache.get(name, f"{number % 37}.webp")
    assert found in (None, bytes([number % 37]) * 1_500), found
    if number % 50 == 0:
        cache.delete(name)
"""


def test_processes_share_the_cache(tmp_path: Path) -> None:
    folder = tmp_path / "pictures"
    command = [sys.executable, "-c", WRITER, str(folder)]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(2)]
    assert [process.communicate(timeout=60)[1] for process in running] == [b"", b""]
    assert [process.returncode for process in running] == [0, 0]
    assert sum(path.stat().st_size for path in folder.glob("*/*")) <= 60_000
    assert list(folder.glob("*/*.tmp")) == []


DRAWER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from bedstone.services.knowledge.file_storage import FileStorage
from bedstone.services.knowledge.page_images import Originals
from bedstone.services.knowledge.picture_cache import PictureCache
from bedstone.services.knowledge.records import FileDocument
from bedstone.store.blob_stores.folder import FolderBlobs
folder, identity, digest = Path(sys.argv[1]), sys.argv[3], sys.argv[4]
storage = FileStorage(FolderBlobs(folder / "documents"), folder / "index" / ".adding")
document = FileDocument(identity, "", digest, "a.pdf", "", "pdf", 1, 0.0, "completed", None)
shown = Originals(storage, PictureCache(folder / "index" / "pictures"))
print([len(shown.picture(document, page, 640)) for page in (1, 2, 3)])
shown.close()
"""


def test_two_servers_draw_the_same_document_at_once(base: KnowledgeBase, tmp_path: Path) -> None:
    document = add(base, MANUAL)
    command = [sys.executable, "-c", DRAWER, str(tmp_path), "", document.id, document.digest]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    answers = {process.communicate(timeout=60)[0] for process in running}
    assert answers == {str([len(base.originals.picture(document, page, 640)) for page in (1, 2, 3)]).encode() + b"\n"}


# Where passages stand


def area(image: Image.Image, boxes: list[Any]) -> Image.Image:
    """Return a mask of boxes on a picture."""
    mask = Image.new("L", image.size, 0)
    for box in boxes:
        sides = (
            box.x * image.width,
            box.y * image.height,
            (box.x + box.w) * image.width,
            (box.y + box.h) * image.height,
        )
        ImageDraw.Draw(mask).rectangle(tuple(round(side) for side in sides), fill=255)
    return mask


def dark(image: Image.Image) -> Image.Image:
    return image.point(lambda level: 255 if level < 100 else 0)


def covered(image: Image.Image, boxes: list[Any]) -> float:
    """Return how much of what is dark on a picture is inside boxes."""
    ink = dark(image)
    inside = ImageChops.multiply(ink, area(image, boxes)).histogram()[255]
    return inside / max(1, ink.histogram()[255])


def test_the_passages_of_the_manual_are_found_on_their_pages(
    base: KnowledgeBase, pool: CountingPool, tmp_path: Path
) -> None:
    document, shown = add(base, MANUAL), originals_of(tmp_path, pool)
    page = next(page for page in base.read_pages(document.id) if page.number == 2)
    boxes = shown.boxes(document, 2, [page.markdown, "A disc thinner than 1.8 mm must be replaced.", "Nothing of it"])
    picture = opened(shown.picture(document, 2, 1280))
    assert covered(picture, boxes[0]) > 0.98
    assert len(boxes[1]) == 1
    assert 0 < covered(picture, boxes[1]) < 0.3
    assert boxes[2] == []
    shown.boxes(document, 2, ["another passage"])
    assert pool.requests == ["locate", "render"]
    assert shown.boxes(document, 1, ["A disc thinner than 1.8 mm must be replaced."]) == [[]]


def test_what_ocr_reads_has_places_and_confidence(base: KnowledgeBase, tmp_path: Path, pool: CountingPool) -> None:
    document = add_content(
        base,
        tmp_path,
        "scan.pdf",
        scanned_pdf("Tulips need cold winters\nand light soil", "Daffodils are yellow flowers"),
    )
    pages = base.read_pages(document.id)
    assert [(page.number, page.method) for page in pages] == [(1, "ocr"), (2, "ocr")]
    confidence = base.ocr_confidence(document.id)
    assert {page.number: page.confidence for page in pages} == confidence
    assert all(0.6 < value <= 1 for value in confidence.values())
    shown = originals_of(tmp_path, pool)
    first, second = shown.boxes(document, 1, ["Tulips need cold winters and light soil", "light soil"])
    assert (len(first), len(second)) == (2, 1)
    assert pool.requests == []  # the words were kept when the file was read
    picture = opened(shown.picture(document, 1, 1280))
    assert covered(picture, first) > 0.98
    assert shown.boxes(document, 2, ["Tulips need cold winters"]) == [[]]
    words = shown.words(document, 2)
    assert words is not None
    assert [word.text for word in words.words] == ["Daffodils", "are", "yellow", "flowers"]


def photo(text: str, orientation: int) -> bytes:
    image = Image.new("L", (1_200, 400), 255)
    ImageDraw.Draw(image).text((80, 150), text, fill=0, font=ImageFont.load_default(60))
    turned = {1: image, 6: image.transpose(Image.Transpose.ROTATE_90), 3: image.transpose(Image.Transpose.ROTATE_180)}
    exif = Image.Exif()
    exif[0x0112] = orientation
    target = io.BytesIO()
    turned[orientation].save(target, "JPEG", exif=exif)
    return target.getvalue()


@pytest.mark.parametrize("orientation", [1, 3, 6])
def test_words_stand_where_an_upright_photo_shows_them(base: KnowledgeBase, tmp_path: Path, orientation: int) -> None:
    document = add_content(base, tmp_path, "photo.jpg", photo("Tulips need cold winters", orientation))
    assert base.originals.page_sizes(document) == [(1_200, 400)]
    (boxes,) = base.originals.boxes(document, 1, ["Tulips need cold winters"])
    assert len(boxes) == 1
    assert boxes[0].w > 3 * boxes[0].h
    assert covered(opened(base.originals.picture(document, 1, 1280)), boxes) > 0.98
    (page,) = base.read_pages(document.id)
    assert page.method == "ocr"
    assert page.confidence == base.ocr_confidence(document.id)[1]
    assert page.markdown.endswith("photo.jpg")


def test_text_in_a_picture_on_a_page_with_text_is_found_too(base: KnowledgeBase, tmp_path: Path) -> None:
    image = Image.new("L", (1_000, 200), 255)
    ImageDraw.Draw(image).text((60, 60), "Torque forty newton metres", fill=0, font=ImageFont.load_default(60))
    pixels = zlib.compress(image.tobytes()).hex()
    objects = pdf_objects(
        [[Text(f"Line {number} of the text on this page.", 90, 700 - 20 * number) for number in range(9)]]
    )
    objects.append(
        "<< /Type /XObject /Subtype /Image /Width 1000 /Height 200 /ColorSpace /DeviceGray /BitsPerComponent 8 "
        f"/Filter [/ASCIIHexDecode /FlateDecode] /Length {len(pixels)} >>\nstream\n{pixels}\nendstream"
    )
    drawing = objects[2].partition("stream\n")[2].removesuffix("\nendstream") + "\nq 400 0 0 80 90 300 cm /I Do Q"
    objects[2] = f"<< /Length {len(drawing)} >>\nstream\n{drawing}\nendstream"
    objects[3] = objects[3].replace("/Resources <<", "/Resources << /XObject << /I 5 0 R >>")
    document = add_content(base, tmp_path, "a.pdf", pdf_file(objects))
    (page,) = base.read_pages(document.id)
    assert (page.method, page.confidence) == ("text", None)
    assert "Torque forty newton metres" in page.markdown
    text, drawn = base.originals.boxes(document, 1, ["Line 3 of the text on this page.", "Torque forty newton metres"])
    assert len(text) == len(drawn) == 1
    assert 0.15 < drawn[0].x < 0.25
    assert 842 - 380 < drawn[0].y * 842 < 842 - 300


def test_text_is_stored_as_before_and_a_damaged_record_of_ocr_is_ignored(base: KnowledgeBase, tmp_path: Path) -> None:
    document = add_content(base, tmp_path, "scan.pdf", scanned_pdf("Tulips need cold winters"))
    folder = tmp_path / "documents" / document.id
    rows = json.loads(zlib.decompress((folder / "text.json.z").read_bytes()))
    assert rows == [[1, base.read_pages(document.id)[0].markdown]]
    for damage in (None, b"", b"x", b"[[1]]", b'[["a", "ocr", 1]]', b"[[1e999, 1, 1]]", b"{}", b"[" * 100_000):
        record = folder / "ocr.jsonl"
        record.unlink(missing_ok=True)
        if damage is not None:
            record.write_bytes(damage)
        (page,) = base.read_pages(document.id)
        assert (page.method, page.confidence) == ("text", None)
        assert base.ocr_confidence(document.id) == {}
        assert base.originals.boxes(document, 1, ["Tulips need cold winters"]) == [[]]


def test_an_export_keeps_what_ocr_knew(base: KnowledgeBase, tmp_path: Path) -> None:
    document = add_content(base, tmp_path, "scan.pdf", scanned_pdf("Tulips need cold winters"))
    plain = add_content(base, tmp_path, "a.txt", "No OCR here")
    base.export_to(tmp_path / "export.zip")
    other = make_base(tmp_path / "other")
    for task in other.import_from(tmp_path / "export.zip"):
        assert other.wait(task.id).status == "completed"
    assert other.ocr_confidence(document.id) == base.ocr_confidence(document.id) != {}
    assert other.originals.boxes(document, 1, ["cold winters"]) == base.originals.boxes(document, 1, ["cold winters"])
    assert other.ocr_confidence(plain.id) == {}
    other.close()


# Rich text


def test_html_is_shown_as_it_is_in_the_file(base: KnowledgeBase, tmp_path: Path) -> None:
    page = (
        '<html><head><title>T</title><style>p{}</style></head><BODY class="a>b"><p>Grüße <b>bold</b></p></body></html>'
    )
    document = add_content(base, tmp_path, "a.html", page.encode("cp1252"))
    assert base.originals.kind(document) == "rich"
    media, text = base.originals.rich_html(document)
    assert media == "html"
    assert text.endswith("<p>Grüße <b>bold</b></p>")
    assert "<title>" not in text
    assert (
        base.originals.rich_html(add_content(base, tmp_path, "b.html", "<p>Only a paragraph")).text
        == "<p>Only a paragraph"
    )


def test_other_formats_are_shown_as_markdown(base: KnowledgeBase, tmp_path: Path) -> None:
    document = add_content(base, tmp_path, "a.md", "---\ntitle: T\n---\n# Heading\n\nText")
    assert base.originals.rich_html(document) == ("markdown", "# Heading\n\nText")
    word = next(item for item in corpus() if item.name.endswith(".docx"))
    media, text = base.originals.rich_html(add(base, word.write(tmp_path)))
    assert media == "markdown"
    assert word.pages[0].lines[0] in text


def test_a_page_with_countless_tags_costs_little(base: KnowledgeBase, tmp_path: Path) -> None:
    document = add_content(base, tmp_path, "a.html", "<p>Text</p>")
    base.originals.path(document).write_text("<body " * 2_000_000)
    assert base.originals.rich_html(document).media == "html"
