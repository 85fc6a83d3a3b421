"""How well a server finds what cases expect, and what it costs: any MCP server with `search_docs`."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, log2
from pathlib import Path
from statistics import fmean
from typing import Any

from bedstone.errors import InvalidInput
from bedstone.evaluation.probe import Probe

DEPTH = 5
MOST_ERRORS = 10
WORSE_BY = 1e-9
# Rows of the comparison: where a figure stands, and whether more of it is better.
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
    "CPU ms a search": (("cpu_ms_per_search",), False),
    "peak memory MB": (("peak_rss_mb",), False),
    "start ms": (("ready_ms",), False),
    "build s": (("build_s",), False),
    "build CPU s": (("build_cpu_s",), False),
    "index MB": (("index_mb",), False),
}


@dataclass(frozen=True)
class Case:
    """A query and what it should find: a chunk, or files with grades."""

    query: str
    chunk: str | None = None
    grades: Mapping[str, float] = field(default_factory=dict)
    filters: Mapping[str, str] = field(default_factory=dict)
    limit: int = DEPTH
    max_rounds: int = 3
    name: str = ""
    category: str = "all"


@dataclass(frozen=True)
class RunOptions:
    """How a run is made."""

    file_level: bool = False
    warmup: int = 20
    repeat: int = 1


@dataclass(frozen=True)
class _Outcome:
    case: Case
    gains: Sequence[float]
    ideal: Sequence[float]
    rounds: int


def read_cases(path: Path, *, filters: bool = True) -> list[Case]:
    """Cases from a JSON file; messages name the one that is wrong."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInput(f"Cannot read cases from {path}: {error}") from None
    rows = rows.get("cases") if isinstance(rows, dict) else rows
    if not isinstance(rows, list) or not rows:
        raise InvalidInput(f"{path} must hold a list of cases.")
    return [_case(row, f"{path.name}[{number}]", filters) for number, row in enumerate(rows)]


def _case(row: Any, where: str, filters: bool) -> Case:
    if not isinstance(row, dict) or not isinstance(row.get("query"), str) or not row["query"].strip():
        raise InvalidInput(f"{where}: query must be a non-empty string.")
    chunk, files = row.get("expectedChunkId"), row.get("expectedFiles") or {}
    grades = row.get("qrels") or (dict.fromkeys(files, 1) if isinstance(files, list) else files)
    if not isinstance(grades, dict) or not all(isinstance(grade, int | float) for grade in grades.values()):
        raise InvalidInput(f"{where}: expectedFiles must be a list of paths, or grades by path.")
    if not isinstance(row.get("filters") or {}, dict):
        raise InvalidInput(f"{where}: filters must be an object.")
    for name in ("limit", "maxRounds"):
        if name in row and (type(row[name]) is not int or row[name] < 1):
            raise InvalidInput(f"{where}: {name} must be a positive integer.")
    if chunk is None and not grades:
        raise InvalidInput(f"{where}: expectedChunkId or expectedFiles must say what the query should find.")
    return Case(
        query=row["query"],
        chunk=chunk,
        grades=grades or {str(chunk).partition("#")[0]: 1},
        filters=(row.get("filters") or {}) if filters else {},
        limit=row.get("limit", DEPTH),
        max_rounds=row.get("maxRounds", 3),
        name=str(row.get("name") or row["query"]),
        category=str(row.get("category") or "all"),
    )


def run_cases(
    cases: Sequence[Case], probe: Probe, options: RunOptions, progress: Callable[[int], None]
) -> dict[str, Any]:
    """Ask every case and report quality, latency, CPU time and memory."""
    search_tool, read_tool = (_tool(probe, name) for name in ("search_docs", "get_doc"))
    for case in cases[: options.warmup]:
        probe.call(search_tool, {"query": case.query, "limit": case.limit, **case.filters})
    before = probe.cpu_ms()
    first_pages, latencies = [], []
    errors: list[str] = []
    for turn in range(options.repeat):
        for case in cases:
            text, elapsed = probe.call(search_tool, {"query": case.query, "limit": case.limit, **case.filters})
            latencies.append(elapsed)
            if turn == 0:
                if text is None:
                    errors.append(f"{case.name}: {probe.last_error}")
                first_pages.append(json.loads(text) if text else {"hits": [], "next_cursor": None})
                progress(1)
    after = probe.cpu_ms()
    outcomes, reads = [], []
    for case, page in zip(cases, first_pages, strict=True):
        gains, ideal = _gains(case, page["hits"], options.file_level)
        rounds = _rounds(case, page, probe, search_tool, options.file_level)
        outcomes.append(_Outcome(case, gains, ideal, rounds))
        if hit := next((hit for hit, gain in zip(page["hits"], gains, strict=True) if gain), None):
            reads.append(probe.call(read_tool, {"chunk_id": hit["chunk_id"]})[1])
    spent = (after - before) / len(latencies) if before is not None and after is not None else None
    peak = probe.peak_rss_mb()
    categories = sorted({case.category for case in cases})
    return {
        "cases": len(cases),
        "errors": len(errors),
        "error_messages": errors[:MOST_ERRORS],
        "ready_ms": round(probe.ready_ms, 1),
        "search_ms": _percentiles(latencies),
        "get_doc_ms": _percentiles(reads),
        "cpu_ms_per_search": round(spent, 2) if spent is not None else None,
        "peak_rss_mb": round(peak, 1) if peak is not None else None,
        "rounds": round(fmean(outcome.rounds for outcome in outcomes), 3),
        "quality": _quality(outcomes),
        "by_category": {
            name: _quality([outcome for outcome in outcomes if outcome.case.category == name]) for name in categories
        },
        "results": [
            {"name": outcome.case.name, "category": outcome.case.category, "rank": _rank(outcome.gains)}
            for outcome in outcomes
        ],
    }


