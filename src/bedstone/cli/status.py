"""`bedstone status`: who serves and who works on the store of added files, how far each is, and what waits."""

import json
import os
import time
from dataclasses import asdict
from typing import Any

import click

from bedstone import __version__
from bedstone.cli.options import configuration, settings_options
from bedstone.records import TaskStatus
from bedstone.services.knowledge.opening import store_file
from bedstone.services.peers import Peer, list_peers
from bedstone.services.service import format_count
from bedstone.settings import Settings, layout
from bedstone.store.engine import Store
from bedstone.store.opening import open_store

STATUSES: tuple[TaskStatus, ...] = ("queued", "running", "failed")
STATUS_FLAGS = {"--data-dir": "data_dir"}


@click.command(short_help="Show servers and workers, how far each is, and what waits.")
@settings_options(STATUS_FLAGS)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(*, as_json: bool, **options: Any) -> None:
    """Show the servers and workers on one store: role, version, changes that their index lacks, and what each does.

    Then the files that wait to be read. Only servers with a PostgreSQL database (storage.database) see each other.
    """
    found = _find(configuration(options).settings)
    click.echo(json.dumps(found, indent=2) if as_json else _describe(found))


def _find(settings: Settings) -> dict[str, Any]:
    file = store_file(settings)
    place = layout.knowledge_store(settings)
    empty: dict[str, Any] = {
        "version": __version__,
        "store": place,
        "shared": file is None,
        "last_change": 0,
        "servers": [],
    }
    if file is not None and not file.exists():
        return empty | {"queue": dict.fromkeys(STATUSES, 0), "works": False}
    is_frozen = file is None or not os.access(file, os.W_OK)
    store = open_store(file or settings.storage.database or "", read_only=is_frozen)
    try:
        last = store.last_change()
        queue = {name: store.count_tasks({name}, dismissed=False) for name in STATUSES}
        servers = [_facts(peer) for peer in list_peers(store.notes)] if store.notes is not None else []
        facts = {"last_change": last.seq if last else 0, "queue": queue, "servers": servers}
        works = any(item["works"] for item in servers) or (not is_frozen and _is_owned(store))
        return {**empty, **facts, "works": works}
    finally:
        store.close()


def _facts(peer: Peer) -> dict[str, Any]:
    facts = asdict(peer)
    done = facts.pop("work")
    return {**facts, **done, "works": peer.reads_files, "seconds": round(time.time() - peer.started_at)}


def _is_owned(store: Store) -> bool:
    """Return whether a process of this machine has the tasks of a store in a file."""
    lock = store.lock("owner")
    if not lock.acquire():
        return True
    lock.release()
    return False


def _describe(found: dict[str, Any]) -> str:
    lines = [f"Store: {found['store']}, {format_count(found['last_change'], 'change')}"]
    for item in found["servers"]:
        where = item["address"] or f"process {item['process']}"
        behind = f"{format_count(item['behind'], 'change')} behind" if item["behind"] else "up to date"
        row = [f"{item['role']:8}", f"{item['host']} {where}", item["version"], f"up {item['seconds']:,} s", behind]
        row += [f"reads {', '.join(item['tasks'])}"] if item["tasks"] else []
        row += [f"does {', '.join(item['jobs'])} for all"] if item["jobs"] else []
        lines.append("  " + "  ".join(row))
    if not found["shared"]:
        lines.append("  A process of this machine reads files." if found["works"] else "  No process reads files.")
    elif not found["works"]:
        lines.append("  No server reads files: start `bedstone work`.")
    queue = found["queue"]
    lines.append(f"Files: {queue['queued']:,} wait, {queue['running']:,} are being read, {queue['failed']:,} failed")
    return "\n".join(lines)
