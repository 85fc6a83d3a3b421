"""Fit the scores of search to labelled data, and print how reliable they are: `python benchmarks/fit_relevance.py`.

Prints the models for `search/relevance.py`, how many right and wrong first hits they put on the right side of 0.5
(fitted on all sets, and on all but the one they are tested on), and the reliability of the scores the product gives
now. Needs the data folder next to the checkout (or $BEDSTONE_BENCH_DATA). Embedding takes half an hour of CPU the first
time; `--vectors FILE` keeps the vectors.
"""

import argparse
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from bench_search import BEDSTONE, DATA, cpu_of, unpack
from relevance_data import CORPORA, SETS, Collector, Observation

from bedstone.evaluation.beir import LabelledSet
from bedstone.search.embedders.minilm import MiniLm
from bedstone.search.embedding_cache import CachedEmbedder
from bedstone.search.relevance import Kind, Model

KINDS: tuple[Kind, ...] = ("hybrid", "semantic", "keyword", "quotation", "unspaced")
RIGHT_SHARE = 0.89  # of the right first hits that are to score 0.5 or more, at least
# A guess: of 60 first hits without a label, judged by title and opening, 23 seemed right all the same.
UNLABELLED_WEIGHT = 0.5
MIN_GROUP = 20.0
RIDGE = 1e-4
BINS = 10
HALF = 0.5


def fit(observations: Sequence[Observation]) -> np.ndarray[Any, Any]:
    """Return the coefficients for one kind: a logistic regression, raised until RIGHT_SHARE of the right hits pass."""
    columns = np.array([item.features for item in observations])
    right = np.array([item.is_right for item in observations], float)
    weights = _weights(observations)
    used = columns.std(axis=0) > 0
    used[0] = True
    if observations[0].kind == "quotation":
        used[2:] = False  # its terms are common or rare, but what counts is that they stand there
    if observations[0].kind == "unspaced":
        used[2] = False  # pairs of characters repeat by accident
    coefficients = np.zeros(columns.shape[1])
    coefficients[used] = _regress(columns[:, used], right, weights)
    logits = columns @ coefficients
    order = np.argsort(logits)
    passed = np.cumsum((weights * right)[order])
    lowest = logits[order[np.searchsorted(passed, (1 - RIGHT_SHARE) * passed[-1])]]
    coefficients[0] -= min(0.0, lowest)
    return coefficients


