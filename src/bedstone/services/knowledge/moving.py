"""Move the store of a knowledge base to another engine, and say how the settings name it from then on."""

import json
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from bedstone.errors import InvalidInput
from bedstone.services.knowledge.opening import STORE
from bedstone.services.knowledge.ownership import STORE_ID
from bedstone.settings import Settings, layout
from bedstone.store import STORES
from bedstone.user_paths import parse_path

if TYPE_CHECKING:
    from bedstone.store.moving.move import MovedTable, OnProgress

ENDS = {  # each engine's source and target
    "sqlite": ("bedstone.store.moving.sqlite_end", "SqliteSource", "SqliteTarget"),
    "postgresql": ("bedstone.store.moving.postgres_end", "PostgresSource", "PostgresTarget"),
}


@dataclass(frozen=True)
class MovedBase:
    """What was moved, from where to where, and what is left to do."""

    source: str
    target: str
    tables: Mapping[str, "MovedTable"]
    originals: str  # where the files of the documents are
    setting: str  # the lines of the configuration file


def move_base(settings: Settings, to: str, on_progress: "OnProgress" = lambda step, done, total: None) -> MovedBase:
    """Copy the store of a base to another engine, and compare everything; continue a move that was interrupted."""
    from bedstone.store.moving.move import move  # noqa: PLC0415 - the engine

    default = layout.knowledge_index(settings) / STORE
    source_name, source_place = _parse(settings.storage.database or f"sqlite:{default}", default)
    target_name, target_place = _parse(to, default)
    if source_name == target_name:
        raise InvalidInput(
            f"The base is in {source_name} already, and it can be moved between SQLite and PostgreSQL only. Within "
            "PostgreSQL use pg_dump; a SQLite store is one file, to be copied while no server runs."
        )
    with closing(_end(source_name, 1)(source_place)) as source, closing(_end(target_name, 2)(target_place)) as target:
        tables = move(source, target, source.value(STORE_ID) or source.place, on_progress)
        places = source.place, target.place
    return MovedBase(*places, tables, _describe_originals(settings), _setting(target_place, default))


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


def _describe_originals(settings: Settings) -> str:
    """Return where originals and texts of documents are; a store of files elsewhere is described here too."""
    return f"Originals and texts of documents stay in {layout.knowledge_documents(settings)}."


def _setting(place: Any, default: Path) -> str:
    """Return what to write into the configuration file."""
    if place == default:
        return f"# Remove storage.database: {default} is the default."
    address = f"sqlite:{place}" if isinstance(place, Path) else _without_password(place)
    return f"[storage]\ndatabase = {json.dumps(address, ensure_ascii=False)}"


def _without_password(address: str) -> str:
    """Return an address that may be shown: its password is where it was found, or belongs into a password file."""
    parts = urlsplit(address)
    user, found, host = parts.netloc.rpartition("@")
    query = "&".join(item for item in parts.query.split("&") if not item.startswith(("password=", "sslpassword=")))
    return parts._replace(netloc=f"{user.partition(':')[0]}{found}{host}", query=query).geturl()
