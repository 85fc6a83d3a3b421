"""Run cases against any MCP server with `search_docs`: how well it finds what they expect, and at what cost."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from statistics import fmean
from typing import Any

from bedstone.errors import InvalidInput
from bedstone.evaluation.cases import Case
from bedstone.evaluation.metrics import first_relevant_rank, ndcg, reciprocal_rank
from bedstone.evaluation.probe import Probe

DEPTH = 5
MAX_ERRORS = 10  # in a report


@dataclass(frozen=True)
class RunOptions:
    """How to run the cases."""

    file_level: bool = False
    warmup: int = 20
    repeat: int = 1


@dataclass(frozen=True)
class _Searches:
    """The first result page of each case, the latency of every search, and what failed."""

    pages: Sequence[Mapping[str, Any]]
    latencies: Sequence[float]
    errors: Sequence[str]


@dataclass(frozen=True)
class _Outcome:
    case: Case
    ranked: Sequence[str]
    grades: Mapping[str, float]
    rounds: int

    @property
    def rank(self) -> int | None:
        return first_relevant_rank(self.ranked, self.grades)


def run_cases(
    cases: Sequence[Case], probe: Probe, options: RunOptions, on_progress: Callable[[int], None]
) -> dict[str, Any]:
    """Search for every case and report quality, latency, CPU time and memory."""
    search_tool, read_tool = (_find_tool(probe, name) for name in ("search_docs", "get_doc"))
    for case in cases[: options.warmup]:
        probe.call(search_tool, case.arguments)
    before = probe.cpu_ms()
    searches = _search(cases, probe, search_tool, options.repeat, on_progress)
    after = probe.cpu_ms()
    outcomes, reads = [], []
    for case, page in zip(cases, searches.pages, strict=True):
        ranked, grades = case.rank_hits(page["hits"], options.file_level)
        rounds = _count_rounds(case, page, probe, search_tool, options.file_level)
        outcomes.append(_Outcome(case, ranked, grades, rounds))
        if rank := first_relevant_rank(ranked, grades):
            reads.append(probe.call(read_tool, {"chunk_id": page["hits"][rank - 1]["chunk_id"]})[1])
    cpu_ms = (after - before) / len(searches.latencies) if before is not None and after is not None else None
    peak = probe.peak_rss_mb()
    categories = sorted({case.category for case in cases})
    return {
        "cases": len(cases),
        "errors": len(searches.errors),
        "error_messages": searches.errors[:MAX_ERRORS],
        "ready_ms": round(probe.ready_ms, 1),
        "search_ms": _percentiles(searches.latencies),
        "get_doc_ms": _percentiles(reads),
        "cpu_ms_per_search": round(cpu_ms, 2) if cpu_ms is not None else None,
        "peak_rss_mb": round(peak, 1) if peak is not None else None,
        "rounds": round(fmean(outcome.rounds for outcome in outcomes), 3),
        "quality": _quality(outcomes),
        "by_category": {
            name: _quality([outcome for outcome in outcomes if outcome.case.category == name]) for name in categories
        },
        "results": [
            {"name": item.case.name, "query": item.case.query, "category": item.case.category, "rank": item.rank}
            for item in outcomes
        ],
    }


def _find_tool(probe: Probe, name: str) -> str:
    """Return the tool with this name, with or without a prefix."""
    tool: str | None = next((tool for tool in probe.tools if tool == name or tool.endswith(f"_{name}")), None)
    if tool is None:
        raise InvalidInput(f"The server has no tool {name}; it has: {', '.join(probe.tools) or 'none'}.")
    return tool


def _search(
    cases: Sequence[Case], probe: Probe, tool: str, repeat: int, on_progress: Callable[[int], None]
) -> _Searches:
    pages, latencies = [], []
    errors: list[str] = []
    for turn in range(repeat):
        for case in cases:
            text, elapsed = probe.call(tool, case.arguments)
            latencies.append(elapsed)
            if turn == 0:
                if text is None:
                    errors.append(f"{case.name}: {probe.last_error}")
                pages.append(json.loads(text) if text else {"hits": [], "next_cursor": None})
                on_progress(1)
    return _Searches(pages, latencies, errors)


def _count_rounds(case: Case, page: Mapping[str, Any], probe: Probe, tool: str, file_level: bool) -> int:
    """Count the result pages up to a relevant hit; one more than the maximum if no page has one."""
    for number in range(1, case.max_rounds + 1):
        if first_relevant_rank(*case.rank_hits(page["hits"], file_level)):
            return number
        if not page.get("next_cursor") or number == case.max_rounds:
            break
        text, _ = probe.call(tool, case.arguments | {"cursor": page["next_cursor"]})
        page = json.loads(text) if text else {"hits": []}
    return case.max_rounds + 1


def _quality(outcomes: Sequence[_Outcome]) -> dict[str, float]:
    ranks = [first_relevant_rank(outcome.ranked[:DEPTH], outcome.grades) for outcome in outcomes]
    figures = {
        f"mrr@{DEPTH}": fmean(reciprocal_rank(outcome.ranked, outcome.grades, DEPTH) for outcome in outcomes),
        f"ndcg@{DEPTH}": fmean(ndcg(outcome.ranked, outcome.grades, DEPTH) for outcome in outcomes),
        f"hit@{DEPTH}": fmean(float(rank is not None) for rank in ranks),
        "hit@1": fmean(float(rank == 1) for rank in ranks),
    }
    return {name: round(value, 4) for name, value in figures.items()}


def _percentiles(values: Sequence[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {
        f"p{share}": round(ordered[max(0, ceil(len(ordered) * share / 100) - 1)], 2) if ordered else 0.0
        for share in (50, 95, 99)
    }
