"""Questions judged by their answers: the expected query and ours, both run on the demo org."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.question_judge import Judge, a_judge, count

FIXTURES = Path(__file__).parents[1] / "fixtures"
DEV = FIXTURES.parents[2] / "shared" / "data" / "salesforce" / "nl2soql_dev.json"
PLAIN: list[dict[str, Any]] = json.loads((FIXTURES / "plain_questions.json").read_text("utf-8"))
SIMPLE: list[dict[str, Any]] = json.loads((FIXTURES / "questions.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    with a_judge(tmp_path_factory.mktemp("org")) as judge:
        yield judge


def test_plain_questions_get_the_right_records_or_a_refusal(judge: Judge) -> None:
    judged = [judge.judge(case["question"], case["soql"]) for case in (*PLAIN, *SIMPLE)]
    missed = [item for item in judged if item.outcome != "right"]
    figures = count(judged)
    assert len(judged) >= 190
    assert figures["right"] >= 0.97 * len(judged), missed
    assert figures["wrong"] <= 1, missed


@pytest.mark.skipif(not DEV.exists(), reason="the data folder is not here")
def test_questions_of_others_get_the_right_records_or_a_refusal(judge: Judge) -> None:
    cases = [case for case in json.loads(DEV.read_text("utf-8"))["cases"] if not case.get("gold_defect")]
    judged = [judge.judge(case["question"], case["soql"]) for case in cases]
    missed = [item for item in judged if item.outcome != "right"]
    assert count(judged)["right"] >= 0.9 * len(cases), missed
    assert count(judged)["wrong"] <= 3, missed


@pytest.mark.parametrize("word", ["zork", "Zork", "未知", "неизвестно", "مجهول", "Straßenfest"])
def test_a_word_that_means_nothing_is_named_wherever_it_stands(judge: Judge, word: str) -> None:
    lost = []
    for case in PLAIN[::3]:
        words = case["question"].rstrip(".?").split()
        if "'" in case["question"] or '"' in case["question"]:
            continue  # inside a quotation it is part of the value
        for place in (1, len(words) // 2, len(words)):
            draft = judge.interpreter.interpret(" ".join([*words[:place], word, *words[place:]]))
            if draft is None or word in draft.ungrounded:
                continue
            if draft.is_complete and word not in draft.soql():
                lost.append((case["question"], place, draft.soql()))
    assert lost == []


@pytest.mark.parametrize(
    "question",
    [
        "opportunities closing this quarter over $50k",
        "contacts whose email is missing",
        "(accounts), in the Banking industry!",
        "leads where IsConverted = true",
    ],
)
def test_a_question_that_names_no_company_gets_none(judge: Judge, question: str) -> None:
    """One company of the org is called 名古屋自転車, which has no Latin letter or digit."""
    draft = judge.interpreter.interpret(question)
    assert draft is not None
    assert "名古屋" not in draft.soql()


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("cases of 名古屋自転車", "WHERE Account.Name = '名古屋自転車'"),
        ("opportunities of Müller_Räder", "WHERE Account.Name = 'Müller_Räder'"),
        ("opportunities of Muller_Rader", "WHERE Account.Name = 'Müller_Räder'"),
        ("contacts whose last name is Müller", "WHERE LastName = 'Müller'"),
        ("accounts in Malmö", "WHERE BillingCity = 'Malmö'"),
        ("accounts in 東京", "WHERE BillingCity = '東京'"),
        ("accounts whose name contains '自転車'", "WHERE Name LIKE '%自転車%'"),
        ("contacts at «Москва»", "WHERE Account.Name LIKE 'Москва%'"),
        ("contacts whose last name is محمد", "WHERE LastName = 'محمد'"),
    ],
)
def test_names_of_any_script_are_kept(judge: Judge, question: str, expected: str) -> None:
    draft = judge.interpreter.interpret(question)
    assert draft is not None
    assert draft.is_complete, draft.ungrounded
    assert expected in draft.soql()


@pytest.mark.parametrize(
    ("question", "unknown"),
    [
        ("contacts of Москва", "Москва"),
        ("contacts of 未知", "未知"),
        ("accounts غير", "غير"),
        ("offene accounts", "offene"),
    ],
)
def test_unknown_words_of_any_script_are_named(judge: Judge, question: str, unknown: str) -> None:
    draft = judge.interpreter.interpret(question)
    assert draft is not None
    assert unknown in draft.ungrounded
    assert not draft.is_complete
