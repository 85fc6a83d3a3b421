"""Find out which settings suit a corpus: measure each on held-out halves of its questions."""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bedstone.evaluation.metrics import first_relevant_rank, ndcg, reciprocal_rank
from bedstone.search.hits import Mode, SearchRequest
from bedstone.search.retriever import Retriever, tune_profile
from bedstone.settings import CorpusTuning

Scores = NDArray[np.float64]
Verdict = Literal["better", "within noise", "too few questions"]

DEPTH = 10
MODES: tuple[Mode, ...] = ("keyword", "semantic", "hybrid")  # the last one is what is served
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
PROXIMITIES = (0.0, 0.5, 1.0, 2.0)
MIN_QUESTIONS = 30  # about different documents: fewer say nothing about the rest of the corpus
MIN_GAIN = 0.005  # of nDCG: less is not worth a setting
SPLITS = 10  # into halves
SAMPLES = 4_000  # of the bootstrap
CONFIDENCE = 0.98  # three settings are tried: each must be surer than one alone
SEED = 7


@dataclass(frozen=True)
class Question:
    """A question and the grades of what answers it: of chunks with `by_chunk`, of documents otherwise.

    Hits of `ignored` documents do not count. Questions of one `group` are about the same thing: they are never split.
    """

    request: SearchRequest
    grades: Mapping[str, float]
    group: str
    by_chunk: bool = False
    ignored: frozenset[str] = field(default_factory=frozenset)


@dataclass(frozen=True)
class Trial:
    """What a setting is now, its best value, and how much that gains on questions it was not chosen by."""

    setting: str
    now: Any
    best: Any
    scores: Mapping[Any, float]  # mean nDCG@10 of every value, on all questions
    gain: float
    low: float
    high: float
    verdict: Verdict


@dataclass(frozen=True)
class TuningReport:
    """How well a corpus answers its questions now, from which side, and what other settings would change."""

    questions: int
    groups: int
    figures: Mapping[Mode, Mapping[str, float]]
    answers: Mapping[str, int]  # how many are found by which side
    trials: Sequence[Trial]
    better: CorpusTuning | None
    better_score: float | None = None


def count_searches(retriever: Retriever) -> int:
    """Return how often each question is searched for."""
    others = [
        value
        for setting, values in _alternatives(retriever).items()
        for value in values
        if value != current_value(retriever, setting)
    ]
    return len(_modes(retriever)) + len(others) + 1


def tune(
    retriever: Retriever, corpus: str, questions: Sequence[Question], on_progress: Callable[[int], None]
) -> TuningReport:
    """Measure the corpus as it is and with other settings; a setting is better only if that is hardly by chance."""
    groups = np.unique([question.group for question in questions], return_inverse=True)[1]
    measured = _Measured(retriever, corpus, questions, on_progress)
    ranks = {mode: measured.rank(mode) for mode in _modes(retriever)}
    now = measured.score(CorpusTuning(corpus=corpus))
    trials = []
    for setting, values in _alternatives(retriever).items():
        current = current_value(retriever, setting)
        others = [value for value in values if value != current]
        table = np.array([now, *(measured.score(_set(corpus, {setting: value})) for value in others)])
        trials.append(judge(setting, [current, *others], table, groups))
    better, score = _combine(corpus, trials, measured, now)
    figures = {mode: _figures(found, questions) for mode, found in ranks.items()}
    return TuningReport(
        len(questions), int(groups.max()) + 1, figures, _count_sides(ranks, questions), trials, better, score
    )


def current_value(retriever: Retriever, setting: str) -> Any:
    """Return what a setting is for a retriever."""
    profile = retriever.profile
    if setting == "promote_documents":
        return profile.promotes_documents
    if setting == "proximity":
        return profile.weights.proximity
    return round(profile.weights.semantic / (1 + profile.weights.semantic), 4)


def judge(setting: str, values: Sequence[Any], table: Scores, groups: NDArray[np.intp]) -> Trial:
    """Judge the values of a setting by a table of scores, values by questions; the first value is the current one."""
    means = table.mean(axis=1)
    best = int(means.argmax())
    low, high, gain = bootstrap(_held_out(table, groups), groups)
    direct_low, _, _ = bootstrap(table[best] - table[0], groups)
    is_better = best != 0 and min(low, direct_low) > 0 and gain >= MIN_GAIN
    verdict: Verdict = "better" if is_better else "within noise"
    if int(groups.max()) + 1 < MIN_QUESTIONS:
        verdict = "too few questions"
    scores = {value: round(float(mean), 4) for value, mean in zip(values, means, strict=True)}
    return Trial(setting, values[0], values[best], dict(sorted(scores.items())), gain, low, high, verdict)


def bootstrap(differences: Scores, groups: NDArray[np.intp]) -> tuple[float, float, float]:
    """Return the interval of a mean difference, and the mean; whole groups of questions are drawn."""
    count = int(groups.max()) + 1
    sums, sizes = np.bincount(groups, differences, count), np.bincount(groups, minlength=count)
    drawn = np.random.default_rng(SEED).integers(count, size=(SAMPLES, count))
    means = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    low, high = np.quantile(means, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high), float(differences.mean())


