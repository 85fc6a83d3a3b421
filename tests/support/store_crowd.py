"""Processes that write, follow and do the tasks of one store, for a test that kills them: `store_crowd.py ROLE ...`.

Each prints what it is about to do and what the store acknowledged, so that a test knows what must be there.
"""

import hashlib
import json
import random
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from bedstone.records import Chunk, Document, Passage, StoredChunk
from bedstone.store.engine import Store
from bedstone.store.opening import open_store

MAX_CHUNKS = 40  # more than a reader gets with its first query
PAUSE_SECONDS = 0.002


def say(*words: object) -> None:
    sys.stdout.write(f"{' '.join(map(str, words))}\n")
    sys.stdout.flush()


def digest_of(chunks: "list[Chunk] | list[StoredChunk]") -> str:
    """Return what tells two versions of a document apart, and a whole one from a part."""
    return hashlib.sha256("\n".join(item.text for item in chunks).encode()).hexdigest()[:16]


def write(store: Store, name: str, is_over: Callable[[], bool]) -> None:
    """Add, replace and delete documents of this process; each operation is announced and confirmed."""
    mine: list[str] = []
    chance, number = random.Random(name), 0
    while not is_over():
        number += 1
        if mine and chance.random() < 0.2:
            victim = mine.pop(chance.randrange(len(mine)))
            say("begin", victim, "-")
            store.delete([victim])
            say("done", victim, "-")
            continue
        identity = chance.choice(mine) if mine and chance.random() < 0.4 else f"{name}-{number}"
        count = chance.randint(1, MAX_CHUNKS)
        chunks = [Chunk(f"{identity}#{number}#{place}", f"{name} {number} {place}", "plain") for place in range(count)]
        digest = digest_of(chunks)
        say("begin", identity, digest)
        store.put([(Document(identity, identity, digest), chunks)])
        say("done", identity, digest)
        if identity not in mine:
            mine.append(identity)
        if chance.random() < 0.3:
            stored = store.chunks_of(identity)
            store.put_passages([(Passage(item.head.rowid, 0, 1), bytes(4)) for item in stored])


def follow(store: Store, is_over: Callable[[], bool]) -> None:
    """Keep a copy of all chunks and passages up to date by the list of changes alone; say at the end what it holds."""
    chunks: dict[int, str] = {}
    passages: dict[int, int] = {}
    seq = 0
    while True:
        version, is_last = store.version(), is_over()
        while changes := store.changes(seq, 50):
            for change in changes:
                if change.seq != seq + 1:
                    say("problem", f"change {change.seq} follows {seq}")
                seq = change.seq
                for rowid in range(change.gone_first, change.gone_last + 1):
                    chunks.pop(rowid, None)
                    passages = {number: owner for number, owner in passages.items() if owner != rowid}
                if change.kind == "put":
                    found = list(store.chunks_between(change.first, change.last))
                    if len({item.head.document_id for item in found}) > 1:
                        say("problem", f"change {change.seq} has chunks of several documents")
                    chunks |= {item.head.rowid: item.text for item in found}
                if change.kind == "vectors":
                    between = store.passages_between(change.first, change.last)
                    passages |= {item.id: item.passage.chunk_rowid for item in between}
        if is_last:
            break
        store.wait_for_change(version, 0.2)
    say("holds", json.dumps([sorted(chunks.items()), sorted(passages.items())]))


def work(store: Store, folder: Path, is_over: Callable[[], bool]) -> None:
    """Do tasks; a file lock, which ends with the process too, shows whether another process does the same one."""
    import fcntl  # noqa: PLC0415 - not on Windows

    chance = random.Random()
    while not is_over():
        for task in store.abandoned_tasks():
            if store.replace_task(replace(task, status="queued"), "running"):
                say("again", task.id)
        for task in store.tasks({"queued"}, limit=3):
            running = replace(task, status="running", attempts=task.attempts + 1)
            if not store.replace_task(running, "queued"):
                continue
            with (folder / task.id).open("w") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    say("problem", f"task {task.id} is held by two")
                time.sleep(chance.uniform(0.01, 0.1))
                if store.replace_task(replace(running, status="completed", finished_at=time.time()), "running"):
                    say("did", task.id)
        time.sleep(PAUSE_SECONDS)


def main(role: str, address: str, name: str) -> None:
    """Play a role until standard input ends."""
    over = threading.Event()

    def watch() -> None:
        sys.stdin.read()
        over.set()

    threading.Thread(target=watch, daemon=True).start()
    store = open_store(address)
    say("ready")
    match role:
        case "write":
            write(store, name, over.is_set)
        case "follow":
            follow(store, over.is_set)
        case "work":
            work(store, Path(name), over.is_set)
    store.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
