"""How well search works here: the runs of `bedstone eval` beside the ones before them."""

import json
from pathlib import Path
from typing import Any

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from bedstone.library.charts import bar_chart
from bedstone.web.pages import HEADERS, Pages

FOLDER, MOST_RUNS, MOST_SETS = "evaluations", 500, 20


def quality_routes(pages: Pages) -> list[BaseRoute]:
    """/quality, and its charts."""
    folder = pages.options.data_folder / FOLDER

    async def shown(request: Request) -> Response:
        found = await to_thread.run_sync(_latest, folder)
        return pages.render(request, "quality.html", page="quality", sets=found[:MOST_SETS])

    async def chart(request: Request) -> Response:
        found = await to_thread.run_sync(_latest, folder)
        chosen = next((item for item in found if item["name"] == request.query_params.get("name")), None)
        if chosen is None:
            return Response(status_code=404)
        runs = {"before": chosen["before"]} if chosen["before"] else {}
        text = bar_chart({**runs, "latest": chosen["latest"]}, chosen["name"])
        return Response(text, media_type="image/svg+xml", headers=dict(HEADERS))

    return [Route("/quality", shown), Route("/quality/chart.svg", chart)]


def _latest(folder: Path) -> list[dict[str, Any]]:
    """For each set of cases, the latest run and the one before."""
    by_name: dict[str, list[dict[str, Any]]] = {}
    for file in sorted(folder.glob("*.json"), reverse=True)[:MOST_RUNS]:
        try:
            report = json.loads(file.read_text("utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(report, dict) and isinstance(report.get("quality"), dict):
            by_name.setdefault(str(report.get("name", file.stem)), []).append(report)
    return [
        {"name": name, "latest": runs[0], "before": runs[1] if len(runs) > 1 else None, "runs": len(runs)}
        for name, runs in by_name.items()
    ]
