"""Whether a text has a quotation: true ones however they are set or scanned, and none with another fact."""

import json
import re
import textwrap
import time
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedstone.search.quotes import MAX_QUOTE_CHARACTERS, Difference, find_quote

FIXTURE = Path(__file__).parents[1] / "fixtures" / "quotes.json"
MANUAL = """# Pump

The pump must not run dry for more than 18 sec-
onds. The maximum pres-
sure is 1.8 bar at -5 °C. Never open the **\ufb01lter** while it is hot.

[page 2]

| Model | Pressure |
|-------|----------|
| A12   | 5 bar    |
| B7    | 12 bar   |

The maintenace of the pump is done by Miller & Sons, unless agreed otherwise.
"""
BEFORE = "Earlier remarks are kept in the first part of this file.\n\n"
BEHIND = "\n\nFurther remarks follow on the next sheet."
LARGE = 5_000_000


@cache
def fixture() -> dict[str, list[dict[str, Any]]]:
    return json.loads(FIXTURE.read_text("utf-8"))  # type: ignore[no-any-return]


@cache
def documents() -> dict[str, str]:
    return {document["id"]: document["text"] for document in fixture()["documents"]}


def true_quotes() -> list[tuple[str, str]]:
    """The text and the quotation of each true case."""
    return [(documents()[case["document"]], case["quote"]) for case in fixture()["true"]]


def plain_quotes() -> list[str]:
    """True quotations without quotation marks around them and without an ellipsis."""
    quotes = (quote.strip('"\u201c\u201d\u201e\u00ab\u00bb') for _, quote in true_quotes())
    return [quote for quote in quotes if "\u2026" not in quote]


def test_a_quotation_is_found_word_for_word() -> None:
    match = find_quote(MANUAL, " The pump must not run dry ")
    assert (match.kind, match.distance, match.differences) == ("exact", 0, ())
    assert MANUAL[match.start : match.end] == match.text == "The pump must not run dry"
    assert match.is_confirmed


def test_a_quotation_is_found_despite_typesetting_and_its_range_is_that_of_the_source() -> None:
    match = find_quote(MANUAL, "\u201cMaximum pressure is 1.8 bar at \u22125 °C. Never open the filter\u201d")
    assert match.kind == "normalised"
    assert match.text == "maximum pres-\nsure is 1.8 bar at -5 °C. Never open the **\ufb01lter"
    assert MANUAL[match.start : match.end] == match.text


def test_words_that_a_scan_misread_are_confirmed_and_named() -> None:
    match = find_quote(MANUAL, "The maintenance of the pump is done by Miller & Sons")
    assert (match.kind, match.distance) == ("normalised", 0.1)
    assert match.differences == (Difference("maintenance", "maintenace"),)


@pytest.mark.parametrize(
    ("source", "quote"),
    [
        ("Annotate it with Noti\ufb01cation or Exception.", "Annotate it with Notification or Exception."),
        ("Annotate it with ServerNoti\ufb01cation or Exception.", "Annotate it with ServerNotification or Exception."),
        ("The two seals are of di\ufb00crent size and colour.", "The two seals are of different size and colour."),
    ],
)
def test_ligatures_stand_for_their_letters_in_identifiers_and_in_misread_words(source: str, quote: str) -> None:
    assert find_quote(f"{BEFORE}{source}{BEHIND}", quote).kind == "normalised"


@pytest.mark.parametrize(
    ("quote", "difference"),
    [
        ("The maximum pressure is 18 bar", Difference("18", "1.8")),
        ("The pump must run dry for more than 18 seconds", Difference("", "not")),
        ("Open the filter while it is hot", Difference("Open", "Never open")),
        ("The maintenance of the pump is done by Meier & Sons", Difference("Meier", "Miller")),
        ("A12 | 12 bar", Difference("A12", "B7")),
        ("Never open the valve while it is hot", Difference("valve", "\ufb01lter")),
    ],
)
def test_another_fact_is_not_confirmed_and_the_nearest_passage_says_what_differs(
    quote: str, difference: Difference
) -> None:
    match = find_quote(MANUAL, quote)
    assert match.kind == "nearest"
    assert not match.is_confirmed
    assert 0 < match.distance < 0.5
    assert difference in match.differences
    assert MANUAL[match.start : match.end] == match.text


@pytest.mark.parametrize(
    "quote", ["", "  \n", "...", "The cat sat on the mat with a hat", "x" * (MAX_QUOTE_CHARACTERS + 1)]
)
def test_without_anything_comparable_a_quotation_is_absent(quote: str) -> None:
    match = find_quote(MANUAL, quote)
    assert (match.kind, match.start, match.end, match.text, match.distance) == ("absent", 0, 0, "", 1.0)


