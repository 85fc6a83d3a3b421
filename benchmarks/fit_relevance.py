"""Fit the scores of search to labelled data, and print how reliable they are.

    python benchmarks/fit_relevance.py --cache /tmp/fit [--write]

Searches six labelled sets and two documentation corpora as the product does, and prints the models for
`search/relevance.py`, how many right and wrong first hits they put on the right side of 0.5 (fitted on all sets, and on
all but the one they are tested on), questions that nothing answers (`tests/fixtures/unanswerable.json`), reliability by
score, and nDCG@10 of each side and of both fused. `--write` puts the models into `search/relevance.py`.

Run it again after every change to keyword ranking, to terms or to fusion: the evidence changes with them. It needs the
data folder next to the checkout (or $BEDSTONE_BENCH_DATA). Embedding takes ten minutes of CPU the first time; `--cache`
keeps the vectors of passages and questions, and later runs take about one. Progress goes to standard error.
"""

import argparse
import re
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from bench_search import BEDSTONE, DATA, ROOT, cpu_of, unpack
from relevance_data import CORPORA, SETS, Collector, Observation

import bedstone.search.relevance as scoring
from bedstone.evaluation.beir import LabelledSet
from bedstone.search.embedders.minilm import MiniLm
from bedstone.search.embedding_cache import CachedEmbedder
from bedstone.search.relevance import STRONG_SCORE, Kind, Model

KINDS: tuple[Kind, ...] = ("hybrid", "semantic", "keyword", "quotation", "unspaced")
RIGHT_SHARE = 0.89  # of the right first hits that are to score 0.5 or more, at least
# The same for each of two models that a hit must pass; chosen so that questions that nothing answers fail.
PASSING_SHARES: Mapping[Kind, float] = {"hybrid": 0.955, "semantic": 0.94, "keyword": 0.93}
# A guess: of 60 first hits without a label, judged by title and opening, 23 seemed right all the same.
UNLABELLED_WEIGHT = 0.5
MIN_GROUP = 20.0
RIDGE = 1e-4
BINS = 10
HALF = STRONG_SCORE
MODULE = ROOT / "src" / "bedstone" / "search" / "relevance.py"
TABLES = ("MODELS", "RELATIVE_MODELS")


Coefficients = np.ndarray[Any, Any]
COLUMNS = {name: number for number, name in enumerate(Model.__slots__)}


def fit(observations: Sequence[Observation], left_out: str = "relative") -> Coefficients:
    """Return the coefficients for one kind: a logistic regression without a column, raised until right hits pass."""
    columns = np.array([item.features for item in observations])
    right = np.array([item.is_right for item in observations], float)
    weights = _weights(observations)
    used = columns.std(axis=0) > 0
    used[0] = True
    used[COLUMNS[left_out]] = False
    if observations[0].kind == "quotation":
        used[2:] = False  # its terms are common or rare, but what counts is that they stand there
    if observations[0].kind == "unspaced":
        used[2] = used[COLUMNS["relative"]] = False  # pairs of characters repeat by accident
    coefficients = np.zeros(columns.shape[1])
    coefficients[used] = _regress(columns[:, used], right, weights)
    if observations[0].kind in PASSING_SHARES:
        return _raise_by_size(coefficients, observations)
    logits = columns @ coefficients
    order = np.argsort(logits)
    passed = np.cumsum((weights * right)[order])
    lowest = logits[order[np.searchsorted(passed, (1 - RIGHT_SHARE) * passed[-1])]]
    coefficients[0] -= min(0.0, lowest)
    return coefficients


def _raise_by_size(coefficients: Coefficients, observations: Sequence[Observation]) -> Coefficients:
    """Move the constant and the weight of the number of chunks until enough right hits pass.

    Those of small bases and those of whole sets: one constant for both would fit neither.
    """
    asked = [item for item in observations if item.is_right and item.asked == "own" and item.style == "question"]
    lowest, sizes = [], []
    missing = 1 - PASSING_SHARES[observations[0].kind]
    for base in ("small", "full"):
        items = [item for item in asked if item.base == base]
        counts = Counter(item.source for item in items)
        logits = np.array([np.dot(item.features, coefficients) for item in items])
        order = np.argsort(logits)
        passed = np.cumsum(np.array([1 / counts[item.source] for item in items])[order])
        lowest.append(logits[order[np.searchsorted(passed, missing * passed[-1])]])
        sizes.append(np.mean([item.features[COLUMNS["chunks"]] for item in items]))
    slope = (lowest[0] - lowest[1]) / (sizes[1] - sizes[0])
    coefficients[COLUMNS["chunks"]] += slope
    coefficients[0] -= lowest[0] + slope * sizes[0]
    return coefficients


