"""The record of what OCR knows of a document: confidence, words, and the quality of pages."""

from pathlib import Path

from bedstone.ingest.extraction import Page
from bedstone.ingest.page_words import PageWords, Word
from bedstone.services.knowledge.ocr_record import (
    OCR,
    PageQuality,
    add_record,
    format_record,
    read_confidence,
    read_quality,
    read_words,
)

WORDS = PageWords(14_000, [Word("tulips", 10, 20, 300, 40)]).pack()
PAGES = [
    Page("tulips", 1, 3, "ocr", 0.9, WORDS, 0.95, "deskewed by 2.1 degrees, upscaled 2.0 times"),
    Page("text with a picture", 2, 3, words=WORDS),
    Page("", 3, 3, "ocr", 0.0),
]
QUALITY = {
    1: PageQuality(0.9, 0.95, "deskewed by 2.1 degrees, upscaled 2.0 times"),
    3: PageQuality(0.0),
}


def written(folder: Path) -> Path:
    data = format_record(PAGES)
    assert data is not None
    record = folder / OCR
    record.write_bytes(data)
    return record


def test_the_quality_of_pages_is_kept(tmp_path: Path) -> None:
    record = written(tmp_path)
    assert read_quality(record) == QUALITY
    assert read_confidence(record) == {1: 0.9, 3: 0.0}
    assert read_words(record, 1) == (WORDS, True)
    assert read_words(record, 2) == (WORDS, False)
    assert read_words(record, 3) == ("", True)
    known = list(add_record(record, [Page("tulips", 1), Page("b", 2), Page("", 3)]))
    assert [(page.method, page.word_share, page.done) for page in known] == [
        ("ocr", 0.95, "deskewed by 2.1 degrees, upscaled 2.0 times"),
        ("text", None, ""),
        ("ocr", None, ""),
    ]


def test_a_record_of_an_earlier_version_or_with_a_damaged_last_line_keeps_the_rest(tmp_path: Path) -> None:
    record = written(tmp_path)
    lines = record.read_text().splitlines()
    for last in ([], ["x"], ['[[1, "a"]]'], ["[[1e999, 1, 1]]"], ["[" * 100_000], ["{}"]):
        record.write_text("\n".join([*lines[:-1], *last, ""]))
        assert read_quality(record) == {1: PageQuality(0.9), 3: PageQuality(0.0)}
        assert read_words(record, 1) == (WORDS, True)
    record.write_text("\n".join([*lines[:-1], '[[1, 7, "x"], [9, 0.5, "y"]]', ""]))
    assert read_quality(record) == {1: PageQuality(0.9, 1.0, "x"), 3: PageQuality(0.0)}
