"""Search quality: the latest run of `bedstone eval`, beside the one before it or another one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anyio import to_thread
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from bedstone.evaluation.charts import (
    COSTS,
    MAX_KINDS,
    QUALITY,
    Bar,
    Group,
    Layout,
    Scale,
    bar_chart,
    draw_chart,
    format_amount,
    list_kinds,
    name_metric,
)
from bedstone.evaluation.history import Outcome, RunHistory, SavedRun
from bedstone.evaluation.report import read_figure
from bedstone.web.frame import Pages
from bedstone.web.paging import Pager

MAX_EXAMPLES = 3
MAX_EXAMPLE_CHARACTERS = 60
MAX_SETS = 100  # to choose from
MAX_RUNS = 100  # to compare with
QUESTIONS_PER_PAGE = 50
MAX_QUESTIONS = 10**7  # more are not possible
NOT_FOUND_RANK = 10**6
SHARE_TOLERANCE = 0.0005
WIDE = Layout(456, 92, 16)
NARROW = Layout(310, 52, 20)
# What a figure says, for people; depth and name of the metric follow.
MEANINGS: Mapping[str, str] = {"mrr": "Answer first", "ndcg": "Order", "hit": "Found at all", "recall": "Completeness"}
COST_WORDS: Mapping[str, tuple[str, str, str]] = {
    "search_ms": ("Search, median", "slower", "faster"),
    "peak_rss_mb": ("Peak memory", "more", "less"),
}
FILTERS: Mapping[str, str] = {"": "All", "missing": "Not found", "worse": "Worse", "better": "Better"}


@dataclass(frozen=True)
class Figure:
    """A figure with its unit, and in words how it changed; `verdict` is better, worse or nothing."""

    label: str
    value: str
    unit: str = ""
    change: str = ""
    verdict: str = ""
    rises: bool = False


@dataclass(frozen=True)
class Question:
    """A question with the rank of its answer, now and before."""

    outcome: Outcome
    before: int | None
    is_new: bool

    @property
    def rise(self) -> int:
        """Return by how many ranks the answer rose; 0 if that cannot be said."""
        if self.is_new or self.before == self.outcome.rank:
            return 0
        return (self.before or NOT_FOUND_RANK) - (self.outcome.rank or NOT_FOUND_RANK)

    @property
    def is_found_anew(self) -> bool:
        """Return whether the answer was not found before, or is no longer found."""
        return abs(self.rise) > NOT_FOUND_RANK // 2


@dataclass(frozen=True)
class Comparison:
    """The run to show and the one to compare it with, and the runs that there are to choose from."""

    latest: SavedRun
    before: SavedRun | None
    runs: Sequence[SavedRun]

    @property
    def reports(self) -> list[tuple[str, Mapping[str, Any]]]:
        """Return what was measured, with the class of the bars."""
        return [("now", self.latest.report), *([("before", self.before.report)] if self.before else [])]

    def bars(self, path: Sequence[str]) -> list[Bar]:
        """Return one bar for each run."""
        return [Bar(read_figure(report, path), kind) for kind, report in self.reports]


def quality_routes(pages: Pages) -> list[BaseRoute]:
    """Return /quality and its chart as a file."""
    history = RunHistory(pages.options.data_folder)

    async def show_quality(request: Request) -> Response:
        context = await to_thread.run_sync(_read_view, history, request)
        command = pages.options.evaluation_command
        return pages.render(request, "quality.html", page="quality", command=command, **context)

    async def draw_file(request: Request) -> Response:
        name = request.query_params.get("name", "")
        compared = await to_thread.run_sync(lambda: _compare(history.sets(), name, ""))
        if compared is None or compared.latest.name != name:
            raise HTTPException(404, f"Evaluation {name!r} not found. The page Quality lists those that there are.")
        runs = {"latest": compared.latest.report, **({"before": compared.before.report} if compared.before else {})}
        return Response(bar_chart(runs, name), media_type="image/svg+xml")

    return [Route("/quality", show_quality), Route("/quality/chart.svg", draw_file)]


def read_latest(history: RunHistory) -> tuple[SavedRun, Sequence[Figure]] | None:
    """Return the latest run of the first set with its figures of quality, if there is one; blocks."""
    compared = _compare(history.sets(), "", "")
    return (compared.latest, _qualities(compared)) if compared is not None else None


def read_examples(history: RunHistory, run: SavedRun) -> list[str]:
    """Return short questions of a run that were answered first, to be tried; blocks."""
    found = (item.query for item in history.outcomes(run) if item.rank == 1)
    return [query for query in dict.fromkeys(found) if len(query) <= MAX_EXAMPLE_CHARACTERS][:MAX_EXAMPLES]


def _read_view(history: RunHistory, request: Request) -> dict[str, Any]:
    """Return what the template shows; blocks."""
    params, sets = request.query_params, history.sets()
    compared = _compare(sets, params.get("set", ""), params.get("against", ""))
    if compared is None:
        return {"run": None}
    questions = _questions(history, compared)
    show = params.get("show", "")
    chosen = [item for item in questions if _is_shown(item, show)]
    pager = Pager.of(request, len(chosen), QUESTIONS_PER_PAGE)
    counts = {key: sum(_is_shown(item, key) for item in questions) for key in FILTERS}
    return {
        "run": compared.latest,
        "before": compared.before,
        "sets": list(sets)[:MAX_SETS],
        "runs": compared.runs,
        "errors": _read_count(compared.latest.report, "errors"),
        "cases": _count_cases(compared.latest, questions),
        "figures": _figures(compared),
        "charts": _charts(compared, questions),
        "kinds_left": max(0, len(_kinds(compared)) - MAX_KINDS),
        "questions": pager.cut(chosen),
        "pager": pager,
        "filters": [(key, title, counts[key]) for key, title in FILTERS.items() if counts[key] or key in ("", show)],
        "show": show if show in FILTERS else "",
    }


def _compare(sets: Mapping[str, list[SavedRun]], name: str, against: str) -> Comparison | None:
    """Return the latest run of a set, of the first one if the name is unknown, and an earlier one."""
    if not sets:
        return None
    latest, *earlier = sets.get(name) or next(iter(sets.values()))
    chosen = next((run for run in earlier if run.id == against), earlier[0] if earlier else None)
    return Comparison(latest, chosen, earlier[:MAX_RUNS])


def _count_cases(run: SavedRun, questions: Sequence[Question]) -> int:
    return len(questions) or _read_count(run.report, "cases")


def _read_count(report: Mapping[str, Any], key: str) -> int:
    """Return a number of questions; 0 for one that makes no sense."""
    value = read_figure(report, (key,))
    return int(value) if value is not None and 0 < value <= MAX_QUESTIONS else 0


def _questions(history: RunHistory, compared: Comparison) -> list[Question]:
    """Return the questions, the worst first; those that fell come before others of their rank."""
    ranks = {item.name: item.rank for item in history.outcomes(compared.before)} if compared.before else {}
    found = [Question(item, ranks.get(item.name), item.name not in ranks) for item in history.outcomes(compared.latest)]
    return sorted(found, key=lambda item: (-(item.outcome.rank or NOT_FOUND_RANK), item.rise, item.outcome.name))


def _is_shown(question: Question, show: str) -> bool:
    match show:
        case "missing":
            return question.outcome.rank is None
        case "worse":
            return question.rise < 0
        case "better":
            return question.rise > 0
        case _:
            return True


def _figures(compared: Comparison) -> list[Figure]:
    """Return the figures of the head: quality in shares, then time and memory."""
    costs = [_cost(compared, unit, path) for _, unit, path in COSTS if path[0] in COST_WORDS]
    return [*_qualities(compared), *(figure for figure in costs if figure is not None)]


def _qualities(compared: Comparison) -> list[Figure]:
    depth = {key.partition("@")[0]: key for key in reversed(QUALITY) if _has(compared, key)}
    return [_share(compared, key) for name in MEANINGS if (key := depth.get(name))]


def _has(compared: Comparison, key: str) -> bool:
    return read_figure(compared.latest.report, ("quality", key)) is not None


def _share(compared: Comparison, key: str) -> Figure:
    values = [bar.value for bar in compared.bars(("quality", key))]
    value, before = values[0] or 0.0, values[1] if len(values) > 1 else None
    name = key.partition("@")[0]
    label = f"{MEANINGS[name]}, {name_metric(key)}"
    cases = _read_count(compared.latest.report, "cases")
    shown, unit = (f"{value * cases:.0f}", f"of {cases:,}") if name == "hit" and cases else (f"{value:.3f}", "")
    if before is None:
        return Figure(label, shown, unit)
    difference = value - before
    if abs(difference) < SHARE_TOLERANCE:
        return Figure(label, shown, unit, "as before")
    verdict = "better" if difference > 0 else "worse"
    amount = f"{abs(difference) * cases:.0f}" if unit else f"{abs(difference):.3f}"
    return Figure(label, shown, unit, f"{amount} {verdict}", verdict, difference > 0)


def _cost(compared: Comparison, unit: str, path: Sequence[str]) -> Figure | None:
    values = [bar.value for bar in compared.bars(path)]
    value, before = values[0], values[1] if len(values) > 1 else None
    if value is None:
        return None
    label, more, less = COST_WORDS[path[0]]
    if before is None:
        return Figure(label, format_amount(value), unit)
    amount = format_amount(abs(value - before))
    if amount == "0":
        return Figure(label, format_amount(value), unit, "as before")
    rises = value > before
    change = f"{amount} {unit} {more if rises else less}"
    return Figure(label, format_amount(value), unit, change, "worse" if rises else "better", rises)


def _charts(compared: Comparison, questions: Sequence[Question]) -> dict[str, Any]:
    """Return the charts, each as markup; a chart without values is missing."""
    groups = [Group(name_metric(key), compared.bars(("quality", key))) for key in QUALITY if _has(compared, key)]
    charts: dict[str, Any] = {"quality": Markup(draw_chart(groups, Scale.share(), WIDE)) if groups else ""}  # noqa: S704
    kinds = _kinds(compared)
    if kinds:
        shown = [_kind_group(compared, name, questions) for name in kinds[:MAX_KINDS]]
        charts["kinds"] = Markup(draw_chart(shown, Scale.share(), WIDE))  # noqa: S704
    charts["costs"] = [chart for heading, unit, path in COSTS if (chart := _draw_cost(compared, heading, unit, path))]
    return charts


def _kinds(compared: Comparison) -> list[str]:
    """Return the kinds of questions, the worst first."""
    names = list_kinds(report for _, report in compared.reports)

    def value(name: str) -> float:
        found = compared.bars(("by_category", name, "mrr@5"))[0].value
        return found if found is not None else 1.0

    return sorted(names, key=lambda name: (value(name), name))


def _kind_group(compared: Comparison, name: str, questions: Sequence[Question]) -> Group:
    count = sum(item.outcome.kind == name for item in questions)
    return Group(f"{name} ({count})" if count else name, compared.bars(("by_category", name, "mrr@5")))


def _draw_cost(compared: Comparison, heading: str, unit: str, path: Sequence[str]) -> tuple[str, Markup] | None:
    bars = compared.bars(path)
    if bars[0].value is None:
        return None
    labels = ("Latest", "Before")
    groups = [Group(label, [bar]) for label, bar in zip(labels, bars, strict=False) if bar.value is not None]
    scale = Scale.up_to(max(bar.value or 0.0 for bar in bars), unit)
    return heading, Markup(draw_chart(groups, scale, NARROW))  # noqa: S704 - escaped where it is drawn
