"""OCR of pages that are tilted, turned, small, dark or noisy: the text, the places of words, and the quality."""

import random
from importlib.metadata import requires
from pathlib import Path
from types import MappingProxyType

import pytest
from PIL import Image, ImageDraw, ImageFont
from PIL.Image import Resampling

from bedstone.ingest import ocr_scripts
from bedstone.ingest.extraction import Page, ReadOptions
from bedstone.ingest.locating import locate
from bedstone.ingest.ocr import OcrResult, run_ocr
from bedstone.ingest.ocr_picture import prepare
from bedstone.ingest.ocr_quality import MAX_LISTED, warn_poor_pages, word_share
from bedstone.ingest.page_words import WIDTH, Word
from bedstone.ingest.reader import read_whole
from bedstone.ingest.text_slope import find_slope, measure_text_height
from support.scans import scanned_pdf

LINES = (
    "The harbour master keeps a list of every vessel",
    "that entered during the night, and of the cargo",
    "which the crane unloaded before the tide turned.",
    "Pilots report wind and visibility at each change",
    "of the watch, and write both into the same book.",
    "A lantern at the end of the pier shows red light",
    "while the channel is closed to larger ships, and",
    "white light as soon as the channel is open again.",
)
TEXT = " ".join(LINES)
SIZE = (1_300, 900)


