"""Move a knowledge base to another engine or place for files, and say how the settings name it from then on."""

import json
import re
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from bedstone.errors import InvalidInput
from bedstone.services.knowledge.opening import STORE
from bedstone.services.knowledge.ownership import STORE_ID
from bedstone.settings import Settings, layout
from bedstone.store import BLOBS, STORES
from bedstone.store.opening import open_blobs
from bedstone.user_paths import parse_path

if TYPE_CHECKING:
    from bedstone.services.knowledge.moving_files import FileMove, MovedFiles
    from bedstone.store.moving.move import MovedTable, OnProgress

ENDS = {  # each engine's source and target
    "sqlite": ("bedstone.store.moving.sqlite_end", "SqliteSource", "SqliteTarget"),
    "postgresql": ("bedstone.store.moving.postgres_end", "PostgresSource", "PostgresTarget"),
}
ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+:", re.IGNORECASE)  # one letter is a drive of Windows


@dataclass(frozen=True)
class MovedBase:
    """What was moved, where everything is now, and what is left to do."""

    tables: Mapping[str, "MovedTable"]  # of the store; none if it stays
    files: "MovedFiles | None"
    summary: tuple[str, ...]  # a sentence each
    setting: str  # the lines of the configuration file


def move_base(
    settings: Settings,
    to: str | None,
    blobs_to: str | None = None,
    on_progress: "OnProgress" = lambda step, done, total: None,
) -> MovedBase:
    """Copy the store of a base to another engine, its files to another place, or both, and compare everything.

    A move that was interrupted goes on. The store is complete only after the files are.
    """
    from bedstone.store.moving.move import move  # noqa: PLC0415 - the engine

    default = layout.knowledge_index(settings) / STORE
    name, place = _parse(settings.storage.database or f"sqlite:{default}", default)
    target_name, target_place = _parse(to, default) if to is not None else (None, None)
    if name == target_name:
        raise InvalidInput(
            f"The base is in {name} already, and it can be moved between SQLite and PostgreSQL only. Within "
            "PostgreSQL use pg_dump; a SQLite store is one file, to be copied while no server runs."
        )
    files_place = _parse_files_place(blobs_to, settings) if blobs_to is not None else None
    with ExitStack() as opened:
        source = opened.enter_context(closing(_end(name, 1)(place)))  # keeps servers away from the files, too
        files = _open_file_move(settings, files_place, source, opened) if files_place is not None else None
        target = opened.enter_context(closing(_end(target_name, 2)(target_place))) if target_name else None
        copied: list[MovedFiles] = []

        def copy_files() -> None:
            if files is not None and not copied:
                copied.append(files.copy(on_progress))

        tables: Mapping[str, MovedTable] = {}
        if target is not None:
            base = source.value(STORE_ID) or source.place
            tables = move(source, target, base, on_progress, before_finish=copy_files)
        copy_files()
        if files is not None:
            files.finish()
        moved_files = copied[0] if copied else None
        summary = _describe(settings, source.place, target.place if target else None, moved_files)
    return MovedBase(tables, moved_files, summary, _format_settings(settings, target_place, files_place))


def _open_file_move(settings: Settings, to: str | Path, source: Any, opened: ExitStack) -> "FileMove":
    from bedstone.services.knowledge.moving_files import FileMove  # noqa: PLC0415 - the engine
    from bedstone.store.moving.ends import DOCUMENTS  # noqa: PLC0415

    base = source.value(STORE_ID)
    if base is None:
        raise InvalidInput(f"The store {source.place} has no id yet. Open it once: bedstone knowledge status")
    cache = layout.knowledge_copies(settings)
    places = settings.storage.blobs or layout.knowledge_documents(settings), to
    here, there = (opened.enter_context(closing(open_blobs(place, cache))) for place in places)
    return FileMove(here, there, base, has_documents=source.count(DOCUMENTS) > 0)


