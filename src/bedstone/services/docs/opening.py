"""Open the docs service from the settings, and locate its indexes."""

import logging
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bedstone.errors import InvalidSetting
from bedstone.services.docs.index_folder import IndexFolder
from bedstone.services.docs.service import DocsService
from bedstone.services.service import ServiceContext
from bedstone.settings import Settings, layout
from bedstone.settings.own_files import OwnFiles

if TYPE_CHECKING:
    from bedstone.search.index import Weights
    from bedstone.services.docs.builder import BuildReport
    from bedstone.services.docs.fetching import PublishedCorpus
    from bedstone.services.docs.watcher import CorpusWatcher
    from bedstone.store.blobs import Blobs

logger = logging.getLogger(__name__)

CACHE = ".cache"
CORPUS_NAME = re.compile(r"[A-Za-z0-9_][\w .-]{0,100}")
FITTED_PROXIMITY = 1.25  # the value of the setting that equals the fitted weight


def open_docs(context: ServiceContext) -> DocsService:
    """Return the service over the configured indexes and folders."""
    settings, docs = context.settings, context.settings.docs
    folders = {source: index_folder(layout.served_docs_indexes(settings), source) for source in docs.dir}
    published = open_published(settings, docs.published)
    indexes = [*layout.configured_docs_indexes(settings), *folders.values(), *(corpus.index for corpus in published)]
    if not indexes:
        raise InvalidSetting("No docs index configured. Pass --docs-index DIR, or run `bedstone docs build DIR`.")
    if docs.watch and not docs.dir:
        logger.warning("Only folders given with --docs-dir are watched", extra={"action": "nothing_watched"})
    return DocsService(
        indexes,
        context.embedders.get,
        watchers=[*(_make_watcher(context, source, index) for source, index in folders.items()), *published],
        weights=docs_weights(settings),
        tuning=settings.search.tuning_of,
        get_secret=lambda: context.secret,
    )


def open_published(settings: Settings, addresses: Sequence[str]) -> "list[PublishedCorpus]":
    """Return published corpora, fetched if this machine has no copy; the end of an address is the name of a corpus."""
    if not addresses:
        return []
    from bedstone.services.docs.fetching import PublishedCorpus  # noqa: PLC0415 - for published corpora only

    folder, corpora = layout.published_docs_indexes(settings), dict[str, PublishedCorpus]()
    for blobs in [open_published_place(settings, address) for address in addresses]:
        name = blobs.place.rpartition("/")[2]
        if name in corpora:
            raise InvalidSetting(
                f"docs.published has two corpora named {name!r}. Publish one of them under another name."
            )
        corpora[name] = PublishedCorpus(blobs, folder / name)
    for corpus in corpora.values():
        corpus.ensure_copy()
    return [*corpora.values()]


def open_published_place(settings: Settings, address: str) -> "Blobs":
    """Return the place at an address to publish to, or to fetch from."""
    from bedstone.store.opening import open_blobs  # noqa: PLC0415 - for published corpora only

    blobs = open_blobs(address, layout.published_docs_indexes(settings) / CACHE)
    folder, _, name = blobs.place.rpartition("/")
    if not CORPUS_NAME.fullmatch(name) or folder.endswith(":/"):
        raise InvalidSetting("End the address with the name of the corpus, as in s3://BUCKET/docs/NAME.")
    return blobs


def docs_weights(settings: Settings) -> "Weights":
    """Return the weights for every documentation corpus."""
    from bedstone.search.index import Weights  # noqa: PLC0415 - with the engine

    docs = settings.docs
    return Weights(docs.proximity_weight / FITTED_PROXIMITY, docs.vector_weight, docs.phrase_slop)


def default_index(settings: Settings) -> Path:
    """Return the index that is configured or in the data folder; the first of several."""
    indexes = layout.configured_docs_indexes(settings)
    if not indexes:
        raise InvalidSetting("No docs index found. Build one with `bedstone docs build DIR`.")
    return indexes[0]


def index_folder(parent: Path, docs: Path) -> Path:
    """Return the default index folder for a documentation folder: named after it.

    If an index of another folder has that name, the name of the parent folder is added.
    """
    source = docs.resolve()
    for name in (source.name, f"{source.parent.name}-{source.name}"):
        if IndexFolder(parent / name).source in (None, str(source)):
            return parent / name
    raise InvalidSetting(
        f"Several folders are named {source.parent.name}/{source.name}. Choose an index folder with --out."
    )


def _make_watcher(context: ServiceContext, docs: Path, index: Path) -> "CorpusWatcher":
    from bedstone.services.docs.builder import BuildOptions, DocsBuilder  # noqa: PLC0415 - with the engine
    from bedstone.services.docs.watcher import CorpusWatcher  # noqa: PLC0415

    IndexFolder(index).claim(docs)
    workers = max(1, (os.cpu_count() or 1) - 1)  # one core stays free for searches
    own_files, coverage = OwnFiles.of(context.settings), context.settings.embedding.coverage
    options = BuildOptions(workers=workers, own_files=own_files, coverage=coverage)

    def build() -> "BuildReport":
        return DocsBuilder(docs, index, context.embedders.get(), options, lambda *_: None).build()

    return CorpusWatcher(docs, index, build, watch=context.settings.docs.watch)