def comparison(runs: Mapping[str, Mapping[str, Any]]) -> str:
    """Runs beside each other as a Markdown table, the first being what the others are compared with."""
    (base_name, base), *others = runs.items()
    head = ["", base_name, *(title for name, _ in others for title in (name, "change"))]
    rows = [head, ["---", *["---:"] * (len(head) - 1)]]
    for label, (path, more_is_better) in FIGURES.items():
        values = [_figure(run, path) for run in runs.values()]
        if all(value is None for value in values):
            continue
        row = [label, _number(values[0])]
        for value in values[1:]:
            row += [_number(value), _change(values[0], value, more_is_better)]
        rows.append(row)
    lines = [f"| {' | '.join(row)} |" for row in rows]
    for name, run in others:
        lines += ["", *_moves(name, base, run)]
    return "\n".join(lines) + "\n"


def _tool(probe: Probe, name: str) -> str:
    """A tool by its name, or with a prefix before it."""
    found: str | None = next((tool for tool in probe.tools if tool == name or tool.endswith(f"_{name}")), None)
    if found is None:
        raise InvalidInput(f"The server has no tool {name}; it has: {', '.join(probe.tools) or 'none'}.")
    return found


def _gains(case: Case, hits: Sequence[Mapping[str, Any]], file_level: bool) -> tuple[list[float], list[float]]:
    """The grade of each hit, of a file only the first time, and the best grades possible."""
    if case.chunk is not None and not file_level:
        return [float(hit["chunk_id"] == case.chunk) for hit in hits], [1.0]
    seen: set[str] = set()
    gains = []
    for hit in hits:
        path = hit["filepath"]
        gains.append(0.0 if path in seen else float(case.grades.get(path, 0)))
        seen.add(path)
    return gains, sorted((float(grade) for grade in case.grades.values()), reverse=True)


def _rounds(case: Case, page: Mapping[str, Any], probe: Probe, tool: str, file_level: bool) -> int:
    """How many pages until the right hit; one more than allowed when it is on none."""
    for number in range(1, case.max_rounds + 1):
        if any(_gains(case, page["hits"], file_level)[0]):
            return number
        if not page.get("next_cursor") or number == case.max_rounds:
            break
        arguments = {"query": case.query, "limit": case.limit, **case.filters, "cursor": page["next_cursor"]}
        text, _ = probe.call(tool, arguments)
        page = json.loads(text) if text else {"hits": []}
    return case.max_rounds + 1


def _rank(gains: Sequence[float]) -> int | None:
    return next((index + 1 for index, gain in enumerate(gains) if gain), None)


def _quality(outcomes: Sequence[_Outcome]) -> dict[str, float]:
    ranks = [_rank(outcome.gains[:DEPTH]) for outcome in outcomes]
    figures = {
        f"mrr@{DEPTH}": fmean(1 / rank if rank else 0.0 for rank in ranks),
        f"ndcg@{DEPTH}": fmean(_dcg(item.gains[:DEPTH]) / (_dcg(item.ideal[:DEPTH]) or 1.0) for item in outcomes),
        f"hit@{DEPTH}": fmean(float(rank is not None) for rank in ranks),
        "hit@1": fmean(float(rank == 1) for rank in ranks),
    }
    return {name: round(value, 4) for name, value in figures.items()}


def _dcg(gains: Sequence[float]) -> float:
    return sum((2**gain - 1) / log2(position + 2) for position, gain in enumerate(gains))


def _percentiles(values: Sequence[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {
        f"p{share}": round(ordered[max(0, ceil(len(ordered) * share / 100) - 1)], 2) if ordered else 0.0
        for share in (50, 95, 99)
    }


def _figure(run: Mapping[str, Any], path: Sequence[str]) -> float | None:
    value: Any = run
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return float(value) if value is not None else None


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}".rstrip("0").rstrip(".") or "0"


def _change(before: float | None, after: float | None, more_is_better: bool) -> str:
    if before is None or after is None:
        return "-"
    difference = after - before
    if abs(difference) < WORSE_BY:
        return "="
    verdict = "better" if (difference > 0) == more_is_better else "worse"
    share = f" ({difference / before:+.1%})" if before else ""
    return f"{difference:+.3f}{share} {verdict}"


def _moves(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Cases that were found earlier or later than before."""
    old = {item["name"]: item["rank"] for item in before.get("results", [])}
    moved = [
        (item["name"], old[item["name"]], item["rank"])
        for item in after.get("results", [])
        if item["name"] in old and old[item["name"]] != item["rank"]
    ]
    lost = [move for move in moved if _later(move[1], move[2])]
    won = [move for move in moved if not _later(move[1], move[2])]
    lines = []
    for title, moves in (("Regressions", lost), ("Improvements", won)):
        if moves:
            lines += [f"{title} of {name} ({len(moves)}):", ""]
            lines += [
                f"- {case}: {rank_before or 'not found'} -> {rank or 'not found'}" for case, rank_before, rank in moves
            ]
            lines.append("")
    return lines


def _later(before: int | None, after: int | None) -> bool:
    return (after or 10**6) > (before or 10**6)
