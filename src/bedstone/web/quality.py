"""How well search works here: the runs of `bedstone eval` beside the ones before them."""

from anyio import to_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from bedstone.evaluation.charts import bar_chart
from bedstone.evaluation.history import KeptRuns
from bedstone.web.frame import Pages

MOST_SETS = 20


def quality_routes(pages: Pages) -> list[BaseRoute]:
    """/quality, and its charts."""
    kept = KeptRuns(pages.options.data_folder)

    async def shown(request: Request) -> Response:
        found = await to_thread.run_sync(kept.latest)
        return pages.render(
            request, "quality.html", page="quality", sets=found[:MOST_SETS], command=pages.options.evaluation_command
        )

    async def chart(request: Request) -> Response:
        found = await to_thread.run_sync(kept.latest)
        chosen = next((item for item in found if item["name"] == request.query_params.get("name")), None)
        if chosen is None:
            raise HTTPException(404, "There is no such run.")
        runs = {"before": chosen["before"]} if chosen["before"] else {}
        text = bar_chart({**runs, "latest": chosen["latest"]}, chosen["name"])
        return Response(text, media_type="image/svg+xml")

    return [Route("/quality", shown), Route("/quality/chart.svg", chart)]