def fit_both(observations: Sequence[Observation]) -> list[Coefficients]:
    """Return the models that a hit must pass: one of its strength, and one of its share of the highest strength."""
    models = [fit(observations)]
    return [*models, fit(observations, "strength")] if observations[0].kind in PASSING_SHARES else models


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


def fit_models(observations: Sequence[Observation]) -> list[dict[Kind, Model]]:
    """Return MODELS and RELATIVE_MODELS."""
    tables: list[dict[Kind, Model]] = [{}, {}]
    for kind in KINDS:
        for table, values in zip(tables, fit_both([item for item in observations if item.kind == kind]), strict=False):
            table[kind] = Model(*(float(round(value, 2)) + 0.0 for value in values))
    return tables


def format_models(models: Mapping[Kind, Model]) -> str:
    """Return the lines of a table of models."""
    return "".join(f'    "{kind}": {_format(model)},\n' for kind, model in models.items())


def _format(model: Model) -> str:
    """Return a model as the source has it, without what is zero."""
    values = {name: getattr(model, name) for name in COLUMNS}
    kept = {name: value for name, value in values.items() if value or name in ("constant", "covered")}
    return f"Model({', '.join(f'{name}={value}' for name, value in kept.items())})"


def write_models(tables: Sequence[Mapping[Kind, Model]]) -> None:
    """Put the models into the module that uses them."""
    text = MODULE.read_text()
    for name, models in zip(TABLES, tables, strict=True):
        block = re.compile(rf"^({name}: Mapping\[Kind, Model\] = \{{).*?\}}$", re.MULTILINE | re.DOTALL)
        lines = format_models(models)
        text, count = block.subn(lambda found, lines=lines: f"{found[1]}\n{lines}}}", text)  # type: ignore[misc]
        if count != 1:
            sys.exit(f"Cannot find {name} in {MODULE}. Put the models there yourself.")
    MODULE.write_text(text)


