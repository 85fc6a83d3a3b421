"""Questions as words: how they are split, and how words are consumed."""

import pytest

from bedstone.salesforce.questions.question import Question


@pytest.mark.parametrize(
    ("text", "words", "quoted"),
    [
        ("Show my cases.", ("Show", "my", "cases"), ()),
        (
            "named 'Acme Cycles' or \u201cNorthwind\u201d",
            ("named", "\x000\x00", "or", "\x001\x00"),
            ("Acme Cycles", "Northwind"),
        ),
        ("cases of O'Connor's shop", ("cases", "of", "O", "Connor", "s", "shop"), ()),
        ("isn't closed", ("isn't", "closed"), ()),
        ("over $1.5m or 20%", ("over", "$", "1.5m", "or", "20%"), ()),
        ("Account.Industry != 'x'", ("Account.Industry", "!=", "\x000\x00"), ("x",)),
        ("since 2026-01-31", ("since", "2026-01-31"), ()),
        ("closed-won and Closed-Won", ("closed", "won", "and", "Closed", "Won"), ()),
        ("in ('a', 'b')", ("in", "(", "\x000\x00", ",", "\x001\x00", ")"), ("a", "b")),
        ("'2024\u20132025'", ("\x000\x00",), ("2024-2025",)),
        ("?!", (), ()),
    ],
)
def test_a_question_is_split_into_words(text: str, words: tuple[str, ...], quoted: tuple[str, ...]) -> None:
    question = Question.parse(text)
    assert (question.words, question.quoted) == (words, quoted)
    assert question.folded == tuple(word.lower() for word in words)


def test_words_are_consumed_by_place_by_name_and_nearby() -> None:
    question = Question.parse("no open cases in the last year and no calls in the past year")
    question.consume(0, 2)
    question.consume_words("and", "calls")
    question.consume_near(5, "in", "the")
    assert sorted(question.consumed) == [0, 1, 3, 4, 7, 9]
    assert question.find("in", "the") == 3
    assert question.find("next") is None
    assert (question.is_period(6), question.is_period(13), question.is_period(99)) == (True, True, False)


@pytest.mark.parametrize(
    ("text", "place", "expected"),
    [
        ("cases that are not high", 4, True),
        ("cases without any high", 3, True),
        ("not red high", 2, False),
        ("high", 0, False),
        ("not the a an in of high", 6, False),
    ],
)
def test_a_negation_belongs_to_the_word_after_it(text: str, place: int, expected: bool) -> None:
    question = Question.parse(text)
    assert question.take_negation(place) is expected
    assert len(question.consumed) == expected
    assert not question.take_negation(place)
