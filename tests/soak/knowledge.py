"""Kill the server at random moments while it adds, removes and clears; then look what is left: `make soak`.

    soak/knowledge.py [--kills 60] [--seed 1]

After every restart: whatever was acknowledged is there whole or gone whole, no half document, no file without a
document, tasks go on, and the index finds each document by what only it says. Every third round is another one:
imports and docs builds are killed, the disk is full, or files of the store, the index and the texts are damaged
(`rounds.py`).
"""

import argparse
import json
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from http.client import HTTPException
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bedstone.search.embedders.minilm import MiniLm
from bedstone.services.knowledge.options import KnowledgeOptions
from bedstone.services.knowledge.searching import KnowledgeQuery
from bedstone.services.knowledge.service import KnowledgeBase
from bedstone.store.opening import open_store
from ingest.test_reader import pdf
from support.disks import small_disk
from support.processes import Listening, listening

SENTENCES = 40
DISK_MEGABYTES = 512


class Broken(AssertionError):
    """Something that was promised is not so."""


def text_of(number: int) -> str:
    lines = (f"Sentence {place} of subject{number}x about the bay." for place in range(SENTENCES))
    return f"Subject{number}x begins. " + " ".join(lines) + f" Subject{number}x ends."


def write(folder: Path, number: int) -> Path:
    if number % 4 == 3:
        path = folder / f"{number}.pdf"
        path.write_bytes(pdf(*[f"Subject{number}x: page {page} about the bay." for page in range(1, 6)]))
    else:
        path = folder / f"{number}.txt"
        path.write_text(text_of(number))
    return path


class Story:
    """What the server has acknowledged so far."""

    def __init__(self, folder: Path, chance: random.Random, database: str | None = None) -> None:
        self.folder = folder
        self.chance = chance
        self.database = database
        self.count = 0
        self.there: dict[str, int] = {}  # completed and acknowledged: document id to number
        self.promised: set[int] = set()  # acknowledged, to be read later
        self.unsure: set[int] = set()  # asked for, not acknowledged
        self.doubted: set[int] = set()  # asked for long ago: a rebuild may bring back a copy that was moved aside
        self.gone: set[str] = set()

    def act(self, server: Listening) -> None:
        """One random request; what it promises is noted when the answer is there."""
        roll = self.chance.random()
        if roll < 0.55 or not self.there:
            self.count += 1
            number = self.count
            self.unsure.add(number)
            path = write(self.folder, number)
            answer = call(server, "add", {"file_path": str(path), "async": self.chance.random() < 0.3})
            if "document_id" in answer:
                self.there[answer["document_id"]] = number
                self.unsure.discard(number)
            elif answer["success"]:
                self.promised.add(number)
                self.unsure.discard(number)
        elif roll < 0.9:
            name = self.chance.choice(list(self.there))
            number = self.there.pop(name)
            self.unsure.add(number)
            if call(server, "remove", {"document_id": name, "confirm": True})["success"]:
                self.gone.add(name)
                self.unsure.discard(number)
        elif roll < 0.93:
            before, self.there = self.there, {}
            self.unsure |= {*before.values(), *self.promised}
            self.promised = set()
            if call(server, "clear", {"confirm": True, "confirmation_phrase": "DELETE ALL"})["success"]:
                self.gone |= set(before)
                self.unsure = set()
        else:
            call(server, "search", {"query": "about the bay"})

    def check(self, data: Path) -> None:
        """Open what the killed server left, let tasks end, and compare."""
        store = open_store(self.database or data / "index" / "knowledge.sqlite", durable=True)
        base = KnowledgeBase(store, KnowledgeOptions(data / "documents", data / "index"), MiniLm)
        base.open()
        try:
            for task in base.active_tasks():
                base.wait(task.id)
            documents = {document.id: document for document in base.documents()}
            expect(set(self.there) <= set(documents), f"lost: {set(self.there) - set(documents)}")
            expect(not self.gone & set(documents), f"came back: {self.gone & set(documents)}")
            numbers = {int(item.filename.partition(".")[0]): name for name, item in documents.items()}
            expect(len(numbers) == len(documents), "the same content twice")
            expect(self.promised <= set(numbers), f"acknowledged and lost: {self.promised - set(numbers)}")
            asked = {*self.there.values(), *self.promised, *self.unsure, *self.doubted}
            expect(set(numbers) <= asked, f"documents nobody added: {set(numbers) - asked}")
            folders = {path.name for path in (data / "documents").glob("[!.]*")}
            expect(folders == set(documents), f"folders and documents differ: {folders ^ set(documents)}")
            expect(not store.chunks_without_vectors(), "chunks without vectors")
            for number, name in numbers.items():
                self._whole(base, number, name)
            self.there = {name: number for number, name in numbers.items()}
            self.doubted |= self.unsure
            self.unsure.clear()
            self.promised.clear()
        finally:
            base.close()

    @staticmethod
    def _whole(base: KnowledgeBase, number: int, name: str) -> None:
        document = base.get_document(name)
        expect(document.status == "completed", f"{name} is {document.status}")
        text = "\n".join(stored.plain for stored in base.chunks(name))
        last = f"Subject{number}x ends" if document.format == "txt" else "page 5"
        expect(last in text, f"{name} is not whole")
        expect(bool(base.read_pages(name)), f"{name} has no text")
        hits = base.search(KnowledgeQuery(f"subject{number}x", 1))
        expect(bool(hits) and hits[0].document.id == name, f"{name} is not found by its own words")