def print_validation(observations: Sequence[Observation]) -> None:
    """Print per set how many first hits are on the right side of 0.5: fitted on all sets, and without this one."""
    print("\n## First hits on the right side of 0.5, in brackets with models fitted without the set\n")
    print("| kind | set | base | style | right | right >= 0.5 | wrong, own | absent | foreign | wrong < 0.5 |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for kind in KINDS:
        every = [item for item in observations if item.kind == kind]
        model = fit_both(every)
        for source in dict.fromkeys(item.source for item in every):
            others = [item for item in every if item.source != source]
            without = fit_both(others) if {item.is_right for item in others} == {True, False} else model
            groups = dict.fromkeys((item.base, item.style) for item in every if item.source == source)
            for base, style in groups:
                mine = [item for item in every if (item.source, item.base, item.style) == (source, base, style)]
                print(f"| {kind} | {source} | {base} | {style} | {' | '.join(_sides(mine, model, without))} |")


def _sides(
    items: Sequence[Observation], models: Sequence[Coefficients], without: Sequence[Coefficients]
) -> Iterator[str]:
    right, wrong = ([item for item in items if item.is_right is side] for side in (True, False))
    yield str(len(right))
    yield f"{_passing(right, models)} ({_passing(right, without)})"
    for asked in ("own", "absent", "foreign"):
        yield _passing([item for item in wrong if item.asked == asked], models, passes=False)
    yield f"{_passing(wrong, models, passes=False)} ({_passing(wrong, without, passes=False)})"


def _passing(items: Sequence[Observation], models: Sequence[Coefficients], *, passes: bool = True) -> str:
    """Return the share of hits that pass every model, or of those that do not."""
    if not items:
        return "-"
    passing = np.array([min(np.dot(item.features, model) for model in models) >= 0 for item in items])
    return f"{np.mean(passing == passes):.2f}"


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
    """Print for each kind how many first hits are on the right side of 0.5."""
    print("\n## First hits on the right side of 0.5 (hits)\n")
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


def print_fusion(collector: Collector) -> None:
    """Print nDCG@10 of whole sets by each side and by both, and what both lose against the better side."""
    print("\n## nDCG@10 of whole sets\n")
    print("| set | keyword | semantic | hybrid | hybrid - better side |")
    print("|---|---|---|---|---|")
    for name, figures in collector.quality.items():
        cells = " | ".join(f"{value:.3f}" for value in figures.values())
        print(f"| {name} | {cells} | {figures['hybrid'] - max(figures['keyword'], figures['semantic']):+.3f} |")


def print_unanswerable(observations: Sequence[Observation]) -> None:
    """Print how many questions that nothing answers have a hit in the band "strong"."""
    print('\n## Questions that nothing answers: share with a hit in the band "strong" (questions)\n')
    print("| kind | near the subject | far from it | all | highest |")
    print("|---|---|---|---|---|")
    for kind in KINDS[:3]:
        items = [item for item in observations if item.kind == kind and item.style == "question"]
        groups = [[item for item in items if item.asked in names] for names in (("near",), ("far",), ("near", "far"))]
        cells = [f"{np.mean([item.score >= HALF for item in group]):.2f} ({len(group)})" for group in groups]
        highest = sorted((item.score for item in groups[-1]), reverse=True)[:5]
        print(f"| {kind} | {' | '.join(cells)} | {', '.join(f'{score:.2f}' for score in highest)} |")


def _share_above(items: Sequence[Observation], *, above: bool) -> str:
    return f"{np.mean([(item.score >= HALF) is above for item in items]):.2f} ({len(items)})" if items else "-"


class QuestionCache(CachedEmbedder):
    """Keeps the vectors of questions too."""

    def __init__(self, path: Path) -> None:
        super().__init__(MiniLm(), path)
        self.embed_query = lambda text: self.embed([text])[0]  # type: ignore[assignment]


def collect(cache: Path) -> Collector:
    """Search every set and corpus, and tell on standard error how far that is."""
    sets = {name: LabelledSet.read(unpack(DATA / "retrieval" / f"{name}.tar.xz", cache)) for name in SETS}
    embedder: Any = QuestionCache(cache / "vectors.sqlite")
    collector = Collector(sets, embedder)
    for number, name in enumerate(SETS, 1):
        started = time.perf_counter()
        collector.observe_set(name)
        done = f"{len(collector.observations)} first hits, {time.perf_counter() - started:.0f} s"
        print(f"{number} of {len(SETS) + 1}: {name}, {done}", file=sys.stderr, flush=True)
    for name in CORPORA:
        source = unpack(DATA / "docs" / f"{name}.tar.xz", cache)
        cpu_of(BEDSTONE, "docs", "build", source, "--out", cache / "indexes" / name, "--embedding-provider", "none")
    collector.observe_corpora(cache / "indexes")
    return collector


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, help="folder that keeps vectors and unpacked data for the next run")
    parser.add_argument("--write", action="store_true", help="put the models into search/relevance.py")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bedstone-fit-") as folder:
        work = options.cache or Path(folder)
        work.mkdir(parents=True, exist_ok=True)
        collector = collect(work)
    observations = collector.observations
    print(f"{len(observations)} first hits.")
    print("\n# With the models of now")
    print_summary(observations)
    print_unanswerable(observations)
    tables = fit_models(observations)
    print("\n# With these models")
    for name, models in zip(TABLES, tables, strict=True):
        print(f"\n{name}\n\n{format_models(models)}", end="")
    scoring.MODELS, scoring.RELATIVE_MODELS = tables
    again = [replace(item, score=item.score_again()) for item in observations]
    print_validation(again)
    print_summary(again)
    print_unanswerable(again)
    print_reliability(again)
    print_fusion(collector)
    if options.write:
        write_models(tables)


if __name__ == "__main__":
    main()
