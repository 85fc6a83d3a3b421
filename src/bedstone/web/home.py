"""The home page: what is here and how it is, a search, and how to connect a client; three steps while it is empty."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from bedstone.evaluation.history import RunHistory, SavedRun
from bedstone.services.service import Summary, SyncFacts
from bedstone.web.activity.pages import read_syncs
from bedstone.web.frame import ClientSetup, Pages
from bedstone.web.quality import Figure, read_examples, read_latest
from bedstone.web.tools.pages import count_tokens

if TYPE_CHECKING:
    from bedstone.toolkit import NavigationItem

DEFAULT_CLIENT = "claude-code"
MAX_SYNCS = 3


@dataclass(frozen=True)
class Source:
    """A line of the table of sources."""

    item: "NavigationItem"
    summary: Summary
    tools: int


@dataclass(frozen=True)
class Endpoint:
    """An address at which a part of the tools is served alone."""

    path: str
    tools: int


def home_routes(pages: Pages) -> list[BaseRoute]:
    """Return the page at /."""
    history = RunHistory(pages.options.data_folder)
    examples: dict[str, list[str]] = {}  # of the latest run, by its id

    def read_quality() -> tuple[tuple[SavedRun, Sequence[Figure]] | None, list[str]]:
        if (latest := read_latest(history)) is None:
            return None, []
        run = latest[0]
        if run.id not in examples:
            examples.clear()
            examples[run.id] = read_examples(history, run)
        return latest, examples[run.id]

    async def show_home(request: Request) -> Response:
        await pages.menu.read()
        base = str(request.base_url).rstrip("/")
        sources = _sources(pages)
        setups = pages.options.client_setups(base)
        quality, tries = await to_thread.run_sync(read_quality)
        is_empty = all(source.summary.is_empty for source in sources)
        return pages.render(
            request,
            "welcome.html" if is_empty and "knowledge" in pages.toolsets else "home.html",
            page="home",
            base=base,
            sources=sources,
            setups=setups,
            chosen=_find_setup(setups, request.query_params.get("client", "")),
            endpoints=_endpoints(pages),
            tool_count=sum(len(toolset.tools) for toolset in pages.toolsets.values()),
            tokens=sum(count_tokens(tool) for toolset in pages.toolsets.values() for tool in toolset.tools.values()),
            syncs=await _latest_syncs(pages),
            quality=quality,
            tries=tries,
            can_add="knowledge" in pages.toolsets and not pages.options.read_only,
            max_mb=pages.services.context.settings.processing.max_file_size_mb,
        )

    return [Route("/", show_home)]


def _sources(pages: Pages) -> list[Source]:
    return [
        Source(spec.navigation[0], pages.menu.summaries[label], len(pages.toolsets[label].tools))
        for label, spec in pages.specs.items()
        if spec.navigation and label in pages.menu.summaries
    ]


async def _latest_syncs(pages: Pages) -> list[SyncFacts]:
    """Return what was last brought up to date, or failed to be."""
    labels = [label for label in pages.services.sources if label in pages.toolsets]
    facts = [item for label in labels for item in await read_syncs(pages, label)]
    ended = [item for item in facts if item.last_at or item.failed_at]
    return sorted(ended, key=lambda item: max(filter(None, (item.last_at, item.failed_at))), reverse=True)[:MAX_SYNCS]


def _endpoints(pages: Pages) -> list[Endpoint]:
    return [
        Endpoint(f"/{label.replace('_', '-')}/mcp", len(toolset.tools)) for label, toolset in pages.toolsets.items()
    ]


def _find_setup(setups: Sequence[ClientSetup], key: str) -> ClientSetup:
    by_key = {setup.key: setup for setup in setups}
    return by_key.get(key) or by_key.get(DEFAULT_CLIENT) or setups[0]
