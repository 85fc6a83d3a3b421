"""Builds every part from the settings: the only place where parts meet."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from bedstone import plugins
from bedstone.errors import InvalidSetting, MissingExtra
from bedstone.settings import Settings
from bedstone.toolkit import Toolset
from bedstone.toolsets import BUILTIN_TOOLSETS, HIDDEN_TOOLSETS

if TYPE_CHECKING:  # commands that do not serve never import the SDK
    from bedstone.search.embedder import Embedder
    from bedstone.server import BedstoneServer

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class App:
    """The open product: its toolsets, and MCP servers made from them on demand."""

    settings: Settings
    toolsets: Mapping[str, Toolset]
    aclose: Callable[[], Awaitable[None]]

    def hub(self) -> "BedstoneServer":
        """One server with every toolset; a single toolset asked for by name answers under its own."""
        from bedstone.server import BedstoneServer

        chosen = list(self.toolsets.values()) if self.settings.toolsets else []
        alone = chosen[0] if len(chosen) == 1 else None
        name = self.settings.name or (alone.server_name if alone else "bedstone")
        return BedstoneServer(name, list(self.toolsets.values()))

    def servers(self) -> dict[str, "BedstoneServer"]:
        """The hub under "", and each toolset alone under its address, with hyphens and with underscores."""
        from bedstone.server import BedstoneServer

        servers = {"": self.hub()}
        for label, toolset in self.toolsets.items():
            server = BedstoneServer(toolset.server_name, [toolset])
            servers |= {f"/{spelling}": server for spelling in (label.replace("_", "-"), label)}
        return servers


@asynccontextmanager
async def open_app(settings: Settings) -> AsyncIterator[App]:
    """Open every chosen toolset, and close them again, the last one first."""
    toolsets = {label: build_toolset(label, settings) for label in chosen_toolsets(settings)}
    async with AsyncExitStack() as opened:
        for toolset in toolsets.values():
            await opened.enter_async_context(toolset.opened())
        yield App(settings, toolsets, opened.aclose)


def chosen_toolsets(settings: Settings) -> list[str]:
    """The toolsets asked for, or all that are configured."""
    if settings.toolsets:
        names = list(dict.fromkeys(name.replace("-", "_") for name in settings.toolsets))
        for name in names:
            if name not in HIDDEN_TOOLSETS:
                plugins.find("toolsets", name, BUILTIN_TOOLSETS)
        return names
    configured = [label for label, is_on in _switches(settings).items() if is_on]
    if not configured:
        raise InvalidSetting(
            "Nothing to serve yet. Give a text file with --kb-file FILE, or index documentation with "
            "`bedstone docs build DIR`, or choose toolsets with --toolsets."
        )
    return configured


def build_toolset(label: str, settings: Settings) -> Toolset:
    """One toolset with its parts."""
    table = HIDDEN_TOOLSETS if label in HIDDEN_TOOLSETS else BUILTIN_TOOLSETS
    factory = plugins.load("toolsets", label, table)
    match label:
        case "docs":
            index = _docs_index(settings)
            if index is None:
                raise InvalidSetting("Say which docs index with --docs-index DIR; `bedstone docs build DIR` makes one.")
            toolset = factory(index, build_embedder, read_only=settings.read_only)
        case "kb":
            kb = settings.kb
            toolset = factory(kb.file_path, description=kb.description, reload=kb.reload, read_only=settings.read_only)
        case _:
            toolset = factory(read_only=settings.read_only)
    assert isinstance(toolset, Toolset)
    return toolset


def _switches(settings: Settings) -> dict[str, bool]:
    """What switches each toolset on when none is asked for."""
    return {"docs": _docs_index(settings) is not None, "kb": settings.kb.file_path is not None}


def build_embedder(name: str = "minilm") -> "Embedder | None":
    """The embedding model with its cache; None without one, and search goes by words."""
    if name == "none":
        return None
    from bedstone.search.embedders import BUILTIN_EMBEDDERS
    from bedstone.search.embedding_cache import CachedEmbedder

    try:
        embedder = plugins.load("embedders", name, BUILTIN_EMBEDDERS)()
    except MissingExtra as error:
        logger.warning("Search goes by words alone: %s", error.message, extra={"action": "no_embedder"})
        return None
    cache = Path(platformdirs.user_cache_dir("bedstone", appauthor=False)) / "embeddings.sqlite"
    return CachedEmbedder(embedder, cache)


def _docs_index(settings: Settings) -> Path | None:
    """The index that is configured, or the one that `bedstone docs build` put into the data folder."""
    if settings.docs.index:
        return settings.docs.index
    found = sorted(settings.data_folder.glob("docs/*/metadata.json"))
    return found[0].parent if found else None
