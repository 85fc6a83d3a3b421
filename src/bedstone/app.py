"""Builds every part from the settings: the only place where parts meet."""

import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

import platformdirs

from bedstone import extensions
from bedstone.errors import InvalidSetting, MissingExtra
from bedstone.services.docs.index_folder import IndexFolder
from bedstone.settings import EmbeddingSettings, Settings
from bedstone.toolsets import BUILTIN_TOOLSETS, HIDDEN_TOOLSETS

if TYPE_CHECKING:  # commands that do not serve import neither the SDK nor toolsets
    from bedstone.salesforce.client import SalesforceClient
    from bedstone.salesforce.client.orgs import Org, Orgs
    from bedstone.search.embedder import Embedder
    from bedstone.server import BedstoneServer
    from bedstone.services.articles.service import ArticleService
    from bedstone.services.docs.watcher import DocsKeeper
    from bedstone.services.knowledge.service import KnowledgeBase
    from bedstone.services.schema.service import GraphService
    from bedstone.toolkit import Toolset

logger = logging.getLogger(__name__)

DEMO_ORG = "demo"
UPLOADS = "uploads"
FITTED_PROXIMITY = 1.25  # the setting under which nearness counts as it was fitted


@dataclass(frozen=True)
class App:
    """The open product: its toolsets, and MCP servers made from them on demand."""

    settings: Settings
    toolsets: "Mapping[str, Toolset]"
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
            # Documentation goes by the name it is given; the others are what their contracts call them.
            name = (self.settings.name if label == "docs" else None) or toolset.server_name
            server = BedstoneServer(name, [toolset])
            servers |= {f"/{spelling}": server for spelling in (label.replace("_", "-"), label)}
        return servers


@asynccontextmanager
async def open_app(settings: Settings) -> AsyncIterator[App]:
    """Open every chosen toolset, and close them again, the last one first."""
    chosen = chosen_toolsets(settings)
    if "knowledge" in chosen and not settings.read_only and (problem := unwritable(_knowledge_index(settings))):
        raise InvalidSetting(f"{problem} Choose another with --data-dir, or leave documents out with --toolsets.")
    toolsets = {label: build_toolset(label, settings) for label in chosen}
    async with AsyncExitStack() as opened:
        for toolset in toolsets.values():
            await opened.enter_async_context(toolset.opened())
        yield App(settings, toolsets, opened.aclose)


