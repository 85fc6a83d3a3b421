"""Keyword search in other languages than English: what it finds, what it must not find, and what it highlights."""

# ruff: noqa: RUF001 - letters of other scripts

from collections.abc import Mapping
from pathlib import Path

import pytest

from bedstone.records import Chunk, Document
from bedstone.search.embedding import QueryEmbedder
from bedstone.search.hits import Hit, SearchRequest
from bedstone.search.indexes.keyword import KeywordIndex
from bedstone.search.indexes.opening import open_index
from bedstone.search.language import KNOWN_LANGUAGE_WEIGHT, OTHER_SCRIPT_WEIGHT, semantic_weight
from bedstone.search.matching import Matcher
from bedstone.search.retriever import Retriever
from bedstone.search.stemming import language_of_text, languages_of_query
from bedstone.search.unspaced import query_grams
from bedstone.store.engines.memory import MemoryStore

FOLDER = Path(__file__).parents[1] / "fixtures" / "languages"
FILES = {path.stem: path for path in sorted(FOLDER.glob("*.txt"))}
GERMAN = {
    "flat": "Die Kündigungsfrist für diese Wohnung beträgt drei Monate.",
    "notice": "Nach der Kündigung läuft die Frist für den Auszug. Wer auszieht, räumt die Zimmer.",
    "hotel": "Einzelzimmer und Doppelzimmer werden im Hotel über das Netz gebucht.",
    "office": "Das Bürgeramt hat am Montag geöffnet, die Antwort kommt mit der Post.",
    "shed": "Das Fahrrad steht im Keller und wird auch morgen nicht gebraucht.",
}
OTHERS = {
    "spruce": "Ёлка стоит в комнате, и её не убирают до января.",
    "light": "İSTANBUL için bir ışık ve İzmir nasıl görünür?",
    "pupil": "Le résumé de l'élève est prêt pour être lu par les autres.",
    "secret": "كَلِمَةُ السِّرِّ في الملــف الأوَّل على القرص",
    "wide": "使用ＡＰＩ设置ﾊﾟｽﾜｰﾄﾞ。",
    "lease": "De opzegtermijn voor deze woning is drie maanden en wordt niet verlengd.",
}


def retriever(texts: Mapping[str, str]) -> Retriever:
    store = MemoryStore()
    store.put(
        (Document(name, "", ""), [Chunk(id=name, text=text, plain=text, heading="")]) for name, text in texts.items()
    )
    index = open_index(store, None, None)
    index.catch_up()
    return Retriever(store, index, QueryEmbedder(lambda: None))


def search(texts: Mapping[str, str], query: str) -> list[Hit]:
    return list(retriever(texts).search(SearchRequest(query)).hits)


def highlighted(hit: Hit) -> list[str]:
    return [hit.snippet.text[start:end] for start, end in hit.snippet.highlights]


def rows(language: str) -> list[list[str]]:
    return [line.split(" | ") for line in FILES[language].read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("language", FILES)
def test_questions_find_texts_with_other_forms_of_their_words(language: str) -> None:
    texts = {title: f"{title}\n{text}" for title, text, _ in rows(language)}
    base = retriever(texts)
    ranks = []
    for title, _, question in rows(language):
        hits = base.search(SearchRequest(question)).hits
        names = [hit.head.id for hit in hits]
        ranks.append(names.index(title) + 1 if title in names else 99)
        if ranks[-1] == 1:
            assert hits[0].snippet.highlights
    assert len(ranks) == 12
    assert sum(rank == 1 for rank in ranks) >= 11
    assert max(ranks) <= 3


def test_one_index_of_all_languages_answers_in_each_of_them() -> None:
    texts = {f"{name}/{title}": f"{title}\n{text}" for name in FILES for title, text, _ in rows(name)}
    base = retriever(texts)
    asked = [(f"{name}/{title}", question) for name in FILES for title, _, question in rows(name)]
    first = [base.search(SearchRequest(question, limit=1)).hits[0].head.id for _, question in asked]
    assert sum(name == found for (name, _), found in zip(asked, first, strict=True)) >= 0.93 * len(asked)


def test_a_word_of_one_character_is_found_in_a_longer_word_and_question_words_are_not() -> None:
    texts = {"duck": "野鸭以水草和谷粒为食。", "goose": "鹅什么时候换羽取决于气候。", "database": "数据库备份的方法。"}
    assert [hit.head.id for hit in search(texts, "鸭子吃什么")] == ["duck"]
    assert highlighted(search(texts, "鸭子吃什么？")[0]) == ["鸭"]
    assert [hit.head.id for hit in search(texts, "什么时候")] == ["goose"]  # all that is asked for


def test_pairs_count_more_than_single_characters() -> None:
    texts = {"noodles": "面条和包子的做法。", "bread": "面包的做法。", "screen": "界面与软件包。"}
    hits = search(texts, "面包怎么做")
    assert hits[0].head.id == "bread"
    assert all(hit.score < hits[0].score / 2 for hit in hits[1:])


def test_particles_of_japanese_and_korean_are_not_asked_for() -> None:
    assert query_grams("退去の通知はいつまでにすればいいですか") == ["退去", "通知"]
    assert query_grams("세입자가 나갈 때 통지는 언제까지 하나요?")[:2] == ["세입", "입자"]
    assert query_grams("りんご") == ["りん", "んご"]  # a word in letters that particles have too


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("Frist", {"notice", "flat"}),
        ("Kündigung", {"notice", "flat"}),
        ("Kündigungsfristen", {"flat", "notice"}),
        ("kundigungen", {"notice", "flat"}),
        ("Zimmer", {"notice", "hotel"}),
        ("Hotelzimmer", {"notice", "hotel"}),
        ("Wort", set()),  # Antwort
        ("Rad", set()),  # Fahrrad: the first part is no word of these texts
        ("Tag", set()),  # Montag
    ],
)
def test_german_compounds(query: str, found: set[str]) -> None:
    hits = search(GERMAN, query)
    assert {hit.head.id for hit in hits} == found


