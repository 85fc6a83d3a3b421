"""Kill servers, workers, search nodes and the PostgreSQL primary under mixed load: `make soak-cluster`.

    soak/cluster.py [--kills 200] [--seed 1] [--search embedded|opensearch] [--folder FOLDER]

Two servers behind HAProxy, two workers, a primary with a synchronous standby (Patroni, etcd), and with
`--search opensearch` three search nodes. One of them is killed with SIGKILL every few seconds and started again.
After every 25 kills the clients pause, and everything is compared: what was acknowledged with the store, each document
with the text that was added, each index with the store, and which process ran which task when. At the end: how long
nobody answered.
"""

import argparse
import hashlib
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg

from bedstone.records import Document
from bedstone.search.indexes.opening import open_index
from bedstone.search.indexes.opensearch.index import Factory
from bedstone.settings.sections import OpenSearchSettings
from bedstone.store.engine import ALL, Store
from bedstone.store.opening import open_store
from soak.clients import Clients, Subject, sentences, text_of, word_of
from soak.knowledge import Broken, expect, tell
from support.balancer import haproxy
from support.cluster import BEARER, TOKEN, call, working
from support.opensearch import SearchCluster, search_cluster
from support.patroni import DatabasePair, Member, database_pair
from support.processes import Listening, bedstone, free_port, listening

