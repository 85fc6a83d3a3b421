"""With `--balancer`: two servers of one base on PostgreSQL and a bucket, each with a data folder of its own.

`shared` puts a base there that a test opens in its own process; `two_listening` starts the command twice.
"""

import hashlib
import os
import shutil
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from bedstone.app import among_peers, build_toolset, make_services
from bedstone.services.peers import Peers
from bedstone.settings import Settings
from bedstone.toolkit import Toolset
from support import balancer, processes
from support.bucket import bucket_server
from support.postgres import postgres_server

SECOND = "-of-the-second-server"
_started = ExitStack()


@dataclass(frozen=True)
class Replica:
    """What one server serves, and the others that it tells of changes."""

    toolsets: Sequence[Toolset]
    peers: Peers | None = None


def shared(settings: Settings) -> Settings:
    """Return settings for a base that two servers share; without `--balancer`, these settings."""
    if balancer.chosen is None or settings.storage.database is not None:
        return settings
    database, blobs = _place(settings.data_folder)
    storage = settings.storage.model_copy(update={"database": database, "blobs": blobs})
    return settings.model_copy(update={"storage": storage})


def close() -> None:
    """End PostgreSQL and the bucket."""
    _started.close()


@asynccontextmanager
async def replicas(toolsets: Sequence[Toolset]) -> AsyncIterator[tuple[Replica, Replica]]:
    """Yield what two servers serve: these toolsets, and the same ones on another data folder.

    The second server answers only, so a test decides how many files are read at once. Toolsets that were built from
    parts, not from settings, are served by both.
    """
    async with AsyncExitStack() as opened:
        mine, others = [toolset.service for toolset in toolsets], list(toolsets)
        contexts = [handle.context for handle in mine if handle is not None and handle.context is not None]
        if not contexts or contexts[0].peers is None or contexts[0].services is None:
            yield Replica(toolsets), Replica(toolsets)
            return
        first = contexts[0]
        settings = _second_settings(first.settings)
        services = make_services(settings)
        others = [build_toolset(toolset.label, settings, services) for toolset in toolsets]
        opened.push_async_callback(services.aclose)
        for toolset in others:
            await opened.enter_async_context(toolset.opened())
        assert first.services is not None
        for group in (first.services, services):
            has_documents = any(toolset.label == "knowledge" for toolset in toolsets)
            await opened.enter_async_context(among_peers(group, has_documents=has_documents))
        yield Replica(toolsets, first.peers), Replica(others, services.context.peers)


@contextmanager
def two_listening(*arguments: str | Path, log: Path, **options: Any) -> Iterator[processes.Listening]:
    """Yield a balancer before two processes as if it were a server; its process and log are those of the first one."""
    assert balancer.chosen is not None
    given, port = list(arguments), None
    if "--port" in given:
        place = given.index("--port")
        port = int(str(given[place + 1]))
        del given[place : place + 2]
    seconds = list(given)
    if folder := data_folder(given):
        seconds[given.index("--data-dir") + 1] = _second_folder(folder)
    options = environment(given) | options  # one base for both
    if not balancer.chosen.is_stateless:
        options = {"BEDSTONE_MCP__STATELESS": "false"} | options
    with ExitStack() as stack:
        first, second = (
            stack.enter_context(processes.one_listening(*each, log=file, **options))
            for each, file in ((given, log), (seconds, log.with_name(f"{log.name}{SECOND}")))
        )
        base = stack.enter_context(balancer.chosen.run([first.port, second.port], port))
        yield replace(first, port=int(base.rpartition(":")[2]))


def environment(arguments: Sequence[object]) -> dict[str, str]:
    """Return what tells a command where the base of its data folder is."""
    folder = data_folder(arguments)
    if folder is None:
        return {}
    database, blobs = _place(folder)
    return {"BEDSTONE_STORAGE__DATABASE": database, "BEDSTONE_STORAGE__BLOBS": blobs}


def data_folder(arguments: Sequence[object]) -> Path | None:
    """Return the data folder that a command is given."""
    given = [str(argument) for argument in arguments]
    return Path(given[given.index("--data-dir") + 1]) if "--data-dir" in given else None


@cache
def _place(folder: Path) -> tuple[str, str]:
    """Return the database and the bucket of the base of a data folder."""
    name = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]
    postgres, bucket = _servers()
    return postgres.address(f"base_{name}"), bucket.address(prefix=name)


@cache
def _servers() -> Any:
    postgres, bucket = _started.enter_context(postgres_server()), _started.enter_context(bucket_server())
    os.environ.update(bucket.environment)
    return postgres, bucket


def _second_settings(settings: Settings) -> Settings:
    folder = _second_folder(settings.data_folder)
    changes: dict[str, Any] = {"data_dir": folder, "role": "answers"}
    if settings.docs.index:  # each server has the indexes of documentation on its own disk
        copies = [folder / "indexes" / index.name for index in settings.docs.index]
        for index, copy in zip(settings.docs.index, copies, strict=True):
            shutil.copytree(index, copy, dirs_exist_ok=True)
        changes["docs"] = settings.docs.model_copy(update={"index": copies})
    return settings.model_copy(update=changes)


def _second_folder(folder: Path) -> Path:
    """Return the data folder of the second server, which at first has what the first one has: schemas, articles, runs.

    Those are not in the store.
    """
    second = folder.with_name(f"{folder.name}{SECOND}")
    if folder.is_dir() and not second.exists():
        shutil.copytree(folder, second, ignore=shutil.ignore_patterns("index", "documents"))
    return second