def test_the_word_itself_comes_before_compounds_and_both_are_highlighted() -> None:
    notice, flat = search(GERMAN, "Frist")
    assert (notice.head.id, flat.head.id) == ("notice", "flat")
    assert highlighted(notice) == ["Frist"]
    assert highlighted(flat) == ["frist"]


@pytest.mark.parametrize(
    ("query", "found", "marked"),
    [
        ("елки", "spruce", ["Ёлка"]),
        ("istanbul", "light", ["İSTANBUL"]),
        ("ISTANBUL", "light", ["İSTANBUL"]),
        ("isik", "light", ["ışık"]),
        ("resume eleves", "pupil", ["résumé", "élève"]),
        ("كلمة السر", "secret", ["كَلِمَةُ", "السِّرِّ"]),
        ("ملف اول", "secret", ["الملــف", "الأوَّل"]),
        ("api", "wide", ["ＡＰＩ"]),
        ("opzegtermijnen", "lease", ["opzegtermijn"]),
    ],
)
def test_other_ways_to_write_a_word_find_and_highlight_it(query: str, found: str, marked: list[str]) -> None:
    hit = search(OTHERS, query)[0]
    assert hit.head.id == found
    assert highlighted(hit) == marked


@pytest.mark.parametrize(
    "text",
    [
        "Configure the café client: its naïve retries die without a timeout.",
        "| os | na | eu | do |\n|---|---|---|---|\n| linux | da | em | se |",
        "import asyncio\nfrom pathlib import Path\n\nasync def main() -> None: ...",
        "Les Misérables is a novel by Victor Hugo and it is not short.",
        "MIT License. Copyright Vincent van der Meer.",
    ],
)
def test_english_and_code_are_not_stemmed_by_other_rules(text: str) -> None:
    assert language_of_text(text) is None


def test_an_english_index_has_no_other_language() -> None:
    index = KeywordIndex()
    store = MemoryStore()
    text = "The client waits after every failed attempt. Do not die in the main loop, or the user has to wait."
    store.put([(Document("a", "", ""), [Chunk(id="a", text=text, plain=text, heading="")])])
    index.catch_up(store)
    assert dict(index.languages) == {}
    index.finish()


def test_the_language_of_a_query_must_show_or_be_likely() -> None:
    assert languages_of_query("Wann muss ich die Miete zahlen?") == ("de",)
    assert languages_of_query("how do I set the timeout of a client?") == ()
    assert languages_of_query("Miete", {"de": 0.5, "fr": 0.001}) == ("de",)
    assert languages_of_query("how to pay", {"de": 0.5}) == ()
    assert languages_of_query("когда платить", {"de": 1.0}) == ()


def test_a_model_takes_part_in_the_languages_it_knows() -> None:
    several = frozenset({"en", "de", "zh", "ru"})
    assert semantic_weight("鸭子吃什么", several) == semantic_weight("Was frisst die Ente?", several)
    assert semantic_weight("Was frisst die Ente?", several) == KNOWN_LANGUAGE_WEIGHT
    assert semantic_weight("क्या खाती है बत्तख", several) == OTHER_SCRIPT_WEIGHT
    assert semantic_weight("鸭子吃什么", frozenset({"en"})) == OTHER_SCRIPT_WEIGHT


def test_texts_are_highlighted_without_an_index() -> None:
    matcher = Matcher("Wo sind die Häuser?")
    text = "Das Haus und der Hausmeister"
    assert next(text[start:end] for start, end, _ in matcher.find(text)) == "Haus"
    matcher = Matcher("수영장")
    assert [term for _, _, term in matcher.find("수영장은 매일 연다")] == ["수영", "영장"]
