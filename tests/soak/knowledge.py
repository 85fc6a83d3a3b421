"""Kill the server at random moments while it adds, removes and clears; then look what is left: `make soak`.

    soak/knowledge.py [--kills 60] [--seed 1]

After every restart: whatever was acknowledged is there whole or gone whole, no half document, no file without a
document, tasks go on, and the index finds each document by what only it says.
"""

import argparse
import json
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any

from bedstone.search.embedders.minilm import MiniLm
from bedstone.services.knowledge.service import KnowledgeBase, KnowledgeOptions, KnowledgeQuery
from bedstone.store.engines.sqlite import SqliteStore
from ingest.test_reader import pdf
from support.processes import Listening, listening

SENTENCES = 40


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

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder = folder
        self.chance = chance
        self.count = 0
        self.there: dict[str, int] = {}  # completed and acknowledged: document id to number
        self.unsure: set[int] = set()  # asked for, not acknowledged as done
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
        elif roll < 0.9:
            name = self.chance.choice(list(self.there))
            number = self.there.pop(name)
            self.unsure.add(number)
            if call(server, "remove", {"document_id": name, "confirm": True})["success"]:
                self.gone.add(name)
                self.unsure.discard(number)
        elif roll < 0.93:
            before, self.there = self.there, {}
            self.unsure |= set(before.values())
            if call(server, "clear", {"confirm": True, "confirmation_phrase": "DELETE ALL"})["success"]:
                self.gone |= set(before)
                self.unsure = set()
        else:
            call(server, "search", {"query": "about the bay"})

    def check(self, data: Path) -> None:
        """Open what the killed server left, let tasks end, and compare."""
        store = SqliteStore(data / "index" / "knowledge.sqlite", durable=True)
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
            expect(set(numbers) <= set(self.there.values()) | self.unsure, "documents nobody added")
            folders = {path.name for path in (data / "documents").iterdir()}
            expect(folders == set(documents), f"folders and documents differ: {folders ^ set(documents)}")
            expect(not store.chunks_without_vectors(), "chunks without vectors")
            for number, name in numbers.items():
                self._whole(base, number, name)
            self.there = {name: number for number, name in numbers.items()}
            self.unsure.clear()
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


def expect(holds: bool, message: str) -> None:
    if not holds:
        raise Broken(message)


def call(server: Listening, tool: str, arguments: dict[str, Any]) -> Any:
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": f"knowledge-{tool}", "arguments": arguments},
    }
    status, answer = server.post("/mcp", body)
    if status != 200:
        raise ConnectionError(status)
    return json.loads(json.loads(answer)["result"]["content"][0]["text"])


def soak(kills: int, seed: int, told: Callable[[str], object] = lambda _: None) -> None:
    """Kill and look, again and again."""
    chance = random.Random(seed)
    root = Path(tempfile.mkdtemp(prefix="bedstone-soak-"))
    (root / "files").mkdir()
    story = Story(root / "files", chance)
    try:
        for number in range(1, kills + 1):
            run_until_killed(story, root, chance)
            story.check(root / "data")
            told(f"{number:3} kills, {len(story.there)} documents of {story.count} files")
    finally:
        shutil.rmtree(root, ignore_errors=True)


def run_until_killed(story: Story, root: Path, chance: random.Random) -> None:
    """Serve, act, and die at a moment nobody chose."""
    options = ("--toolsets", "knowledge", "--data-dir", root / "data")
    with listening(*options, log=root / "log") as server:
        call(server, "status", {})
        moment = time.monotonic() + chance.uniform(0.05, 2.5)
        killer = threading.Thread(target=kill, args=(server, moment))
        killer.start()
        with suppress(OSError, HTTPException, ValueError):  # it is dead
            while True:
                story.act(server)
        killer.join()


def kill(server: Listening, at: float) -> None:
    """Kill a server at a time."""
    time.sleep(max(0.0, at - time.monotonic()))
    server.process.send_signal(signal.SIGKILL)
    server.process.wait(10)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    soak(options.kills, options.seed, lambda line: sys.stdout.write(f"{line}\n"))
    sys.stdout.write("Nothing was lost.\n")


if __name__ == "__main__":
    main()