def _parse_files_place(text: str, settings: Settings) -> str | Path:
    """Return the place for files at an address or a path; refuse the one that is used already."""
    name, _, rest = text.partition(":")
    to: str | Path = text
    if name == "folder" and rest.strip():
        to = f"folder:{parse_path(rest).absolute()}"
    elif ADDRESS.match(text) and name.lower() != "file":
        BLOBS.load(name)  # says what to install
    elif text.strip():
        to = parse_path(text).absolute()
    else:
        raise InvalidInput("--blobs-to needs an address such as s3://BUCKET/PREFIX, or a folder.")
    here, there = (_identify(place) for place in (settings.storage.blobs or layout.knowledge_documents(settings), to))
    is_inside = isinstance(here, Path) and isinstance(there, Path) and there.is_relative_to(here)
    if here == there or is_inside:
        raise InvalidInput(
            f"The files of the base are in {_without_password(str(here))} already. Name a place outside of it."
        )
    return to


def _identify(place: str | Path) -> str | Path:
    """Return what is equal for addresses of the same place."""
    if isinstance(place, str) and place.startswith("folder:"):
        place = Path(place.partition(":")[2])
    return place.resolve() if isinstance(place, Path) else place.rstrip("/")


def _parse(address: str, default: Path) -> tuple[str, Any]:
    """Return the engine of an address, and what its ends take: a path or the address."""
    name, _, rest = address.partition(":")
    if name not in ENDS:
        known = " or ".join(f"{engine}:…" for engine in ENDS)
        raise InvalidInput(f"A base can be moved from and to {known}, not from or to {name!r}.")
    if name != "sqlite":
        STORES.load(name)  # says what to install
        from bedstone.store.postgres.address import Address  # noqa: PLC0415 - an extra

        Address.parse(address)  # before anything is opened
        return name, address
    return name, (parse_path(rest) if rest else default).absolute()


def _end(name: str, place: int) -> Callable[[Any], Any]:
    module, *classes = ENDS[name]
    end: Callable[[Any], Any] = getattr(import_module(module), classes[place - 1])
    return end


def _describe(settings: Settings, source: str, target: str | None, files: "MovedFiles | None") -> tuple[str, ...]:
    """Return what was moved, and where the rest stays."""
    agree = "all counts and digests agree"
    if target is not None:
        store = f"The store was moved from {source} to {target}; {agree}."
    else:
        store = f"The store stays in {source}."
    if files is None:
        place = settings.storage.blobs or str(layout.knowledge_documents(settings))
        return store, f"Originals and texts of documents stay in {_without_password(place).partition('?')[0]}."
    moved = f"Originals and texts of documents were moved from {files.source} to {files.target}; {agree}."
    if not files.left:
        return store, moved
    count = f"{files.left:,} file{'' if files.left == 1 else 's'}"
    left = f"Not copied: {count}, such as {files.left_example}: unfinished work, or no part of the base."
    return store, moved, left


def _without_password(address: str) -> str:
    """Return an address that may be shown: its password is where it was found, or belongs into a password file."""
    if "://" not in address:
        return address
    parts = urlsplit(address)
    user, found, host = parts.netloc.rpartition("@")
    query = "&".join(item for item in parts.query.split("&") if not item.startswith(("password=", "sslpassword=")))
    return parts._replace(netloc=f"{user.partition(':')[0]}{found}{host}", query=query).geturl()


def _format_settings(settings: Settings, database: str | Path | None, files: str | Path | None) -> str:
    """Return the lines for the configuration file: where store and files are from now on, and what to remove."""
    storage = settings.storage
    values: dict[str, str | None] = {
        "database": storage.database,
        "blobs": storage.blobs,
        "documents_path": str(storage.documents_path) if storage.documents_path else None,
    }
    before = dict(values)
    if database is not None:
        is_default = database == (layout.knowledge_index(settings) / STORE).absolute()
        values["database"] = None if is_default else f"sqlite:{database}" if isinstance(database, Path) else database
    if files is not None:
        is_default = files == settings.data_folder.absolute() / "documents"
        values["blobs"] = files if isinstance(files, str) else None
        values["documents_path"] = str(files) if isinstance(files, Path) and not is_default else None
    removed = [f"# Remove storage.{name}." for name in values if before[name] and not values[name]]
    lines = [
        f"{name} = {json.dumps(_without_password(value), ensure_ascii=False)}"
        for name, value in values.items()
        if value
    ]
    return "\n".join([*removed, *(["[storage]", *lines] if lines else [])]) or "# Nothing: the defaults apply."