def _held_out(table: Scores, groups: NDArray[np.intp]) -> Scores:
    """Return for each question what the value gains that the other half of the questions would choose."""
    gained = np.zeros(table.shape[1])
    shuffled = list(range(int(groups.max()) + 1))
    chance = random.Random(SEED)  # noqa: S311 - a sample, not a secret
    for _ in range(SPLITS):
        chance.shuffle(shuffled)
        is_first = np.isin(groups, shuffled[: len(shuffled) // 2])
        for chosen_by, tested in ((is_first, ~is_first), (~is_first, is_first)):
            best = int(table[:, chosen_by].mean(axis=1).argmax()) if chosen_by.any() else 0
            gained[tested] += (table[best] - table[0])[tested]
    return gained / SPLITS


def _modes(retriever: Retriever) -> Sequence[Mode]:
    return [mode for mode in MODES if retriever.index.has_vectors or mode != "semantic"]


def _alternatives(retriever: Retriever) -> dict[str, Sequence[Any]]:
    found: dict[str, Sequence[Any]] = {"semantic_share": SHARES} if retriever.index.has_vectors else {}
    if retriever.profile.is_static:
        found["promote_documents"] = (False, True)
    return found | {"proximity": PROXIMITIES}


def _set(corpus: str, values: Mapping[str, Any]) -> CorpusTuning:
    return CorpusTuning.model_validate({"corpus": corpus, **values})


def _combine(
    corpus: str, trials: Sequence[Trial], measured: "_Measured", now: Scores
) -> tuple[CorpusTuning | None, float | None]:
    """Return the better settings together, or the best of them alone where together they are worse."""
    chosen = {trial.setting: trial for trial in trials if trial.verdict == "better"}
    if not chosen:
        return None, None
    alone = max(chosen.values(), key=lambda trial: trial.scores[trial.best])
    together = {setting: trial.best for setting, trial in chosen.items()}
    score = float(measured.score(_set(corpus, together)).mean())
    if score < alone.scores[alone.best] or score <= float(now.mean()):
        return _set(corpus, {alone.setting: alone.best}), alone.scores[alone.best]
    return _set(corpus, together), round(score, 4)


class _Measured:
    """Searches for every question with given settings."""

    def __init__(
        self, retriever: Retriever, corpus: str, questions: Sequence[Question], on_progress: Callable[[int], None]
    ) -> None:
        self._retriever = retriever
        self._corpus = corpus
        self._questions = questions
        self._on_progress = on_progress

    def rank(self, mode: Mode, tuning: CorpusTuning | None = None) -> list[list[str]]:
        """Return what is found for each question, in order."""
        profile = tune_profile(self._retriever.profile, tuning)
        retriever = self._retriever.with_profile(profile)
        return [list(self._list_found(retriever, question, mode)) for question in self._questions]

    def score(self, tuning: CorpusTuning) -> Scores:
        """Return the nDCG of each question with these settings."""
        ranked = self.rank("hybrid", tuning)
        return np.array([ndcg(found, item.grades, DEPTH) for found, item in zip(ranked, self._questions, strict=True)])

    def _list_found(self, retriever: Retriever, question: Question, mode: Mode) -> Iterator[str]:
        candidates = retriever.select(replace(question.request, mode=mode), DEPTH).candidates
        heads = retriever.heads(candidates)
        self._on_progress(1)
        seen = set()
        for candidate in candidates:
            head = heads.get(candidate.rowid)
            if head is None or head.document_id in question.ignored:
                continue
            name = head.id if question.by_chunk else head.document_id
            if name not in seen:
                seen.add(name)
                yield name


def _figures(ranked: Sequence[Sequence[str]], questions: Sequence[Question]) -> dict[str, float]:
    pairs = list(zip(ranked, questions, strict=True))
    figures = {
        "ndcg@10": [ndcg(found, item.grades, DEPTH) for found, item in pairs],
        "mrr@10": [reciprocal_rank(found, item.grades, DEPTH) for found, item in pairs],
        "hit@1": [float(first_relevant_rank(found, item.grades) == 1) for found, item in pairs],
    }
    return {name: round(float(np.mean(values)), 4) for name, values in figures.items()}


def _count_sides(ranks: Mapping[Mode, Sequence[Sequence[str]]], questions: Sequence[Question]) -> dict[str, int]:
    """Count the questions by the kinds of search that find their answer among the first ten."""
    counts: Counter[str] = Counter()
    for number, question in enumerate(questions):
        found = {mode for mode, ranked in ranks.items() if first_relevant_rank(ranked[number], question.grades)}
        sides = found - {"hybrid"}
        if len(sides) > 1:
            counts["both"] += 1
        elif sides:
            counts[f"{next(iter(sides))} only"] += 1
        else:
            counts["hybrid only" if found else "not found"] += 1
    return {name: counts[name] for name in ("both", "keyword only", "semantic only", "hybrid only", "not found")}
