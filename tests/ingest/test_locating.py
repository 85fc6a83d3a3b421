"""Passages among the words of a page."""

from bedstone.ingest.locating import Box, locate
from bedstone.ingest.page_words import MAX_WORDS, WIDTH, PageWords, Word

LINE = 200  # the height of a line
LETTER = 100


def page_of(*lines: str, height: int = 14_000) -> PageWords:
    """Return a page with one word after another; each letter is as wide as the others."""
    words = []
    for number, line in enumerate(lines):
        x = 500
        for text in line.split():
            words.append(Word(text, x, 500 + 2 * LINE * number, LETTER * len(text), LINE))
            x += LETTER * (len(text) + 1)
    return PageWords(height, words)


def lines_of(boxes: list[Box], height: int = 14_000) -> list[tuple[int, int, int]]:
    """Return number, left and right of each box, in lines and letters."""
    return [
        (
            round((box.y * height - 500) / (2 * LINE)),
            round((box.x * WIDTH - 500) / LETTER),
            round(((box.x + box.w) * WIDTH - 500) / LETTER),
        )
        for box in boxes
    ]


def test_a_passage_has_one_box_for_each_of_its_lines() -> None:
    page = page_of("Lift the wheel first.", "Slide the disc off the splines", "and keep it.", "Bed the pads in.")
    (boxes,) = locate(page, ["Slide the disc off the splines and keep it."])
    assert lines_of(boxes) == [(1, 0, 30), (2, 0, 12)]
    (boxes,) = locate(page, ["the disc off"])
    assert lines_of(boxes) == [(1, 6, 18)]


def test_marks_ligatures_hyphens_and_entities_make_no_difference() -> None:
    page = page_of("The ﬁrst ofﬁcer \xad", "signs the cer-", "tiﬁcate & stamps it")
    (boxes,) = locate(
        page, ["## The **first** [officer](https://example.org/a?b=1) signs the `certificate` &amp; stamps it"]
    )
    assert lines_of(boxes) == [(0, 0, 15), (1, 0, 14), (2, 0, 19)]


def test_the_part_of_a_passage_that_is_on_the_page_is_found() -> None:
    page = page_of("Workshop manual", "must be replaced at once by a dealer", "who is trained for it.", "Next section")
    passage = (
        "A disc that is thinner than 1.8 mm must be replaced at once by a dealer\n\nwho is trained for it. And so on."
    )
    (boxes,) = locate(page, [passage])
    assert lines_of(boxes) == [(1, 0, 36), (2, 0, 22)]


def test_other_text_between_two_parts_is_not_part_of_the_passage() -> None:
    page = page_of("The caliper bolts are tightened to", "Page 7 of 90", "eight newton metres by hand.")
    (boxes,) = locate(page, ["The caliper bolts are tightened to eight newton metres by hand."])
    assert lines_of(boxes) == [(0, 0, 34), (2, 0, 28)]


def test_a_phrase_far_from_the_rest_of_a_passage_is_not_marked() -> None:
    filler = [f"Line {number} speaks about something else entirely, for once" for number in range(40)]
    page = page_of(
        "in accordance with the law", *filler, "Fees are due in ninety days as agreed by both sides", height=20_000
    )
    (boxes,) = locate(
        page, ["Fees are due in ninety days as agreed by both sides, in accordance with the law of the sea"]
    )
    assert lines_of(boxes, 20_000) == [(41, 0, 51)]


def test_what_is_not_on_the_page_has_no_boxes() -> None:
    page = page_of("Lift the wheel and take out the bolts", "Tighten them")
    found = locate(page, ["Something quite different is written in this one", "heel", "", "***", "ten", "Tighten"])
    assert [bool(boxes) for boxes in found] == [False, False, False, False, False, True]
    assert locate(PageWords(100), ["Lift the wheel"]) == [[]]


def test_words_far_apart_on_a_line_are_separate_boxes() -> None:
    words = [Word("Torque", 500, 500, 600, LINE), Word("40", 4_000, 500, 200, LINE), Word("Nm", 4_300, 500, 200, LINE)]
    (boxes,) = locate(PageWords(14_000, words), ["| Torque | 40 Nm |"])
    assert [(round(box.x, 2), round(box.w, 2)) for box in boxes] == [(0.05, 0.06), (0.4, 0.05)]


def test_lines_that_run_up_the_page_are_boxes_too() -> None:
    words = [
        Word(text, 500, 9_000 - 1_000 * number, LINE, 900) for number, text in enumerate(("Rotated", "side", "text"))
    ]
    (boxes,) = locate(PageWords(14_000, words), ["Rotated side text"])
    assert [(box.x, round(box.w, 3), round(box.h, 2)) for box in boxes] == [(0.05, 0.02, 0.21)]


def test_a_page_that_repeats_one_text_takes_no_longer() -> None:
    page = page_of(*["abcdefgh" * 30] * 400)
    (boxes,) = locate(page, ["abcdefgh" * 9_000 + "x"])
    assert boxes


def test_packed_words_are_unpacked_the_same_and_damage_is_none() -> None:
    page = page_of("Grüße aus Köln", "über alles")
    assert PageWords.unpack(page.pack()) == PageWords(page.height, list(page.words))
    assert PageWords(5).pack() == ""
    for packed in ("", "x", "AAAA", page.pack()[:40], page.pack()[4:], "\u00e9"):
        assert PageWords.unpack(packed) is None
    many = PageWords(10, [Word("w", 1, 1, 1, 1)] * (MAX_WORDS + 5))
    unpacked = PageWords.unpack(many.pack())
    assert unpacked is not None
    assert len(unpacked.words) == MAX_WORDS
