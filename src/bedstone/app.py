"""Build the product from the settings: services, toolsets, servers. The only place where parts meet."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

import anyio

from bedstone.errors import InvalidSetting
from bedstone.permissions import protect_folder
from bedstone.search.embedding import EmbedderPool
from bedstone.services.service import Handle, ServiceContext, Services
from bedstone.settings import DATA_NAME, Settings, layout
from bedstone.toolkit import Toolset, ToolsetContext
from bedstone.toolkit.spec import resolve
from bedstone.toolsets import TOOLSETS, toolset_spec

if TYPE_CHECKING:  # commands that do not serve do not import the SDK
    from bedstone.server import BedstoneServer
    from bedstone.services.peers import Peers


@dataclass(frozen=True)
class App:
    """The open product: its services, its toolsets, and MCP servers made from them on demand."""

    settings: Settings
    services: Services
    toolsets: Mapping[str, Toolset]
    aclose: Callable[[], Awaitable[None]]

    @property
    def peers(self) -> "Peers | None":
        """The servers that share a store with this one, if it is one that several can share."""
        return self.services.context.peers

    @property
    def _has_strict_schemas(self) -> bool:
        return self.settings.mcp.schema_profile == "strict"

    def hub(self) -> "BedstoneServer":
        """Return one server with every toolset; a single toolset chosen by name keeps its own server name."""
        from bedstone.server import BedstoneServer

        chosen = list(self.toolsets.values()) if self.settings.toolsets else []
        alone = chosen[0] if len(chosen) == 1 else None
        name = self.settings.name or (alone.server_name if alone else "bedstone")
        return BedstoneServer(
            name, list(self.toolsets.values()), strict_schemas=self._has_strict_schemas, relay=self.peers
        )

    def servers(self) -> dict[str, "BedstoneServer"]:
        """Return the hub under "", and each toolset under its own address, with hyphens and with underscores."""
        from bedstone.server import BedstoneServer

        servers = {"": self.hub()}
        for label, toolset in self.toolsets.items():
            # Documentation takes the configured name; the other names are fixed by their contracts.
            name = (self.settings.name if label == "docs" else None) or toolset.server_name
            server = BedstoneServer(name, [toolset], strict_schemas=self._has_strict_schemas, relay=self.peers)
            servers |= {f"/{spelling}": server for spelling in (label.replace("_", "-"), label)}
        return servers


@asynccontextmanager
async def open_app(settings: Settings) -> AsyncIterator[App]:
    """Open every chosen toolset with its service, and close them in reverse order."""
    chosen = choose_toolsets(settings)
    if "knowledge" in chosen:
        _check_knowledge(settings)
    services = make_services(settings, chosen)
    toolsets = {label: build_toolset(label, settings, services) for label in chosen}
    async with AsyncExitStack() as opened:
        opened.push_async_callback(services.aclose)  # also those that only the search over everything opened
        for toolset in toolsets.values():
            await opened.enter_async_context(toolset.opened())
        yield App(settings, services, toolsets, opened.aclose)


@contextmanager
def open_services(settings: Settings) -> Iterator[Services]:
    """Open services for a command: nothing runs in the background that it does not start itself."""
    services = make_services(settings)
    try:
        yield services
    finally:
        anyio.run(services.aclose)


def make_services(settings: Settings, chosen: Sequence[str] | None = None) -> Services:
    """Return every service, none of them open yet; `chosen` are the toolsets to serve."""
    cache = layout.embedding_cache(settings)
    protect_folder(settings.data_folder, is_ours=settings.data_dir is None or settings.data_dir.name == DATA_NAME)
    protect_folder(cache.parent, is_ours=settings.storage.model_cache_path is None)
    embedders = EmbedderPool(settings.embedding, cache)

    def find_sources() -> dict[str, str]:
        served = _source_titles(chosen or ())
        return served or _source_titles(_configured_toolsets(settings))  # the search over everything is served alone

    return Services(ServiceContext(settings, embedders, peers=_make_peers(settings)), _make_handle, find_sources)


@asynccontextmanager
async def among_peers(services: Services, address: str = "", *, has_documents: bool = True) -> AsyncIterator[None]:
    """Take part among the servers that share a store, if it is one that several can share.

    A server without documents, or one that changes nothing, is not one that reads files.
    """
    context = services.context
    if context.peers is None:
        yield
        return
    from bedstone.services.peers import Peer, work_of

    handle = services.handle("knowledge")
    works = has_documents and not context.settings.read_only
    me = Peer.of_this_process(context.settings.role if works else "answers", address)
    await context.peers.start(me, lambda: work_of(handle.opened if handle is not None else None))
    try:
        yield
    finally:
        await context.peers.stop()


def _make_peers(settings: Settings) -> "Peers | None":
    """Return this server's place among those with the same database; it connects when the server starts."""
    if not settings.has_shared_store:
        return None
    from bedstone.services.peers import Peers

    return Peers(str(settings.storage.database), settings.signing_secret)


def choose_toolsets(settings: Settings) -> list[str]:
    """Return the toolsets that are named in the settings, or all that are configured."""
    if not settings.toolsets:
        return _configured_toolsets(settings)
    names = list(dict.fromkeys(name.replace("-", "_") for name in settings.toolsets))
    for name in names:
        TOOLSETS.check(name)
    return names


def _configured_toolsets(settings: Settings) -> list[str]:
    # Of other packages only those with a section that is set: no other start reads the metadata of packages.
    labels = [*TOOLSETS.builtin, *settings.other_sections]
    return [label for label in labels if toolset_spec(label).is_configured(settings)]


def _source_titles(labels: Sequence[str]) -> dict[str, str]:
    titles = {label: toolset_spec(label).source_title for label in labels}
    return {label: title for label, title in titles.items() if title}


def build_toolset(label: str, settings: Settings, services: Services | None = None) -> Toolset:
    """Build one toolset on its service."""
    spec = toolset_spec(label)
    handle = (services or make_services(settings)).handle(label)
    toolset = resolve(spec.toolset).build(ToolsetContext(settings, handle))
    assert isinstance(toolset, Toolset)
    return toolset


def explain_unwritable(folder: Path) -> str | None:
    """Return why a folder that may not exist yet cannot be written to; None if it can."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    try:
        TemporaryFile(dir=existing).close()
    except OSError as error:
        return f"Cannot write to {folder} ({error.strerror})."
    return None


def _make_handle(label: str, context: ServiceContext) -> Handle[Any] | None:
    spec = toolset_spec(label)
    if spec.service is None:
        return None
    starts_at_once = bool(spec.starts_at_once(context.settings))
    return Handle(lambda: resolve(spec.service)(context), starts_at_once=starts_at_once, context=context)


def _check_knowledge(settings: Settings) -> None:
    """Refuse a data folder that cannot be written to, and a server that would open any file to other machines."""
    if not settings.read_only and (problem := explain_unwritable(layout.knowledge_index(settings))):
        raise InvalidSetting(f"{problem} Choose another with --data-dir, or leave documents out with --toolsets.")
    mcp = settings.mcp
    if mcp.transport == "stdio" or settings.storage.allowed_roots:
        return
    from bedstone.transports.access import is_loopback

    if not is_loopback(mcp.host) and settings.access_token is not None:  # without a token it does not start anyway
        raise InvalidSetting(
            "Other machines could read any file through knowledge-add. Name the folders it may read in "
            "storage.allowed_roots, or leave the toolset out with --toolsets."
        )
