"""How well search works here: the runs of `bedstone eval` beside the ones before them."""

import json
from pathlib import Path
from typing import Any

from anyio import to_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from bedstone.library.charts import bar_chart
from bedstone.web.pages import Pages

FOLDER, MOST_RUNS, MOST_SETS = "evaluations", 500, 20


def quality_routes(pages: Pages) -> list[BaseRoute]:
    """/quality, and its charts."""
    reports = _Reports(pages.options.data_folder / FOLDER)

    async def shown(request: Request) -> Response:
        found = await to_thread.run_sync(reports.latest)
        return pages.render(request, "quality.html", page="quality", sets=found[:MOST_SETS])

    async def chart(request: Request) -> Response:
        found = await to_thread.run_sync(reports.latest)
        chosen = next((item for item in found if item["name"] == request.query_params.get("name")), None)
        if chosen is None:
            raise HTTPException(404, "There is no such run.")
        runs = {"before": chosen["before"]} if chosen["before"] else {}
        text = bar_chart({**runs, "latest": chosen["latest"]}, chosen["name"])
        return Response(text, media_type="image/svg+xml")

    return [Route("/quality", shown), Route("/quality/chart.svg", chart)]


class _Reports:
    """The reports in a folder; each is read once, and what no chart shows is let go of."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[tuple[str, int], dict[str, Any] | None] = {}

    def latest(self) -> list[dict[str, Any]]:
        """For each set of cases, the latest run and the one before."""
        by_name: dict[str, list[dict[str, Any]]] = {}
        files = sorted(self._folder.glob("*.json"), reverse=True)[:MOST_RUNS]
        keys = [(file.name, changed) for file in files if (changed := _changed(file))]
        self._read = {key: self._read[key] if key in self._read else self._report(key[0]) for key in keys}
        for report in self._read.values():
            if report is not None:
                by_name.setdefault(report["name"], []).append(report)
        return [
            {"name": name, "latest": runs[0], "before": runs[1] if len(runs) > 1 else None, "runs": len(runs)}
            for name, runs in by_name.items()
        ]

    def _report(self, name: str) -> dict[str, Any] | None:
        try:
            report = json.loads((self._folder / name).read_text("utf-8"))
        except (OSError, ValueError, RecursionError):
            return None
        if not isinstance(report, dict) or not isinstance(report.get("quality"), dict):
            return None
        kept = {key: value for key, value in report.items() if key not in ("results", "error_messages")}
        return {"at": "", **kept, "name": str(report.get("name", name))}


def _changed(file: Path) -> int:
    """When a file was changed; 0 if it has gone."""
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0