def page(*, size: tuple[int, int] = SIZE, points: int = 34, ink: int = 0, paper: int = 255) -> Image.Image:
    image = Image.new("L", size, paper)
    drawing, font = ImageDraw.Draw(image), ImageFont.load_default(points)
    for number, line in enumerate(LINES):
        drawing.text((size[0] // 10, size[1] // 6 + number * points * 3 // 2), line, fill=ink, font=font)
    return image


def tilted(degrees: float) -> Image.Image:
    return page().rotate(degrees, Resampling.BICUBIC, expand=True, fillcolor=255)


def specked() -> Image.Image:
    width, height = 1_300, 1_050
    image, chance = page(size=(width, height)), random.Random(3)
    pixels = image.load()
    assert pixels is not None
    for _ in range(width * height // 30):
        pixels[chance.randrange(width), chance.randrange(height)] = chance.choice((0, 255))
    return image


def found_words(result: OcrResult) -> float:
    """Return the share of the words of the page that were recognized."""
    known = set(result.text.split())
    return sum(word in known for word in TEXT.split()) / len(TEXT.split())


def ink_inside(image: Image.Image, words: list[Word]) -> float:
    """Return the share of the dark pixels of a picture that the boxes of words cover."""
    dark = image.convert("L").point(lambda level: 255 if level < 110 else 0)
    left = dark.copy()
    unit = image.width / WIDTH
    for word in words:
        start = (round((word.x - 15) * unit), round((word.y - 15) * unit))
        end = (round((word.x + word.width + 15) * unit), round((word.y + word.height + 15) * unit))
        left.paste(0, (*start, *end))
    return 1 - left.histogram()[255] / dark.histogram()[255]


@pytest.mark.parametrize("degrees", [-9.0, -3.0, 2.1, 5.0])
def test_a_tilted_page_is_straightened_and_its_words_stand_where_the_page_shows_them(degrees: float) -> None:
    picture = tilted(degrees)
    result = run_ocr(picture, ReadOptions())
    assert found_words(result) > 0.95
    assert f"deskewed by {abs(degrees):.1f} degrees" in result.done
    assert result.confidence > 0.8
    words = list(result.words.words)
    assert result.words.height == round(picture.height * WIDTH / picture.width)
    assert ink_inside(picture, words) > 0.97
    area = sum(word.width * word.height for word in words)
    assert area < 0.45 * WIDTH * result.words.height  # the boxes do not simply cover the page
    (boxes,) = locate(result.words, [LINES[2]])
    middle = (picture.width / 2, picture.height / 2)
    assert boxes
    assert all(abs(box.x + box.w / 2 - 0.5) < 0.5 for box in boxes)
    assert middle[1] * 0.4 < boxes[0].y * picture.height < middle[1] * 1.3


@pytest.mark.parametrize("quarters", [1, 2, 3])
def test_a_page_that_lies_on_its_side_or_upside_down_is_turned(quarters: int) -> None:
    picture = page().rotate(90 * quarters, expand=True).rotate(1.5, Resampling.BICUBIC, expand=True, fillcolor=255)
    result = run_ocr(picture, ReadOptions())
    assert found_words(result) > 0.95
    assert f"turned by {90 * quarters} degrees" in result.done
    assert ink_inside(picture, list(result.words.words)) > 0.97
    first = next(word for word in result.words.words if word.text == "harbour")
    centre = (first.x + first.width / 2) / WIDTH, (first.y + first.height / 2) / result.words.height
    assert (centre[0] < 0.5, centre[1] < 0.5) == {1: (True, False), 2: (False, False), 3: (False, True)}[quarters]


def test_small_text_is_enlarged_and_its_words_stand_in_the_original() -> None:
    picture = page(size=(1_100, 400), points=11)
    assert (measure_text_height(picture) or 99) < 14
    result = run_ocr(picture, ReadOptions())
    assert any(step.startswith("upscaled") for step in result.done)
    letters = "".join(result.text.split())  # at this size some spaces are too narrow
    assert sum("".join(line.split()) in letters for line in LINES) >= len(LINES) - 1
    assert ink_inside(picture, list(result.words.words)) > 0.97


def test_bright_text_on_dark_paper_and_noise_are_read() -> None:
    dark = run_ocr(page(ink=235, paper=20), ReadOptions())
    assert found_words(dark) > 0.95
    assert "inverted" in dark.done
    noisy = run_ocr(specked(), ReadOptions())
    assert found_words(noisy) > 0.95
    assert "noise removed" in noisy.done


def test_a_clean_page_is_left_as_it_is() -> None:
    prepared = prepare(page())
    assert prepared.done == ()
    assert prepared.image.size == SIZE
    assert find_slope(page()) == 0.0
    drawing = Image.new("L", (800, 800), 255)
    ImageDraw.Draw(drawing).ellipse((100, 100, 700, 700), fill=0)
    assert find_slope(drawing) == 0.0  # no lines, no slope
    assert run_ocr(Image.new("L", (600, 600), 255), ReadOptions()).text == ""


def test_a_tilted_scan_in_a_pdf_is_read_and_says_what_was_done(tmp_path: Path) -> None:
    tilted(4.0).convert("RGB").save(tmp_path / "scan.pdf", "PDF", resolution=150)
    (scan,), notes = read_whole(tmp_path / "scan.pdf")
    assert scan.method == "ocr"
    assert LINES[3] in " ".join(scan.markdown.split("\n"))
    assert scan.done == "deskewed by 4.0 degrees"
    assert scan.word_share is not None
    assert scan.word_share > 0.9
    assert notes.warnings == []
    (tmp_path / "b.pdf").write_bytes(scanned_pdf("Tulips need cold winters\nand light soil"))
    assert read_whole(tmp_path / "b.pdf")[0][0].done == ""


def test_poor_pages_are_named_in_one_warning_and_good_ones_are_not(tmp_path: Path) -> None:
    good = Page(TEXT, 1, 3, "ocr", 0.9, word_share=word_share(TEXT))
    unsure = Page(TEXT, 2, 3, "ocr", 0.4, word_share=0.6)
    plain = Page("x", 3, 3)
    assert warn_poor_pages([good, plain]) == []
    (warning,) = warn_poor_pages([good, unsure, plain])
    assert "1 of its pages poorly: 2 (40% sure, 60% of the words look like words)" in warning
    many = [Page("abc", number, 99, "ocr", 0.1) for number in range(1, MAX_LISTED + 4)]
    assert "and 3 more" in warn_poor_pages(many)[0]
    assert warn_poor_pages([Page("", None, None, "ocr", 0.0)]) == []  # a photo has no text to find
    assert warn_poor_pages([Page("ab", None, None, "ocr", 0.2)])[0].startswith(
        "OCR read this picture poorly (20% sure)"
    )


def test_words_that_look_like_words_are_told_from_debris() -> None:
    assert (word_share(TEXT) or 0) > 0.97
    assert (
        word_share("Der Bürgermeister übergibt 3.450,00 € an die Straßenmeisterei, heute um 14:30 Uhr in Köln.") or 0
    ) > 0.9
    assert (
        word_share("Утром корабль вошёл порт встал возле причала рядом маяком складом долго ждал прилива") or 0
    ) > 0.9
    assert (word_share("rHx1k zzz9 ~ | qXvv bcdfghjk TtRrE |. kkkq x0y1z llll mMn4 vwxz ,, wQe") or 0) < 0.3
    assert word_share("too few words") is None


def test_a_script_without_data_is_named_with_what_to_install() -> None:
    languages = {"eng", "deu"}
    assert ocr_scripts.choose_languages("Japanese", "eng", languages) == "eng"
    assert ocr_scripts.choose_languages("Japanese", "eng", languages | {"jpn"}) == "jpn"
    assert ocr_scripts.choose_languages("Cyrillic", "eng", {"eng", "script/Cyrillic"}) == "script/Cyrillic"
    assert ocr_scripts.choose_languages("Cyrillic", "eng+ukr", {"eng", "rus", "ukr"}) == "eng+ukr"  # as it is set
    assert ocr_scripts.choose_languages("Latin", "deu", languages) == "deu"
    assert ocr_scripts.choose_languages("Han", "eng", languages | {"jpn"}) == "eng"  # it would misread Chinese
    assert ocr_scripts.choose_languages("Han", "jpn", languages | {"chi_sim"}) == "jpn"
    assert not ocr_scripts.is_missing("Latin", "eng")
    assert ocr_scripts.is_missing("Han", "eng")
    assert not ocr_scripts.is_missing("Han", "script/Han")
    assert "pip install 'bedstone[ocr-japanese]'" in ocr_scripts.explain_missing("Japanese")
    assert "ocr.data_path to a folder with rus.traineddata" in ocr_scripts.explain_missing("Cyrillic")
    extras = MappingProxyType(ocr_scripts.EXTRAS)
    for language, extra in extras.items():
        assert any(
            f"tessdata-{language}" in item.replace(".", "-") and extra in item for item in requires("bedstone") or ()
        )