def _regress(
    columns: np.ndarray[Any, Any], right: np.ndarray[Any, Any], weights: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    penalty = RIDGE * weights.sum() * np.diag([0.0] + [1.0] * (columns.shape[1] - 1))
    found = np.zeros(columns.shape[1])
    for _ in range(50):
        expected = 1 / (1 + np.exp(-columns @ found))
        slope = columns.T @ (weights * (right - expected)) - penalty @ found
        curve = (columns * (weights * expected * (1 - expected))[:, None]).T @ columns + penalty
        found += np.linalg.solve(curve, slope)
    return found


def _weights(observations: Sequence[Observation]) -> np.ndarray[Any, Any]:
    """Let every set, size of base and style count the same, and in each right and wrong hits together as much.

    Quotations stay as they are: most people quote what is there.
    """
    if all(item.style == "quotation" for item in observations):
        return np.ones(len(observations))
    totals: dict[tuple[object, ...], float] = defaultdict(float)
    groups, weights = [], []
    for item in observations:
        is_unlabelled = item.base == "full" and item.asked == "own" and not item.is_right
        groups.append((item.source, item.base, item.style, item.is_right))
        weights.append(UNLABELLED_WEIGHT if is_unlabelled else 1.0)
        totals[groups[-1]] += weights[-1]
    return np.array([weight / max(totals[group], MIN_GROUP) for weight, group in zip(weights, groups, strict=True)])


def print_models(observations: Sequence[Observation]) -> None:
    """Print the lines of MODELS."""
    print("\n## Models\n")
    for kind in KINDS:
        found = fit([item for item in observations if item.kind == kind])
        print(f'    "{kind}": {Model(*(float(round(value, 2)) + 0.0 for value in found))},')


def print_validation(observations: Sequence[Observation]) -> None:
    """Print per set how many first hits are on the right side of 0.5: fitted on all sets, and without this one."""
    print("\n## First hits on the right side of 0.5, in brackets with models fitted without the set\n")
    print("| kind | set | base | style | right | right >= 0.5 | wrong, own | absent | foreign | wrong < 0.5 |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for kind in KINDS:
        every = [item for item in observations if item.kind == kind]
        model = fit(every)
        for source in dict.fromkeys(item.source for item in every):
            others = [item for item in every if item.source != source]
            without = fit(others) if {item.is_right for item in others} == {True, False} else model
            groups = dict.fromkeys((item.base, item.style) for item in every if item.source == source)
            for base, style in groups:
                mine = [item for item in every if (item.source, item.base, item.style) == (source, base, style)]
                print(f"| {kind} | {source} | {base} | {style} | {' | '.join(_sides(mine, model, without))} |")


def _sides(items: Sequence[Observation], model: np.ndarray[Any, Any], without: np.ndarray[Any, Any]) -> Iterator[str]:
    right, wrong = ([item for item in items if item.is_right is side] for side in (True, False))
    yield str(len(right))
    yield f"{_passing(right, model)} ({_passing(right, without)})"
    for asked in ("own", "absent", "foreign"):
        yield _passing([item for item in wrong if item.asked == asked], -model)
    yield f"{_passing(wrong, -model)} ({_passing(wrong, -without)})"


def _passing(items: Sequence[Observation], model: np.ndarray[Any, Any]) -> str:
    return f"{np.mean([np.dot(item.features, model) >= 0 for item in items]):.2f}" if items else "-"


def print_reliability(observations: Sequence[Observation]) -> None:
    """Print the share of right first hits by the scores the product gives, if half of all first hits are right."""
    print("\n## Reliability: share of right first hits by score (hits)\n")
    print(f"| score | {' | '.join(KINDS)} |")
    print("|---" * (len(KINDS) + 1) + "|")
    columns = [[item for item in observations if item.kind == kind] for kind in KINDS]
    weights = [_weights(items) for items in columns]
    for number in range(BINS):
        cells = []
        for items, weight in zip(columns, weights, strict=True):
            inside = np.array([min(int(item.score * BINS), BINS - 1) == number for item in items])
            right = np.array([item.is_right for item in items])
            share = (weight * right * inside).sum() / max((weight * inside).sum(), 1e-9)
            cells.append(f"{share:.2f} ({inside.sum()})" if inside.any() else "-")
        print(f"| {number / BINS:.1f} to {(number + 1) / BINS:.1f} | {' | '.join(cells)} |")


def print_summary(observations: Sequence[Observation]) -> None:
    """Print for each kind how many first hits the product as it is puts on the right side of 0.5."""
    print("\n## Scores of the product: first hits on the right side of 0.5 (hits)\n")
    print("| kind | base | right | wrong by label | answer left out | of another set |")
    print("|---|---|---|---|---|---|")
    for kind in KINDS:
        for base in ("full", "small"):
            items = [item for item in observations if (item.kind, item.base) == (kind, base)]
            cells = [_share_above([item for item in items if item.is_right], above=True)]
            for asked in ("own", "absent", "foreign"):
                wrong = [item for item in items if not item.is_right and item.asked == asked]
                cells.append(_share_above(wrong, above=False))
            print(f"| {kind} | {base} | {' | '.join(cells)} |")


def _share_above(items: Sequence[Observation], *, above: bool) -> str:
    return f"{np.mean([(item.score >= HALF) is above for item in items]):.2f} ({len(items)})" if items else "-"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vectors", type=Path, help="file that keeps vectors for the next run")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bedstone-fit-") as folder:
        work = Path(folder)
        sets = {name: LabelledSet.read(unpack(DATA / "retrieval" / f"{name}.tar.xz", work)) for name in SETS}
        embedder: Any = CachedEmbedder(MiniLm(), options.vectors or work / "vectors.sqlite")
        collector = Collector(sets, embedder)
        for name in SETS:
            collector.observe_set(name)
        for name in CORPORA:
            source = unpack(DATA / "docs" / f"{name}.tar.xz", work)
            cpu_of(BEDSTONE, "docs", "build", source, "--out", work / "indexes" / name, "--embedding-provider", "none")
        collector.observe_corpora(work / "indexes")
    observations = collector.observations
    print(f"{len(observations)} first hits.")
    print_models(observations)
    print_validation(observations)
    print_summary(observations)
    print_reliability(observations)


if __name__ == "__main__":
    main()
