"""Search quality: the latest runs of `bedstone eval`, each beside the run before it."""

from anyio import to_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from bedstone.evaluation.charts import bar_chart
from bedstone.evaluation.history import RunHistory
from bedstone.web.frame import Pages

MAX_SETS = 20


def quality_routes(pages: Pages) -> list[BaseRoute]:
    """Return /quality and its charts."""
    runs = RunHistory(pages.options.data_folder)

    async def show_quality(request: Request) -> Response:
        found = await to_thread.run_sync(runs.latest)
        command = pages.options.evaluation_command
        return pages.render(request, "quality.html", page="quality", sets=found[:MAX_SETS], command=command)

    async def draw_chart(request: Request) -> Response:
        found = await to_thread.run_sync(runs.latest)
        name = request.query_params.get("name", "")
        chosen = next((item for item in found if item["name"] == name), None)
        if chosen is None:
            raise HTTPException(404, f"Evaluation {name!r} not found. The Quality page lists every evaluation.")
        before = {"before": chosen["before"]} if chosen["before"] else {}
        text = bar_chart({**before, "latest": chosen["latest"]}, chosen["name"])
        return Response(text, media_type="image/svg+xml")

    return [Route("/quality", show_quality), Route("/quality/chart.svg", draw_chart)]