def unwritable(folder: Path) -> str | None:
    """Why nothing can be written into a folder that may still have to be made."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    try:
        TemporaryFile(dir=existing).close()
    except OSError as error:
        return f"{folder} cannot be written ({error.strerror})."
    return None


def chosen_toolsets(settings: Settings) -> list[str]:
    """The toolsets asked for, or all that are configured."""
    if settings.toolsets:
        names = list(dict.fromkeys(name.replace("-", "_") for name in settings.toolsets))
        for name in names:
            if name not in HIDDEN_TOOLSETS:
                extensions.find("toolsets", name, BUILTIN_TOOLSETS)
        return names
    return [label for label, is_on in _switches(settings).items() if is_on]


def build_toolset(label: str, settings: Settings) -> "Toolset":
    """One toolset with its parts."""
    from bedstone.toolkit import Toolset

    table = HIDDEN_TOOLSETS if label in HIDDEN_TOOLSETS else BUILTIN_TOOLSETS
    factory = extensions.load("toolsets", label, table)
    match label:
        case "knowledge":
            _check_reach(settings)
            store = _knowledge_index(settings) / "knowledge.sqlite"
            toolset = factory(
                lambda: open_knowledge(settings),
                resume=store,
                read_only=settings.read_only,
                top_k=(settings.search.default_top_k, settings.search.max_top_k),
                folders=knowledge_folders(settings),
            )
        case "docs":
            toolset = factory(*_docs_parts(settings), read_only=settings.read_only, **_docs_options(settings))
        case "kb":
            kb = settings.kb
            toolset = factory(kb.file_path, description=kb.description, reload=kb.reload, read_only=settings.read_only)
        case "salesforce_knowledge":
            minutes = settings.salesforce.sync_minutes
            toolset = factory(lambda: open_articles(settings), sync_minutes=minutes, read_only=settings.read_only)
        case "salesforce_graph":
            options = settings.salesforce
            toolset = factory(
                lambda: open_graphs(settings),
                sync_minutes=options.sync_minutes,
                more_tools=options.more_tools,
                categories=options.categories,
                read_only=settings.read_only,
            )
        case _:
            toolset = factory(read_only=settings.read_only)
    assert isinstance(toolset, Toolset)
    return toolset


def _switches(settings: Settings) -> dict[str, bool]:
    """What switches each toolset on when none is asked for."""
    return {
        "knowledge": True,
        "docs": bool(settings.docs.dir or _docs_indexes(settings)),
        "kb": settings.kb.file_path is not None,
        "salesforce_knowledge": _has_org(settings),
        "salesforce_graph": _has_org(settings) or any((salesforce_folder(settings) / "schemas").glob("import-*")),
    }


def open_knowledge(settings: Settings) -> "KnowledgeBase":
    """The knowledge base of the data folder, ready to work; whoever opens it closes it."""
    from bedstone.ingest.chunking.by_size import SplitOptions
    from bedstone.ingest.extraction import ReadOptions
    from bedstone.services.knowledge.add_file import ReadingOptions
    from bedstone.services.knowledge.service import KnowledgeBase, KnowledgeOptions

    storage, chunking, ocr = settings.storage, settings.chunking, settings.ocr
    options = KnowledgeOptions(
        documents_path=storage.documents_path or settings.data_folder / "documents",
        index_path=_knowledge_index(settings),
        # What the page uploads comes through a folder of ours.
        allowed_roots=[*storage.allowed_roots, settings.data_folder / UPLOADS] if storage.allowed_roots else [],
        max_file_size_mb=settings.processing.max_file_size_mb,
        max_concurrent_tasks=settings.processing.max_concurrent_tasks,
        read_only=settings.read_only,
        reading=ReadingOptions(
            split=SplitOptions(chunking.chunk_size, chunking.chunk_overlap, chunking.strategy),
            read=ReadOptions(
                force_ocr=ocr.force_ocr,
                ocr=ocr.enabled,
                ocr_language=ocr.language,
                ocr_data_path=str(ocr.data_path) if ocr.data_path else None,
                ocr_images=ocr.images,
                ocr_confidence=ocr.confidence_threshold,
            ),
        ),
    )
    base = KnowledgeBase(options, lambda: build_embedder(settings))
    base.open()
    return base


def open_articles(settings: Settings, org_name: str | None = None) -> "ArticleService":
    """The articles of an org, and its mirror; whoever opens it closes it."""
    from bedstone.services.articles.live import LiveArticles
    from bedstone.services.articles.mirror import ArticleMirror
    from bedstone.services.articles.service import ArticleService

    options = settings.salesforce
    orgs = open_orgs(settings)
    org = orgs.get(org_name or default_org(settings))
    folder = salesforce_folder(settings) / "articles" / orgs.folder_name(org)
    return ArticleService(
        lambda: LiveArticles(open_client(orgs, org), options.article_body_fields),
        ArticleMirror(folder, lambda: build_embedder(settings)),
        source=options.article_source,
        warn_share=options.warn_share,
        call_floor=options.call_floor,
    )


def open_graphs(settings: Settings) -> "GraphService":
    """The schemas of every org; whoever opens it closes it."""
    from bedstone.services.schema.service import GraphService

    orgs = open_orgs(settings)
    return GraphService(
        salesforce_folder(settings) / "schemas",
        orgs,
        lambda org: open_client(orgs, org),
        lambda: build_embedder(settings),
        default_org(settings),
        settings.salesforce.sync_names,
    )


def open_orgs(settings: Settings) -> "Orgs":
    """The orgs somebody logged into."""
    from bedstone.salesforce.client.orgs import Orgs

    return Orgs(salesforce_folder(settings))


def open_client(orgs: "Orgs", org: "Org") -> "SalesforceClient":
    """A client of an org."""
    from bedstone.salesforce.client import SalesforceClient

    return SalesforceClient(orgs.auth(org), read_only=org.read_only)


def default_org(settings: Settings) -> str | None:
    """The org that is asked if nobody names one; None means the only one there is."""
    return settings.salesforce.org or (DEMO_ORG if settings.salesforce.demo_port is not None else None)


def salesforce_folder(settings: Settings) -> Path:
    """Where everything of Salesforce is kept."""
    return settings.data_folder / "salesforce"


def _has_org(settings: Settings) -> bool:
    return default_org(settings) is not None or bool(
        (salesforce_folder(settings) / "orgs.json").exists() and open_orgs(settings).all()
    )


def knowledge_folders(settings: Settings) -> list[Path]:
    """The folders whose files the knowledge base follows; agents may read nothing that it could not."""
    roots = [root.resolve() for root in settings.storage.allowed_roots]
    for folder in settings.storage.watch:
        if not folder.is_dir():
            raise InvalidSetting(f"storage.watch: {folder} is no folder.")
        if roots and not any(folder.resolve().is_relative_to(root) for root in roots):
            raise InvalidSetting(f"storage.watch: {folder} is not in any of storage.allowed_roots.")
    return settings.storage.watch


def _knowledge_index(settings: Settings) -> Path:
    return settings.storage.vector_db_path or settings.data_folder / "index"


def _check_reach(settings: Settings) -> None:
    """Whoever can call knowledge-add can read files: others only where somebody said which."""
    mcp = settings.mcp
    if mcp.transport == "stdio" or settings.storage.allowed_roots:
        return
    from bedstone.transports.access import is_loopback

    if not is_loopback(mcp.host) and settings.access_token is not None:  # without one it does not start anyway
        raise InvalidSetting(
            "Other machines could read any file through knowledge-add. Name the folders it may read in "
            "storage.allowed_roots, or leave the toolset out with --toolsets."
        )


def build_embedder(settings: Settings, known: Mapping[str, Any] | None = None) -> "Embedder | None":
    """The embedding model with its cache; None without one, and search goes by words.

    `known` is the model that made an index's vectors: its provider and model count, not those of the settings.
    """
    wanted = settings.embedding
    provider = (known or {}).get("provider", "none" if wanted.model_name == "none" else wanted.provider)
    if provider == "none":
        return None
    from bedstone.search.embedders import BUILTIN_EMBEDDERS
    from bedstone.search.embedding_cache import CachedEmbedder

    try:
        make = extensions.load("embedders", provider, BUILTIN_EMBEDDERS)
        embedder = make(**_service(wanted, known)) if provider == "openai" else make()
    except MissingExtra as error:
        logger.warning("Search goes by words alone: %s", error.message, extra={"action": "no_embedder"})
        return None
    folder = settings.storage.model_cache_path or Path(platformdirs.user_cache_dir("bedstone", appauthor=False))
    return CachedEmbedder(embedder, folder / "embeddings.sqlite")


def _service(wanted: EmbeddingSettings, known: Mapping[str, Any] | None) -> dict[str, Any]:
    key = wanted.api_key.get_secret_value() if wanted.api_key else os.environ.get("OPENAI_API_KEY")
    made_with: dict[str, Any] = {
        "model": wanted.model_name,
        "dimensions": wanted.dimensions,
        "base_url": wanted.base_url,
    }
    if known:
        made_with = {
            "model": known["model"],
            "dimensions": known.get("requested_dimensions"),
            "expected_dimensions": known["dimensions"],
            "base_url": known.get("base_url"),
        }
    return made_with | {
        "api_key": key,
        "batch_size": wanted.batch_size,
        "concurrency": wanted.concurrency,
        "max_retries": wanted.max_retries,
    }


def docs_index_folder(settings: Settings, docs: Path, shelf: str = "docs") -> Path:
    """Where the index of a documents folder lies unless somebody says otherwise: under its name.

    Another folder of the same name has the index of that name: then the folder above is named too.
    """
    source = docs.resolve()
    for name in (source.name, f"{source.parent.name}-{source.name}"):
        folder = settings.data_folder / shelf / name
        if IndexFolder(folder).source in (None, str(source)):
            return folder
    raise InvalidSetting(f"Several folders are called {source.parent.name}/{source.name}; say where with --out.")


def default_docs_index(settings: Settings) -> Path:
    """The index that is configured or lies in the data folder; the first of several."""
    indexes = _docs_indexes(settings)
    if not indexes:
        raise InvalidSetting("There is no docs index yet; `bedstone docs build DIR` makes one.")
    return indexes[0]


def _docs_parts(settings: Settings) -> tuple[list[Path], Callable[[Mapping[str, Any]], "Embedder | None"]]:
    indexes = [*_docs_indexes(settings), *_served_folders(settings).values()]
    if not indexes:
        raise InvalidSetting("Say which docs index with --docs-index DIR; `bedstone docs build DIR` makes one.")
    return indexes, lambda known: build_embedder(settings, known)


def _docs_options(settings: Settings) -> dict[str, Any]:
    from bedstone.search.index import Weights

    docs = settings.docs
    if docs.watch and not docs.dir:
        logger.warning("Only folders given with --docs-dir are watched", extra={"action": "nothing_watched"})
    return {
        "keepers": [_docs_keeper(settings, folder, index) for folder, index in _served_folders(settings).items()],
        "weights": Weights(docs.proximity_weight / FITTED_PROXIMITY, docs.vector_weight, docs.phrase_slop),
        "tool_prefix": docs.tool_prefix,
    }


def _served_folders(settings: Settings) -> dict[Path, Path]:
    """Folders that are served directly, and their indexes, which nobody else finds."""
    return {docs: docs_index_folder(settings, docs, "served") for docs in settings.docs.dir}


def _docs_keeper(settings: Settings, docs: Path, index: Path) -> "DocsKeeper":
    from bedstone.services.docs.builder import BuildOptions, BuildReport, DocsBuilder
    from bedstone.services.docs.watcher import DocsKeeper

    IndexFolder(index).claim(docs)
    # A core is left to whoever searches meanwhile.
    options = BuildOptions(workers=max(1, (os.cpu_count() or 1) - 1))

    def build() -> BuildReport:
        return DocsBuilder(docs, index, build_embedder(settings), options, lambda *_: None).build()

    return DocsKeeper(docs, index, build, watch=settings.docs.watch)


def _docs_indexes(settings: Settings) -> list[Path]:
    """The indexes that are configured, or those that `bedstone docs build` put into the data folder."""
    if settings.docs.index or settings.docs.dir:
        return settings.docs.index
    return [path.parent for path in sorted(settings.data_folder.glob("docs/*/metadata.json"))]