Round = Callable[[Story, Path, random.Random], None]


def expect(holds: bool, message: str) -> None:
    if not holds:
        raise Broken(message)


def call(server: Listening, tool: str, arguments: dict[str, Any]) -> Any:
    return call_tool(server, f"knowledge-{tool}", arguments)


def call_tool(server: Listening, name: str, arguments: dict[str, Any]) -> Any:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    status, answer = server.post("/mcp", body)
    if status != 200:
        raise ConnectionError(status)
    return json.loads(json.loads(answer)["result"]["content"][0]["text"])


def soak(
    kills: int,
    seed: int,
    told: Callable[[str], object] = lambda _: None,
    rounds: Sequence[Round] = (),
    database: str | None = None,
) -> None:
    """Kill and look, again and again; every third time in a round of another kind."""
    chance = random.Random(seed)
    with TemporaryDirectory(prefix="bedstone-soak-", ignore_cleanup_errors=True) as root, ExitStack() as stack:
        folder = Path(root)
        (folder / "files").mkdir()
        disk = stack.enter_context(small_disk(folder / "disk", DISK_MEGABYTES)).folder if rounds else folder
        story = Story(folder / "files", chance, database)
        for number in range(1, kills + 1):
            play = chance.choice(rounds) if number % 3 == 0 and rounds else run_until_killed
            play(story, disk / "data", chance)
            story.check(disk / "data")
            told(f"{number:3} {play.__name__:18} {len(story.there)} documents of {story.count} files")


def run_until_killed(story: Story, data: Path, chance: random.Random) -> None:
    """Serve, act, and die at a moment nobody chose."""
    with serving(story, data) as server:
        call(server, "status", {})
        moment = time.monotonic() + chance.uniform(0.05, 2.5)
        killer = threading.Thread(target=kill, args=(server, moment))
        killer.start()
        with suppress(OSError, HTTPException, ValueError):  # it is dead
            while True:
                story.act(server)
        killer.join()


def serving(story: Story, data: Path) -> AbstractContextManager[Listening]:
    """Serve the knowledge base of a data folder."""
    environment = {"BEDSTONE_STORAGE__DATABASE": story.database} if story.database else {}
    return listening("--toolsets", "knowledge", "--data-dir", data, log=story.folder.parent / "log", **environment)


def kill(server: Listening, at: float) -> None:
    """Kill a server at a time."""
    time.sleep(max(0.0, at - time.monotonic()))
    server.process.send_signal(signal.SIGKILL)
    server.process.wait(10)


def tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    from soak.rounds import ROUNDS  # noqa: PLC0415 - they use this module

    soak(options.kills, options.seed, tell, ROUNDS)
    sys.stdout.write("Nothing was lost.\n")


if __name__ == "__main__":
    main()
