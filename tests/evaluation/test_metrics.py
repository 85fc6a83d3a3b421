"""The measures of a ranking, and the cases that benchmarks use without a data folder."""

import math
from pathlib import Path

import pytest

from bedstone.evaluation.cases import read_cases
from bedstone.evaluation.metrics import first_relevant_rank, list_gains, ndcg, recall, reciprocal_rank
from bedstone.services.docs.source.folder import DocumentsFolder

ROOT = Path(__file__).parents[2]
GRADES = {"a": 3.0, "b": 1.0}


def test_ndcg_has_linear_gains_and_a_logarithmic_discount() -> None:
    ideal = 3 + 1 / math.log2(3)
    assert ndcg(["a", "b"], GRADES, 10) == 1.0
    assert ndcg(["b", "a"], GRADES, 10) == pytest.approx((1 + 3 / math.log2(3)) / ideal)
    assert ndcg(["x", "y", "a"], GRADES, 10) == pytest.approx((3 / 2) / ideal)
    assert ndcg(["x", "y", "a"], GRADES, 2) == 0.0
    assert ndcg(["a"], {}, 10) == 0.0


def test_a_repeated_id_counts_once_but_keeps_its_rank() -> None:
    assert list_gains(["a", "a", "b"], GRADES) == [3.0, 0.0, 1.0]
    assert ndcg(["a", "a", "b"], GRADES, 10) < 1.0


def test_ranks_count_from_one_and_ignore_grade_zero() -> None:
    assert first_relevant_rank(["x", "a"], GRADES) == 2
    assert first_relevant_rank(["a"], {"a": 0.0}) is None
    assert reciprocal_rank(["x", "a"], GRADES, 10) == 0.5
    assert reciprocal_rank(["x", "a"], GRADES, 1) == 0.0
    assert recall(["x", "a"], GRADES, 10) == 0.5


@pytest.mark.parametrize(
    ("cases", "folder"), [("benchmarks/questions.json", "docs"), ("demo/questions.json", "demo/docs")]
)
def test_the_cases_of_our_own_corpora_name_what_exists(cases: str, folder: str) -> None:
    files = DocumentsFolder(ROOT / folder)
    paths = set(files.paths())
    for case in read_cases(ROOT / cases):
        assert case.grades.keys() <= paths, case.name
        if case.chunk is not None:
            _, chunks = files.read(case.chunk.partition("#")[0]).document()
            assert case.chunk in {chunk.id for chunk in chunks}, case.name
