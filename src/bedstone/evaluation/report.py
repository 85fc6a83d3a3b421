"""Compare runs of an evaluation as a Markdown table."""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

TOLERANCE = 1e-9
NOT_FOUND_RANK = 10**6
# Rows of the table: the path to a figure in a run, and whether a higher value is better.
FIGURES: dict[str, tuple[tuple[str, ...], bool]] = {
    "MRR@5": (("quality", "mrr@5"), True),
    "nDCG@5": (("quality", "ndcg@5"), True),
    "hit@5": (("quality", "hit@5"), True),
    "hit@1": (("quality", "hit@1"), True),
    "rounds": (("rounds",), False),
    "errors": (("errors",), False),
    "search p50 ms": (("search_ms", "p50"), False),
    "search p95 ms": (("search_ms", "p95"), False),
    "get_doc p50 ms": (("get_doc_ms", "p50"), False),
    "CPU ms per search": (("cpu_ms_per_search",), False),
    "peak memory MB": (("peak_rss_mb",), False),
    "start ms": (("ready_ms",), False),
    "build s": (("build_s",), False),
    "build CPU s": (("build_cpu_s",), False),
    "index MB": (("index_mb",), False),
}


def compare_runs(runs: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a table of runs by name, each compared with the first."""
    (base_name, base), *others = runs.items()
    head = ["", base_name, *(title for name, _ in others for title in (name, "change"))]
    rows = [head, ["---", *["---:"] * (len(head) - 1)]]
    for label, (path, higher_is_better) in FIGURES.items():
        values = [read_figure(run, path) for run in runs.values()]
        if all(value is None for value in values):
            continue
        row = [label, _format_number(values[0])]
        for value in values[1:]:
            row += [_format_number(value), _format_change(values[0], value, higher_is_better)]
        rows.append(row)
    lines = [f"| {' | '.join(row)} |" for row in rows]
    for name, run in others:
        lines += ["", *_list_moves(name, base, run)]
    return "\n".join(lines) + "\n"


def read_figure(run: Mapping[str, Any], path: Sequence[str]) -> float | None:
    """Return a figure of a run by its path, or None if the run does not have it."""
    value: Any = run
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if isfinite(value) else None
    except OverflowError:  # a whole number of hundreds of digits
        return None


def _format_number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}".rstrip("0").rstrip(".") or "0"


def _format_change(before: float | None, after: float | None, higher_is_better: bool) -> str:
    if before is None or after is None:
        return "-"
    difference = after - before
    if abs(difference) < TOLERANCE:
        return "="
    verdict = "better" if (difference > 0) == higher_is_better else "worse"
    share = f" ({difference / before:+.1%})" if before else ""
    return f"{difference:+.3f}{share} {verdict}"


def _list_moves(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """List the cases whose rank changed, regressions first."""
    ranks = {item["name"]: item["rank"] for item in before.get("results", [])}
    moves = [
        (item["name"], ranks[item["name"]], item["rank"])
        for item in after.get("results", [])
        if item["name"] in ranks and ranks[item["name"]] != item["rank"]
    ]
    lines = []
    for title, is_regression in (("Regressions", True), ("Improvements", False)):
        cases = [
            f"- {case}: {old or 'not found'} -> {new or 'not found'}"
            for case, old, new in moves
            if ((new or NOT_FOUND_RANK) > (old or NOT_FOUND_RANK)) == is_regression
        ]
        if cases:
            lines += [f"{title} of {name} ({len(cases)}):", "", *cases, ""]
    return lines
