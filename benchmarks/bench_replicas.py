"""Servers and workers on one PostgreSQL: how much more of them read and answer: `make bench-replicas`.

All programs share this machine, so its cores limit what a second one adds; the CPU of each part says what
it would need elsewhere.
"""

import argparse
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from bench_cluster import Meter, heading
from bench_search import row, shared_data

from bedstone.store.engines.postgres import PostgresStore
from support.balancer import haproxy
from support.cluster import Cluster, call, wait_for
from support.postgres import DURABLE, PostgresServer, postgres_server
from support.processes import Listening

ANSWERS = ("--role", "answers")
WORKERS = (1, 2, 4)
SERVERS = (1, 2)
CLIENTS = 8
SECONDS = 20.0
Parts = dict[str, list[int]]  # the numbers of the processes of each part


@contextmanager
def new_cluster(postgres: PostgresServer, folder: Path, name: str) -> Iterator[tuple[Cluster, PostgresStore]]:
    """Start nothing yet: return a cluster on a schema of its own, and its store."""
    work = folder / name
    work.mkdir()
    address = postgres.address(name)
    model = {"BEDSTONE_EMBEDDING__PROVIDER": "minilm", "BEDSTONE_STORAGE__DATABASE": address}
    with closing(Cluster.on(postgres, work, **model)) as cluster, closing(PostgresStore.open(address)) as store:
        yield cluster, store


def measure(parts: Parts) -> dict[str, Meter]:
    return {name: Meter(numbers) for name, numbers in parts.items()}


def add_all(server: Listening, store: PostgresStore, files: Sequence[Path]) -> None:
    """Add files, and wait until every one can be found."""
    for path in files:
        assert call(server, "add", {"file_path": str(path)})["success"]
    wait_for(lambda: not store.count_tasks(["queued", "running"]), seconds=1_800)
    assert store.count_tasks(["completed"]) == len(files), store.count_tasks(["failed"])


def measure_reading(postgres: PostgresServer, folder: Path, files: Sequence[Path]) -> None:
    size = sum(path.stat().st_size for path in files) / 1e6
    print(f"\n## Reading and embedding {len(files)} files, {size:.1f} MB\n")
    heading("workers", "files per second", "workers, CPU s", "server, CPU s", "PostgreSQL, CPU s", "passages")
    for count in WORKERS:
        with new_cluster(postgres, folder, f"reading_{count}") as (cluster, store):
            server = cluster.server(*ANSWERS)
            workers = [cluster.worker().pid for _ in range(count)]
            wait_for(lambda: len(cluster.status()["servers"]) > count, seconds=120)  # noqa: B023 - called at once
            meters = measure({"workers": workers, "server": [server.process.pid], "postgres": [postgres.process_id]})
            started = time.monotonic()
            add_all(server, store, files)
            rate = len(files) / (time.monotonic() - started)
            costs = [f"{meter.read(1)[1] / 1000:.1f}" for meter in meters.values()]
            row(count, f"{rate:.2f}", *costs, store.counts().passages)


def measure_answers(postgres: PostgresServer, folder: Path, files: Sequence[Path], queries: Sequence[str]) -> None:
    with new_cluster(postgres, folder, "answers") as (cluster, store), ExitStack() as stack:
        servers = [cluster.server(*ANSWERS)]
        worker = cluster.worker()
        add_all(servers[0], store, files)
        worker.terminate()
        worker.wait(60)
        servers += [cluster.server(*ANSWERS) for _ in SERVERS[1:]]
        print(f"\n## Hybrid searches through HAProxy, {store.counts().chunks:,} chunks, {CLIENTS} clients at once\n")
        heading(
            "servers",
            "queries per second",
            "client, CPU ms per query",
            "servers, CPU ms",
            "PostgreSQL, CPU ms",
            "median wait, ms",
        )
        for count in SERVERS:
            chosen = servers[:count]
            ports = [server.port for server in chosen]
            site = stack.enter_context(haproxy((ports * 2)[:2]))  # the configuration has two servers
            entry = Listening(chosen[0].process, int(site.rpartition(":")[2]), chosen[0].log)
            ask(entry, queries, SECONDS / 4)  # to warm up
            meters = measure({"servers": [server.process.pid for server in chosen], "postgres": [postgres.process_id]})
            own = time.process_time()
            waits = ask(entry, queries, SECONDS)
            client = (time.process_time() - own) / len(waits) * 1000
            costs = [f"{meter.read(len(waits))[1]:.2f}" for meter in meters.values()]
            median = sorted(waits)[len(waits) // 2] * 1000
            row(count, f"{len(waits) / SECONDS:.0f}", f"{client:.2f}", *costs, f"{median:.1f}")


def ask(server: Listening, queries: Sequence[str], seconds: float) -> list[float]:
    """Search from several clients at once, and return the waits."""
    waits: list[float] = []
    end = time.monotonic() + seconds

    def run(first: int) -> None:
        number = first
        while (started := time.monotonic()) < end:
            number += 1
            assert "results" in call(server, "search", {"query": queries[number % len(queries)]})
            waits.append(time.monotonic() - started)

    threads = [threading.Thread(target=run, args=(first * 17,)) for first in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return waits


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and the programs end too
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=200, help="number of files")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bedstone-bench-") as name, postgres_server(DURABLE) as postgres:
        folder = Path(name)
        data = shared_data(folder)
        source = next(corpus.source for corpus in data.known_items if corpus.name == data.vector_corpus)
        every = sorted(source.rglob("*.md"))
        files = every[:: max(1, len(every) // options.files)][: options.files]
        measure_reading(postgres, folder, files)
        measure_answers(postgres, folder, files, data.queries)


if __name__ == "__main__":
    main()