SCHEMA = "soak"
PREFIX = "soak"
WRITERS = 3
PAUSE_SECONDS = (2.0, 5.0)  # between two kills
CHECK_EVERY = 25  # kills
QUIET_SECONDS = 300  # for the queue to end, and the indexes to follow
MAX_GAP_SECONDS = 5.0  # without an answer while a server lives and the database can be written
SAMPLE = 60  # documents that each server is asked for
JAVA_OPTIONS = ("-Xms512m", "-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
WORKER = (sys.executable, Path(__file__).with_name("noted_tasks.py"))
WEIGHTS = {"server": 6, "worker": 6, "search node": 4, "primary": 3, "primary's machine": 1}


@dataclass
class Kill:
    """One kill, and how long it took until what was killed worked again."""

    number: int
    kind: str
    at: float
    back: float | None = None


@dataclass
class Part:
    """Something that can be killed: how, how it starts again, and whether it may be killed now."""

    kind: str
    kill: Callable[[], None]
    start: Callable[[], None]
    may_die: Callable[[], bool]
    is_away: bool = False


class Beat:
    """Writes to the database all the time: when that succeeded is when there was a primary."""

    def __init__(self, address: str) -> None:
        self._address = address.replace(f"&schema={SCHEMA}", "")
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.written_at: list[float] = [time.monotonic()]

    def __enter__(self) -> "Beat":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            with (
                suppress(psycopg.Error),
                psycopg.connect(self._address, connect_timeout=2, autocommit=True) as database,
            ):
                database.execute("CREATE TABLE IF NOT EXISTS public.beat(number integer)")
                while not self._stop.wait(0.2):
                    database.execute("INSERT INTO public.beat VALUES (1)")
                    self.written_at.append(time.monotonic())
            self._stop.wait(0.2)


class Soak:
    """The cluster, its clients, and what was killed so far."""

    def __init__(self, folder: Path, pair: DatabasePair, nodes: SearchCluster | None, seed: int) -> None:
        self.folder = folder
        self.pair = pair
        self.nodes = nodes
        self.chance = random.Random(seed)
        self.kills: list[Kill] = []
        self.deaths: dict[int, float] = {}  # by process
        self.notes = folder / "task-notes"
        self.environment: dict[str, Any] = {
            "BEDSTONE_STORAGE__DATABASE": pair.address(SCHEMA),
            "BEDSTONE_STORAGE__DOCUMENTS_PATH": str(folder / "documents"),
            "BEDSTONE_EMBEDDING__PROVIDER": "hash",
            "BEDSTONE_MCP__TOKEN": TOKEN,
            "TASK_NOTES": str(self.notes),
        }
        if nodes is not None:
            self.environment |= {
                "BEDSTONE_SEARCH__INDEX": "opensearch",
                "BEDSTONE_OPENSEARCH__HOSTS": ",".join(nodes.addresses),
                "BEDSTONE_OPENSEARCH__PREFIX": PREFIX,
            }
        self.servers: dict[int, Listening] = {}
        self.workers: dict[int, subprocess.Popen[bytes]] = {}
        self.ports = {number: free_port() for number in (1, 2)}
        self._started = ExitStack()
        self._restarts = ThreadPoolExecutor(8)
        self._count = 0

    # Starting and ending

    def start_server(self, number: int) -> None:
        """Start a server, and wait until it answers searches."""
        log = self._log(f"server-{number}")
        options = ("--toolsets", "knowledge", "--role", "answers", "--port", str(self.ports[number]))
        server = listening("--data-dir", self.data(f"server-{number}"), *options, log=log, **self.environment)
        self.servers[number] = self._started.enter_context(server)
        while not is_ready(self.servers[number]):
            expect(self.servers[number].process.poll() is None, f"server {number} ended at its start")
            time.sleep(0.1)

    def start_worker(self, number: int) -> None:
        name = f"worker-{number}"
        self.workers[number] = self._started.enter_context(
            working(self.data(name), self._log(name), WORKER, **self.environment)
        )

    def data(self, name: str) -> Path:
        """The data folder of a server or worker, which it keeps."""
        return self.folder / name

    def close(self) -> None:
        self._restarts.shutdown()
        self._started.close()

    def _log(self, name: str) -> Path:
        self._count += 1
        return self.folder / "logs" / f"{name}.{self._count}.log"

    def _end(self, process: "subprocess.Popen[bytes]") -> None:
        process.kill()
        process.wait(30)
        self.deaths[process.pid] = time.monotonic()

    # Killing

    def parts(self) -> list[Part]:
        """What can be killed: a server while another one is ready, a primary while a standby can replace it."""
        found = [
            *(
                Part("server", partial(self._end_server, number), partial(self.start_server, number), others_answer)
                for number, others_answer in ((1, partial(self._answers, 2)), (2, partial(self._answers, 1)))
            ),
            *(
                Part("worker", partial(self._end_worker, number), partial(self.start_worker, number), lambda: True)
                for number in self.workers
            ),
        ]
        if self.nodes is not None:
            found += [self._node(self.nodes, number) for number in range(len(self.nodes.nodes))]
        found += [self._primary(kind) for kind in ("primary", "primary's machine")]
        return found

    def _end_server(self, number: int) -> None:
        self._end(self.servers[number].process)

    def _end_worker(self, number: int) -> None:
        self._end(self.workers[number])

    def _answers(self, number: int) -> bool:
        return is_ready(self.servers[number])

    def _node(self, nodes: SearchCluster, number: int) -> Part:
        def start() -> None:
            nodes.start(number)
            nodes.wait_for_node(number)
            try:
                nodes.wait(seconds=QUIET_SECONDS / 2)
            except RuntimeError:
                nodes.allocate_again()
                nodes.wait(seconds=QUIET_SECONDS / 2)

        return Part("search node", partial(nodes.kill, number), start, nodes.is_whole)

    def _primary(self, kind: str) -> Part:
        is_machine = kind != "primary"
        killed: list[tuple[Member, int]] = []  # with its process

        def kill() -> None:
            member = self.pair.primary() or self.pair.members[0]
            killed[:] = [(member, member.postmaster)]
            self.pair.kill(member, with_patroni=is_machine)

        def start() -> None:
            ((member, before),) = killed
            if is_machine:
                time.sleep(self.chance.uniform(1, 30))
                self.pair.start(member)
            deadline = time.monotonic() + QUIET_SECONDS
            while member.postmaster in (0, before) or self.pair.primary() is None:
                expect(time.monotonic() < deadline, "the database has no standby again")
                time.sleep(0.2)

        return Part(kind, kill, start, lambda: self.pair.primary() is not None)

    def kill_one(self, parts: Sequence[Part]) -> Kill | None:
        """Kill one part, chosen at random, and start it again beside everything else."""
        kinds = sorted({part.kind for part in parts})
        kind = self.chance.choices(kinds, [WEIGHTS[kind] for kind in kinds])[0]
        part = self.chance.choice([part for part in parts if part.kind == kind])
        if part.is_away or not part.may_die():
            return None
        kill = Kill(len(self.kills) + 1, kind, time.monotonic())
        part.kill()
        self.kills.append(kill)
        part.is_away = True

        def restart() -> None:
            part.start()
            kill.back = time.monotonic() - kill.at
            part.is_away = False

        future = self._restarts.submit(restart)
        future.add_done_callback(report_failure)
        return kill

    def check_alive(self) -> None:
        """Raise if a process ended that nobody killed."""
        for name, processes in {
            "server": [server.process for server in self.servers.values()],
            "worker": [*self.workers.values()],
        }.items():
            for process in processes:
                code = process.poll()
                expect(code is None or process.pid in self.deaths, f"a {name} ended by itself with {code}")

    # Comparing

    @staticmethod
    def settle(store: Store) -> None:
        """Wait until the queue is empty and every chunk has its vectors."""

        def is_settled() -> bool:
            return not store.count_tasks({"queued", "running"}) and not store.chunks_without_vectors()

        wait_until(is_settled, "the queue to end", lambda: str(store.tasks({"queued", "running"}, limit=3)))

    def compare(self, clients: Clients, parts: Sequence[Part]) -> str:
        """Compare what was acknowledged, the store and all indexes; return what was found in a line."""
        started = time.monotonic()
        wait_until(lambda: not any(part.is_away for part in parts), "everything to run again", lambda: "")
        store = open_store(self.pair.address(SCHEMA), read_only=True)
        try:
            self.settle(store)
            documents = store.documents(limit=ALL)
            stored = compare_subjects(clients.subjects, documents)
            failed = [task.error for task in store.tasks({"failed"}, limit=ALL)]
            expect(not failed, f"{len(failed)} tasks failed: {failed[:3]}")
            for subject, document in stored.values():
                check_whole(store, subject, document)
            counts = digest(store.chunk_counts())
            for name in self.index_names():
                self.check_index(name, store, counts)
            self.check_answers([subject for subject, _ in stored.values()])
        finally:
            store.close()
        overlaps, runs = self.overlaps()
        expect(not overlaps, f"two processes ran a task at once: {overlaps[:3]}")
        return (
            f"compared in {time.monotonic() - started:.0f} s: {len(stored)} documents, {len(self.index_names())} "
            f"indexes, {len(runs)} tasks, {sum(len(item) > 1 for item in runs.values())} of them run again"
        )

    def index_names(self) -> list[str]:
        if self.nodes is not None:
            return ["search nodes"]
        return [f"{kind}-{number}" for kind in ("server", "worker") for number in (1, 2)]

    def check_index(self, name: str, store: Store, counts: str) -> None:
        """Wait until an index has applied the last change; then its digest must be that of the store."""
        last = store.last_change()
        expect(last is not None, "the store has no change")
        found: list[Any] = []

        def is_current() -> bool:
            assert last is not None
            if self.nodes is not None:
                kind = Factory(OpenSearchSettings(hosts=self.nodes.addresses, prefix=PREFIX))
                index = open_index(store, None, None, "read", kind=kind)
            else:
                index = open_index(store, self.data(name) / "index", None, "read")
            try:
                index.catch_up()
                found[:] = [index.applied_seq, digest(index.count_facets(None, None).get("document", {}))]
                if index.applied_seq < last.seq:
                    return False
                index.verify()
                return True
            finally:
                index.close()

        wait_until(is_current, f"the index of {name} to follow", lambda: f"{found[:1]} of {last}")
        expect(found[1] == counts, f"the index of {name} differs from the store")

    def check_answers(self, subjects: Sequence[Subject]) -> None:
        """Each server finds a sample of the files by what only they say."""
        chosen = self.chance.sample(subjects, min(SAMPLE, len(subjects)))
        for number, server in self.servers.items():
            for subject in chosen:
                self.check_answer(number, server, subject)

    @staticmethod
    def check_answer(number: int, server: Listening, subject: Subject) -> None:
        word = word_of(subject.number, max(subject.possible))
        names: list[str] = []

        def is_found() -> bool:
            results = call(server, "search", {"query": word, "top_k": 3}).get("results", [])
            names[:] = [hit["filename"] for hit in results]
            return names[:1] == [subject.path.name]

        wait_until(is_found, f"server {number} to find {word} in {subject.path.name}", lambda: str(names))

    def logged_errors(self) -> Counter[str]:
        """Count what servers and workers logged as errors."""
        found: Counter[str] = Counter()
        for path in (self.folder / "logs").glob("*.log"):
            for line in path.read_text(errors="replace").splitlines():
                if match := re.match(r"\S+ (ERROR +.*)", line):
                    found[match[1][:160]] += 1
        return found

    def overlaps(self) -> tuple[list[str], Mapping[str, list[tuple[float, float, int]]]]:
        """Return the tasks that two processes ran at once, and when each process ran each task."""
        runs: dict[str, list[tuple[float, float, int]]] = defaultdict(list)
        begun: dict[tuple[str, int], float] = {}
        for line in self.notes.read_text().splitlines() if self.notes.exists() else ():
            event, task, process, moment = line.split()
            if event == "begin":
                begun[task, int(process)] = float(moment)
            else:
                runs[task].append((begun.pop((task, int(process))), float(moment), int(process)))
        for (task, number), start in begun.items():
            runs[task].append((start, self.deaths.get(number, time.monotonic()), number))
        found = []
        for task, intervals in runs.items():
            intervals.sort()
            for (_, end, first), (begin, _, second) in pairwise(intervals):
                if begin < end:
                    found.append(f"{task} by {first} and {second} for {end - begin:.2f} s")
        return found, runs


def is_ready(server: Listening) -> bool:
    with suppress(OSError):
        return server.process.poll() is None and server.request("GET", "/readyz", headers=BEARER)[0] == 200
    return False


def wait_until(holds: Callable[[], bool], what: str, state: Callable[[], str]) -> None:
    """Wait for something that must happen; the database may be away for a moment meanwhile."""
    deadline, problem = time.monotonic() + QUIET_SECONDS, ""
    while True:
        try:
            if holds():
                return
            problem = ""
        except Exception as error:  # noqa: BLE001 - said if it does not go away
            problem = repr(error)
        if time.monotonic() > deadline:
            raise Broken(f"waited {QUIET_SECONDS} s for {what}: {problem or state()}")
        time.sleep(0.5)


def report_failure(future: "Future[None]") -> None:
    if (error := future.exception()) is not None:
        tell(f"      could not start again: {repr(error)[:300]}")


def digest(counts: Mapping[str, int]) -> str:
    return hashlib.sha256(repr(sorted(counts.items())).encode()).hexdigest()


def compare_subjects(subjects: Sequence[Subject], documents: Sequence[Document]) -> dict[int, tuple[Subject, Document]]:
    """Compare what may be there with what is there; what is there now must be there from now on."""
    found: dict[int, list[Document]] = defaultdict(list)
    for document in documents:
        found[int(str(document.attributes["filename"]).partition(".")[0])].append(document)
    known = {subject.number: subject for subject in subjects}
    expect(found.keys() <= known.keys(), f"documents nobody added: {found.keys() - known.keys()}")
    stored = {}
    for number, subject in known.items():
        names = [item.id for item in found[number]]
        expect(len(names) <= 1, f"file {number} is there more than once: {names}")
        version = version_of(subject, found[number][0]) if names else 0
        expect(
            version in subject.possible,
            f"file {number} is there in version {version}, and not in one of {subject.possible}",
        )
        subject.possible = {version}
        if names:
            stored[number] = (subject, found[number][0])
    return stored


def version_of(subject: Subject, document: Document) -> int:
    """Return which version of a file a document has the digest of."""
    digests = {
        hashlib.sha256(text_of(subject.number, version).encode()).hexdigest(): version
        for version in range(1, subject.version + 1)
    }
    expect(document.digest in digests, f"file {subject.number} is not there as it was added")
    return digests[document.digest]


def check_whole(store: Store, subject: Subject, document: Document) -> None:
    """Every sentence of the version is in the chunks, and no other one."""
    (version,) = subject.possible
    expect(document.attributes["status"] == "completed", f"{document.id} is {document.attributes['status']}")
    text = "\n".join(chunk.text for chunk in store.chunks_of(document.id))
    found = {int(place) for place in re.findall(rf"Sentence (\d+) of {word_of(subject.number, version)} is told", text)}
    wanted = set(range(sentences(subject.number, version)))
    expect(found == wanted, f"file {subject.number} has {len(found)} of {len(wanted)} sentences")
    others = set(re.findall(r"subject\d+v\d+x", text)) - {word_of(subject.number, version)}
    expect(not others, f"file {subject.number} has sentences of {others}")


@contextmanager
def running(options: argparse.Namespace, folder: Path) -> Iterator[tuple[Soak, Listening]]:
    """Start everything; yield it with the balancer as if that were a server."""
    with ExitStack() as stack:
        pair = stack.enter_context(database_pair())
        nodes = (
            stack.enter_context(search_cluster(java_options=JAVA_OPTIONS)) if options.search == "opensearch" else None
        )
        (folder / "logs").mkdir()
        soak = Soak(folder, pair, nodes, options.seed)
        stack.callback(soak.close)
        for number in soak.ports:
            soak.start_server(number)
        for number in (1, 2):
            soak.start_worker(number)
        base = stack.enter_context(haproxy([*soak.ports.values()]))
        yield soak, replace(soak.servers[1], port=int(base.rpartition(":")[2]))


def gaps(moments: Sequence[float], longest: float) -> list[tuple[float, float]]:
    """Return the times without any of some moments that were longer than that."""
    ordered = sorted(moments)
    return [(one, two) for one, two in pairwise(ordered) if two - one > longest]


@dataclass
class Answers:
    """How long nobody answered, in one stretch of load."""

    seconds: float = 0.0
    without_database: list[float] = field(default_factory=list)
    with_database: list[float] = field(default_factory=list)
    outages: list[float] = field(default_factory=list)

    def add(self, answered: Sequence[float], written: Sequence[float], end: float) -> None:
        """Sort the gaps by whether the database could be written when they began, or a moment later."""
        outages = gaps(written, 1.0)
        self.seconds += end - answered[0]
        self.outages += [two - one for one, two in outages if two > answered[0]]
        for one, two in gaps([*answered, end], 1.0):
            is_database = any(begin < two and one < back + MAX_GAP_SECONDS for begin, back in outages)
            (self.without_database if is_database else self.with_database).append(two - one)


def kill_some(
    count: int, soak: Soak, clients: Clients, parts: Sequence[Part], *, answers: Answers, beat: Beat, began: float
) -> None:
    """Kill a number of times while the clients work."""
    target = len(soak.kills) + count
    clients.start()
    try:
        while len(soak.kills) < target:
            time.sleep(soak.chance.uniform(*PAUSE_SECONDS))
            soak.check_alive()
            while (kill := soak.kill_one(parts)) is None:
                time.sleep(0.2)
            counts = clients.counts
            tell(
                f"{kill.number:4} {kill.at - began:6.0f} s  {kill.kind:18} acknowledged {counts.acknowledged:5}, "
                f"not {counts.unsure:4}, searches {counts.searches:6}, failed {counts.failed_searches:5}"
            )
        time.sleep(PAUSE_SECONDS[1])
    finally:
        end = time.monotonic()
        clients.pause()
        answers.add(clients.answered_at, beat.written_at, end)
        clients.answered_at.clear()
        for begun, seconds, is_answered in clients.slow:
            recent = [f"{kill.kind} {begun - kill.at:.0f} s before" for kill in soak.kills if 0 < begun - kill.at < 30]
            outcome = "answered" if is_answered else "failed"
            tell(f"      {begun - began:6.0f} s  a search {outcome} after {seconds:.1f} s: {', '.join(recent)}")
        clients.slow.clear()


def run(options: argparse.Namespace, folder: Path) -> None:
    """Kill and compare, in turns; show what was counted, also if something was lost."""
    began = time.monotonic()
    with running(options, folder) as (soak, site), Beat(soak.pair.address(SCHEMA)) as beat:
        clients = Clients(site, folder / "files", WRITERS, options.seed)
        parts, answers = soak.parts(), Answers()
        tell(f"Started in {time.monotonic() - began:.0f} s: {', '.join(part.kind for part in parts)}")
        began = time.monotonic()
        try:
            while len(soak.kills) < options.kills:
                count = min(CHECK_EVERY, options.kills - len(soak.kills))
                kill_some(count, soak, clients, parts, answers=answers, beat=beat, began=began)
                tell(f"      {soak.compare(clients, parts)}")
        finally:
            show(soak, clients, answers, time.monotonic() - began)
        done = bedstone("knowledge", "verify", "--data-dir", soak.data("server-1"), **soak.environment)
        expect(done.returncode == 0, f"verify: {done.stdout[-2000:]}{done.stderr[-1000:]}")
        tell(f"verify: {done.stdout.strip().splitlines()[-1]}")
        longest = max(answers.with_database, default=0.0)
        expect(longest <= MAX_GAP_SECONDS, f"nobody answered for {longest:.1f} s while a server and the database lived")


def show(soak: Soak, clients: Clients, answers: Answers, seconds: float) -> None:
    """Print the result."""
    tell(f"\n{len(soak.kills)} kills in {seconds / 60:.0f} minutes")
    for kind in WEIGHTS:
        times = [kill.back for kill in soak.kills if kill.kind == kind and kill.back is not None]
        if times:
            back = f"answers again after {statistics.median(times):.1f} s, at most {max(times):.1f} s"
            tell(f"  {len(times):4} {kind:18} {back if kind != 'worker' else ''}")
    counts = clients.counts
    tell(f"acknowledged: {counts.added} added, {counts.replaced} replaced, {counts.removed} removed")
    tell(f"not acknowledged: {counts.unsure}")
    for reason, count in sorted(clients.reasons.items(), key=lambda item: -item[1])[:12]:
        tell(f"  {count:5} {reason}")
    overlaps, runs = soak.overlaps()
    again = sum(len(item) > 1 for item in runs.values())
    tell(f"tasks: {len(runs)} run, {again} of them again, by two processes at once: {len(overlaps)}")
    tell(f"searches: {counts.searches} answered, {counts.failed_searches} failed")
    tell(f"database not writable: {describe(answers.outages)}")
    tell(f"no answer for more than 1 s, around these: {describe(answers.without_database)}")
    tell(f"no answer for more than 1 s, otherwise: {describe(answers.with_database)}")
    tell(f"of {answers.seconds:.0f} s of load")
    tell("errors in the logs:")
    for message, count in soak.logged_errors().most_common(12):
        tell(f"  {count:5} {message}")


def describe(times: Sequence[float]) -> str:
    if not times:
        return "never"
    median, total = statistics.median(times), sum(times)
    return f"{len(times)} times, median {median:.1f} s, at most {max(times):.1f} s, {total:.0f} s in all"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--search", choices=["embedded", "opensearch"], default="embedded")
    parser.add_argument(
        "--folder", type=Path, help="where data and logs are kept; default: a new one, deleted at the end"
    )
    options = parser.parse_args()
    with ExitStack() as stack:
        name = stack.enter_context(tempfile.TemporaryDirectory(prefix="bedstone-soak-")) if not options.folder else None
        folder = options.folder or Path(str(name))
        folder.mkdir(exist_ok=True)
        run(options, folder)
    tell("Nothing was lost.")


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    main()
