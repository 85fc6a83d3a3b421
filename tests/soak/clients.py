"""Clients that add, replace, remove and find files through the balancer, and remember what was acknowledged."""

import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any

from support.cluster import call
from support.processes import Listening

PAUSE_SECONDS = 0.4
SMALL, LARGE = (5, 200), (10_000, 30_000)  # sentences; a large file is read for some seconds
LARGE_SHARE = 0.02
SEARCHERS = 2
SLOW_SECONDS = 5.0
FAILURES = (OSError, HTTPException, AssertionError, ValueError, KeyError)


def word_of(number: int, version: int) -> str:
    return f"subject{number}v{version}x"


def sentences(number: int, version: int) -> int:
    """Return how long a version of a file is."""
    chance = random.Random(f"{number} {version}")
    return chance.randint(*(LARGE if chance.random() < LARGE_SHARE else SMALL))


def text_of(number: int, version: int) -> str:
    word = word_of(number, version)
    lines = (f"Sentence {place} of {word} is told at length." for place in range(sentences(number, version)))
    return f"# About {word}\n\n" + " ".join(lines)


@dataclass
class Subject:
    """One file: which versions may be stored by now, and 0 if none may be."""

    number: int
    path: Path
    version: int = 0  # the last one that was written
    possible: set[int] = field(default_factory=lambda: {0})
    is_unsure: bool = False  # a request was not answered: nothing more is asked for this file
    document: str | None = None  # the id of the version that is stored, if it is known
    task: str | None = None


@dataclass
class Counts:
    added: int = 0
    replaced: int = 0
    removed: int = 0
    unsure: int = 0
    searches: int = 0
    failed_searches: int = 0

    @property
    def acknowledged(self) -> int:
        return self.added + self.replaced + self.removed


class Clients:
    """A few clients that write, each its own files, and some that search."""

    def __init__(self, site: Listening, folder: Path, writers: int, seed: int) -> None:
        self._site = site
        self._folder = folder
        self._stop = threading.Event()
        self._guard = threading.Lock()
        self._running = threading.Semaphore(0)
        self._seeds = [seed * 100 + place for place in range(writers)]
        self._numbers = 0
        self.counts = Counts()
        self.subjects: list[Subject] = []
        self.answered_at: list[float] = []  # of searches, in the order of the clock
        self.slow: list[tuple[float, float, bool]] = []  # searches: when, how long, and whether with an answer
        self.reasons: dict[str, int] = {}  # why requests were not acknowledged
        self._threads: list[threading.Thread] = []
        folder.mkdir()

    def start(self) -> None:
        """Send requests until `pause`."""
        self._stop.clear()
        self.answered_at.append(time.monotonic())
        works: list[Callable[[], None]] = [self._search] * SEARCHERS
        works += [lambda seed=seed: self._write(random.Random(seed)) for seed in self._seeds]  # type: ignore[misc]
        self._seeds = [seed + 10_000 for seed in self._seeds]
        self._threads = [threading.Thread(target=work) for work in works]
        for thread in self._threads:
            thread.start()

    def pause(self) -> None:
        """Wait until every request has its answer, or none will come."""
        self._stop.set()
        for thread in self._threads:
            thread.join()
        self._threads = []

    def _write(self, chance: random.Random) -> None:
        mine: list[Subject] = []
        while not self._stop.wait(chance.uniform(0.5, 1.5) * PAUSE_SECONDS):
            mine = [subject for subject in mine if not subject.is_unsure]
            roll, subject = chance.random(), chance.choice(mine) if mine else None
            if subject is None or roll < 0.5:
                subject = self._new_subject()
                mine.append(subject)
                self._add(subject, chance)
            elif roll < 0.75:
                self._add(subject, chance)
            else:
                self._remove(subject)

    def _new_subject(self) -> Subject:
        with self._guard:
            self._numbers += 1
            subject = Subject(self._numbers, self._folder / f"{self._numbers}.md")
            self.subjects.append(subject)
        return subject

    def _add(self, subject: Subject, chance: random.Random) -> None:
        """Add a file, or its next version; wait for it or not."""
        is_new = subject.possible == {0}
        subject.version += 1
        subject.path.write_text(text_of(subject.number, subject.version))
        subject.possible = subject.possible | {subject.version}
        subject.document = subject.task = None
        given = {"file_path": str(subject.path), "async": chance.random() < 0.6}
        if (answer := self._ask("add", given)) is None:
            subject.is_unsure = True
            return
        subject.possible = {subject.version}
        subject.document, subject.task = answer.get("document_id"), answer.get("task_id")
        with self._guard:
            self.counts.added += is_new
            self.counts.replaced += not is_new

    def _remove(self, subject: Subject) -> None:
        """Remove a document that is known to be stored."""
        if subject.document is None and subject.task is not None:
            state = self._ask("task-status", {"task_id": subject.task}, counts=False) or {}
            subject.document = (state.get("result") or {}).get("document_id")
        if subject.document is None:
            return
        subject.possible = subject.possible | {0}
        if self._ask("remove", {"document_id": subject.document, "confirm": True}) is None:
            subject.is_unsure = True
            return
        subject.possible, subject.document, subject.task = {0}, None, None
        with self._guard:
            self.counts.removed += 1

    def _ask(self, tool: str, arguments: Mapping[str, Any], *, counts: bool = True) -> dict[str, Any] | None:
        """Return what was acknowledged, or None."""
        try:
            answer: dict[str, Any] = call(self._site, tool, arguments)
            if answer["success"]:
                return answer
            reason = f"{tool}: {answer.get('message')}"
        except FAILURES as error:
            reason = f"{tool}: {error!r}"
        with self._guard:
            self.reasons[reason[:160]] = self.reasons.get(reason[:160], 0) + 1
            self.counts.unsure += counts
        return None

    def _search(self) -> None:
        """Search all the time; when the answers came is the measure of whether anybody answers."""
        while not self._stop.wait(0.15):
            begun = time.monotonic()
            answer = self._ask("search", {"query": "told at length", "top_k": 3}, counts=False)
            with self._guard:
                if time.monotonic() - begun > SLOW_SECONDS:
                    self.slow.append((begun, time.monotonic() - begun, answer is not None))
                self.counts.searches += answer is not None
                self.counts.failed_searches += answer is None
                if answer is not None:
                    self.answered_at.append(time.monotonic())