def test_the_shown_text_is_bounded_and_the_range_is_not() -> None:
    text = " ".join(f"word{number}" for number in range(700))
    match = find_quote(text, text[:4_000].rpartition(" ")[0].replace(" ", "\n"))
    assert match.is_confirmed
    assert len(match.text) == 1_000
    assert match.end > 3_900


@pytest.mark.parametrize("place", range(9_976, 10_024, 4))
def test_a_large_text_is_read_in_blocks_that_do_not_cut_a_quotation(
    place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bedstone.search.quotes.tolerant.BLOCK", 10_000)
    text = "x " * (place // 2) + "It is\nunable to restart by itself. " + "y " * 10_000
    match = find_quote(text, "It is unable to restart by itself")
    assert (match.kind, match.start) == ("normalised", place)
    assert not find_quote(text, "Able to restart by itself").is_confirmed


@pytest.mark.parametrize("case", fixture()["same"], ids=lambda case: case["quote"][:40])
def test_the_same_text_is_confirmed(case: dict[str, str]) -> None:
    match = find_quote(f"Some words come before this. {case['source']}\n\nAnd some come after it.", case["quote"])
    assert match.is_confirmed, match


@pytest.mark.parametrize("case", fixture()["different"], ids=lambda case: case["quote"][:40])
def test_a_text_with_another_meaning_is_not_confirmed(case: dict[str, str]) -> None:
    match = find_quote(f"Some words come before this. {case['source']}\n\nAnd some come after it.", case["quote"])
    assert not match.is_confirmed, match


def test_nearly_all_true_quotations_are_confirmed() -> None:
    missing = [quote for text, quote in true_quotes() if not find_quote(text, quote).is_confirmed]
    assert len(fixture()["true"]) >= 200
    assert len(missing) <= 0.03 * len(fixture()["true"]), missing


def test_hardly_any_altered_quotation_is_confirmed() -> None:
    cases = fixture()["altered"]
    passed = [case for case in cases if find_quote(documents()[case["document"]], case["quote"]).is_confirmed]
    assert len(cases) >= 200
    assert len(passed) <= 0.01 * len(cases), passed


def break_lines(quote: str, random: Random) -> str:
    return re.sub(" ", lambda _: random.choice([" ", " ", "\n", "  ", "\n   "]), quote)


def hyphenate(quote: str, random: Random) -> str:
    def split(word: re.Match[str]) -> str:
        place = random.randint(2, len(word[0]) - 3)
        return f"{word[0][:place]}-\n{word[0][place:]}" if random.random() < 0.5 else word[0]

    return re.sub(r"\b[a-zäöü]{7,}\b", split, quote)


def add_soft_hyphens(quote: str, _: Random) -> str:
    return re.sub(r"\b([^\W\d_]{3})([^\W\d_]{4,})\b", "\\1\u00ad\\2", quote)


def set_ligatures(quote: str, _: Random) -> str:
    for letters, ligature in (
        ("ffi", "\ufb03"),
        ("ffl", "\ufb04"),
        ("ff", "\ufb00"),
        ("fi", "\ufb01"),
        ("fl", "\ufb02"),
    ):
        quote = quote.replace(letters, ligature)
    return quote


def decompose(quote: str, _: Random) -> str:
    return unicodedata.normalize("NFD", quote)


def set_quotes_and_dashes(quote: str, _: Random) -> str:
    return quote.replace("'", "\u2019").replace(' "', " \u201c").replace('"', "\u201d").replace(" - ", " \u2013 ")


def add_markdown(quote: str, random: Random) -> str:
    if re.search(r"[*`|\[\]_<>&~^]", quote):
        return quote
    marks = ("**{}**", "*{}*", "`{}`", "_{}_", "[{}](https://a.example/x_1)")
    words = [
        random.choice(marks).format(word) if random.random() < 0.2 and word.isalnum() else word
        for word in quote.split(" ")
    ]
    return random.choice(["", "- ", "> ", "## "]) + " ".join(words)


def break_page(quote: str, random: Random) -> str:
    words = quote.split(" ")
    place = random.randrange(len(words))
    return " ".join(words[:place]) + "\n\n[page 7]\n\n" + " ".join(words[place:])


def escape_entities(quote: str, _: Random) -> str:
    quote = quote.replace("&", "&amp;").replace("<", "&lt;").replace("ü", "&uuml;")
    return quote.replace(" ", "&nbsp;", 1)


def misread(quote: str, random: Random) -> str:
    """Damage a long word in eight, as scans do."""
    words = quote.split(" ")
    places = [place for place, word in enumerate(words) if re.fullmatch(r"[a-z]{7,}", word)]
    confusions = [("m", "rn"), ("l", "1"), ("i", "l"), ("c", "e"), ("o", "0"), ("l", "I"), ("rn", "m")]
    for place in random.sample(places, min(len(places), len(words) // 8)):
        word = words[place]
        old, new = random.choice([pair for pair in confusions if pair[0] in word[1:-1]] or [("", "")])
        words[place] = word[0] + word[1:].replace(old, new, 1) if old else word
    return " ".join(words)


@pytest.mark.parametrize(
    ("damage", "share"),
    [
        (break_lines, 1.0),
        (hyphenate, 1.0),
        (add_soft_hyphens, 1.0),
        (set_ligatures, 1.0),
        (decompose, 1.0),
        (set_quotes_and_dashes, 1.0),
        (add_markdown, 1.0),
        (break_page, 1.0),
        (escape_entities, 1.0),
        (misread, 0.95),  # a misread negation is not repaired
    ],
)
def test_what_typesetting_and_scanning_do_to_a_source_keeps_its_quotations(
    damage: Callable[[str, Random], str], share: float
) -> None:
    random = Random(7)
    quotes = plain_quotes()
    sources = [BEFORE + damage(quote, random) + BEHIND for quote in quotes]
    missing = [
        (quote, source)
        for quote, source in zip(quotes, sources, strict=True)
        if not find_quote(source, quote).is_confirmed
    ]
    assert len(missing) <= (1 - share) * len(quotes) + 1e-9, missing


def change_numbers(quote: str, random: Random) -> Iterator[str]:
    """Yield the quotation with each number changed in some ways, and with neighbours exchanged."""
    numbers = list(re.finditer(r"\d+(?:[.,:]\d+)*", quote))
    for found in numbers:
        number, before, behind = found[0], quote[: found.start()], quote[found.end() :]
        place = random.choice([index for index, sign in enumerate(number) if sign.isdigit()])
        digit = str((int(number[place]) + random.randint(1, 9)) % 10)
        yield before + number[:place] + digit + number[place + 1 :] + behind
        yield f"{before}{number}0{behind}"
        if len(number) > 1:
            yield before + number[:-1].rstrip(".,:") + behind
        if number.isdigit() and len(number) > 1:
            yield f"{before}{number[0]}.{number[1:]}{behind}"
        if before[-1:] in ("", " "):
            yield f"{before}-{number}{behind}"
    for one, other in pairwise(numbers):
        if one[0] != other[0]:
            between = quote[one.end() : other.start()]
            yield quote[: one.start()] + other[0] + between + one[0] + quote[other.end() :]


def change_names(quote: str, random: Random) -> Iterator[str]:
    """Yield the quotation with each word that has a capital inside a sentence replaced, misspelled and shortened."""
    for found in re.finditer(r"(?<=[a-z,;] )[A-ZÄÖÜ][a-zäöüßé]{2,}", quote):
        name, before, behind = found[0], quote[: found.start()], quote[found.end() :]
        place = random.randrange(1, len(name))
        letter = random.choice([letter for letter in "aeiounrst" if letter != name[place]])
        yield before + random.choice(["Anderson", "Meyer", "Tokyo", "Kowalski"]) + behind
        yield before + name[:place] + letter + name[place + 1 :] + behind
        yield before + name[:place] + name[place + 1 :] + behind


def change_negations(quote: str, _: Random) -> Iterator[str]:
    """Yield the quotation without each of its negations, and with one behind each verb that can have one."""
    negations = (
        "not|no|never|without|cannot|neither|nor|nicht|kein|keine|ne|pas|sans|inte|niet|non|не|без|لا|n['\u2019]t"
    )
    for found in re.finditer(rf"\b(?:{negations})\b|不|未|ません|ないで", quote):
        shorter = quote[: found.start()] + quote[found.end() :]
        yield re.sub(" +", " ", shorter).strip()
    verbs = "is|are|was|were|must|may|can|will|shall|has|have|had|do|does"
    for found in re.finditer(rf"\b(?:{verbs})\b(?! not)", quote):
        yield f"{quote[: found.end()]} not{quote[found.end() :]}"


def change_polarity(quote: str, _: Random) -> Iterator[str]:
    """Yield the quotation with each word of a pair of opposites replaced, and with a prefix before each long word."""
    opposites = """more/less before/after above/below and/or may/must minimum/maximum all/some with/without within/after
        included/excluded permitted/prohibited first/last both/neither always/never least/most due/overdue"""
    for pair in opposites.split():
        for old, new in (pair.split("/"), reversed(pair.split("/"))):
            for found in re.finditer(rf"\b{old}\b", quote):
                yield quote[: found.start()] + new + quote[found.end() :]
    for found in list(re.finditer(r"\b[a-z]{6,}\b", quote))[:2]:
        yield f"{quote[: found.start()]}un{quote[found.start() :]}"
        yield f"{quote[: found.start()]}in{quote[found.start() :]}"


@pytest.mark.parametrize("change", [change_numbers, change_names, change_negations, change_polarity])
def test_a_change_of_a_fact_is_never_confirmed(change: Callable[[str, Random], Iterator[str]]) -> None:
    random = Random(11)
    altered = [(text, other) for text, quote in true_quotes() for other in change(quote, random) if other != quote]
    passed = [other for text, other in altered if find_quote(text, other).is_confirmed]
    assert len(altered) > 200
    assert len(passed) <= 0.01 * len(altered), passed


def test_sentences_are_found_in_what_ocr_reads_of_their_page() -> None:
    pytest.importorskip("tesserocr")
    from PIL import Image, ImageDraw, ImageFilter, ImageFont  # noqa: PLC0415

    from bedstone.ingest.extraction import ReadOptions  # noqa: PLC0415
    from bedstone.ingest.ocr import run_ocr  # noqa: PLC0415

    confirmed, count = 0, 0
    for name in ("parking", "policy"):
        lines = textwrap.wrap(documents()[name], 72)
        page = Image.new("L", (1_240, 120 + 42 * len(lines)), 255)
        drawing, font = ImageDraw.Draw(page), ImageFont.load_default(28)
        for number, line in enumerate(lines):
            drawing.text((60, 60 + 42 * number), line, fill=0, font=font)
        text = run_ocr(page.filter(ImageFilter.GaussianBlur(0.8)), ReadOptions()).text
        sentences = re.split(r"(?<=\.) (?=[A-Z])", documents()[name])
        confirmed += sum(find_quote(text, sentence).is_confirmed for sentence in sentences)
        count += len(sentences)
    assert confirmed >= 0.9 * count


def repeat(text: str) -> str:
    return text * (LARGE // len(text))


WORDS = [f"word{number % 977} and{number}" for number in range(380_000)]
LONG_QUOTE = " ".join(WORDS[200_000:200_220])


@pytest.mark.parametrize(
    ("text", "quote", "kind"),
    [
        (" ".join(WORDS), LONG_QUOTE.replace(" ", "  "), "normalised"),
        (" ".join(WORDS), f"{LONG_QUOTE} other", "nearest"),
        (repeat("a "), "a " * 2_000 + "b", "nearest"),
        (repeat("a "), "aa " * 1_000, "nearest"),
        (repeat(f"{LONG_QUOTE.split()[0]} "), LONG_QUOTE, "absent"),
        (repeat(f"{LONG_QUOTE} changed. "), LONG_QUOTE.replace("word", "words", 1), "nearest"),
        (repeat("the pump must not run dry for 18 minutes. "), "the pump must run dry for 18 minutes", "nearest"),
        (repeat("a b c d e f g h i j. "), " ... ".join(["a b c d e f g h i j"] * 5 + ["k l m n o p q r"]), "nearest"),
        (repeat("[a]( "), LONG_QUOTE, "absent"),
        (f"pump{'*_' * 2_000_000}valve is open", "pump valve is closed", "nearest"),
    ],
    ids=["normalised", "nearest", "aaa", "aa", "first word", "near copies", "sentences", "parts", "marks", "gap"],
)
def test_large_and_hostile_texts_take_linear_time(text: str, quote: str, kind: str) -> None:
    find_quote("warm up", "the tables of characters")
    started = time.process_time()
    assert find_quote(text, quote).kind == kind
    assert time.process_time() - started < 4


SIGNS = r"** * _ ` | [ ] ](x) ( ) &amp; &lt; <b> </b> <br> ... . , ; : ? ! ' % $ # ## ^ ~ \ / @ [page 3] [^1]"
LETTERS = "a b The not 5 1.8 1,000 -5 maintenance maintenace"
SPACES = (" ", "\n", "\n\n", "-\n", "\n- ", "\n1. ", "\n> ", "\n3\n[page 4]\n", "\n```py\n", "\x00", "\ud800")
OTHERS = (
    "\ufb01\u00e9\u0301\u00ad\u200b\u00bd\u00b2\u2026\u2019\u201c"
    "\u4e2d\u4e0d\uac00\u1100\u1161\u00df\u0130\u2116\u2103\u0663\u20ac"
)
PIECES = st.sampled_from([*SIGNS.split(), *LETTERS.split(), *SPACES, *SPACES, *OTHERS])


@given(text=st.lists(PIECES, max_size=60).map("".join), quote=st.lists(PIECES, max_size=12).map("".join))
def test_a_match_is_a_range_of_the_text(text: str, quote: str) -> None:
    match = find_quote(text + quote + text, quote)
    assert 0 <= match.start <= match.end <= len(text + quote + text)
    assert match.text == (text + quote + text)[match.start : match.end]
    assert match.is_confirmed or match.distance > 0
