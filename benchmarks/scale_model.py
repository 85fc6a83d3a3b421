"""Simulate shards, replicas, queues and failures with service times that were measured: `make scale-model`.

    benchmarks/scale_model.py [--queries 20000] [--years 200] [--seed 1] [--growth power|log]

Queries arrive at random. A front end embeds each one, asks one replica of every shard, and merges what they find; the
slowest shard decides. Each node works on as many searches at once as it has cores, and the others wait in order. A
search on a node that fails is repeated on another replica after a timeout; a query fails if a shard has no replica.

The service times are CPU times of this repository's own engine (see MEASURED). How they grow beyond what was measured
is an assumption: `power` goes on as between the two largest sizes, `log` adds the same for every ten times as many.
"""

import argparse
import heapq
import math
import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, pairwise
from typing import Literal

# From benchmarks/search_times.py: chunks, and the mean CPU milliseconds of a hybrid search without the embedding of the
# query; one passage per chunk.
MEASURED = ((1_000, 0.40), (10_000, 0.92), (100_000, 3.58))
SPREAD = 0.34  # standard deviation of those times, in means
EMBED_MS = 1.0  # CPU of embedding a query
EMBED_SPREAD = 0.57
MERGE_MS = 0.02  # for the hits of one shard: an assumption
NETWORK_MS = 0.5  # there and back, inside one data centre: an assumption
TIMEOUT_MS = 500.0  # until a search is repeated on another replica
DETECT_MS = 2_000.0  # until a node that failed is not asked any more
DAY = 24 * 60.0  # minutes

NOT_ENOUGH = "the others are not enough"

Growth = Literal["power", "log"]
Draw = Callable[[random.Random], float]


def search_ms(chunks: float, growth: Growth = "power") -> float:
    """Return the mean CPU time of a search in a shard with so many chunks."""
    (before, low), (last, high) = MEASURED[-2:]
    if chunks <= last:
        for (left, first), (right, second) in pairwise(MEASURED):
            if chunks <= right:
                share = math.log(max(chunks, left) / left) / math.log(right / left)
                return first * math.exp(math.log(second / first) * share)
    decades = math.log(chunks / last) / math.log(last / before)
    return high * math.exp(math.log(high / low) * decades) if growth == "power" else high + (high - low) * decades


def exponential(mean: float) -> Draw:
    """Return times that vary as in the textbook's queues."""
    return lambda chance: chance.expovariate(1 / mean)


def constant(value: float) -> Draw:
    """Return times that do not vary."""
    return lambda _: value


def lognormal(mean: float, spread: float) -> Draw:
    """Return times with a mean and a standard deviation of `spread` means, few of them much longer."""
    variance = math.log(1 + spread**2)
    return lambda chance: chance.lognormvariate(math.log(mean) - variance / 2, math.sqrt(variance))


@dataclass(frozen=True)
class Plan:
    """A cluster and its load; times are in milliseconds."""

    shards: int
    replicas: int
    cores: int  # of a node, which holds one replica of one shard
    queries_per_second: float
    search: Draw
    front: Draw = field(default_factory=lambda: constant(0.0))
    front_cores: int = 10**6  # so many that nothing waits there, unless told otherwise
    network_ms: float = 0.0
    failures: Sequence[tuple[float, int, int]] = ()  # when, which shard, which replica


@dataclass
class Node:
    """A replica of a shard, or the front end."""

    cores: int
    busy: int = 0
    unanswered: int = 0  # as its callers count, who do not know that it is down
    is_up: bool = True
    is_known_down: bool = False
    waiting: deque["Search"] = field(default_factory=deque)
    running: set["Search"] = field(default_factory=set)


@dataclass(eq=False)
class Search:
    """The part of a query that one node does."""

    query: "Query"
    shard: int | None  # None: the front end
    node: Node
    is_lost: bool = False


@dataclass(eq=False)
class Query:
    """One question."""

    arrived: float
    missing: int
    has_failed: bool = False


@dataclass(frozen=True)
class Outcome:
    """What users saw: the seconds of each answered query in order, and how many got no complete answer."""

    latencies: Sequence[float]
    failed: int

    def percentile(self, share: float) -> float:
        """Return the latency that a share of the answers did not exceed."""
        return self.latencies[min(int(len(self.latencies) * share), len(self.latencies) - 1)]

    @property
    def mean(self) -> float:
        return sum(self.latencies) / len(self.latencies)


class Simulation:
    """A cluster whose clock jumps from event to event."""

    def __init__(self, plan: Plan, seed: int) -> None:
        self._plan = plan
        self._chance = random.Random(seed)
        self._front = Node(plan.front_cores)
        self._shards = [[Node(plan.cores) for _ in range(plan.replicas)] for _ in range(plan.shards)]
        self._events: list[tuple[float, int, Callable[[float], None]]] = []
        self._order = count()
        self._latencies: list[float] = []
        self._failed = 0
        self._left = 0

    def run(self, queries: int, warm_up: float = 0.1) -> Outcome:
        """Answer so many queries; those of the warm-up are not counted."""
        for when, shard, replica in self._plan.failures:
            self._at(when, lambda now, node=self._shards[shard][replica]: self._fail(now, node))  # type: ignore[misc]
        self._left, skipped = queries, int(queries * warm_up)
        self._arrive(0.0)
        while self._events:
            now, _, act = heapq.heappop(self._events)
            act(now)
        return Outcome(sorted(self._latencies[skipped:]), self._failed)

    def _at(self, when: float, act: Callable[[float], None]) -> None:
        heapq.heappush(self._events, (when, next(self._order), act))

    def _arrive(self, now: float) -> None:
        self._left -= 1
        query = Query(now, self._plan.shards)
        self._begin(now, Search(query, None, self._front))
        if self._left:
            self._at(now + self._chance.expovariate(self._plan.queries_per_second / 1000), self._arrive)

    def _begin(self, now: float, search: Search) -> None:
        node = search.node
        node.unanswered += 1
        if not node.is_up:  # it does not answer
            search.is_lost = True
            self._at(now + TIMEOUT_MS, lambda later: self._repeat(later, search))
        elif node.busy < node.cores:
            self._work(now, search)
        else:
            node.waiting.append(search)

    def _work(self, now: float, search: Search) -> None:
        node, draw = search.node, self._plan.front if search.shard is None else self._plan.search
        node.busy += 1
        node.running.add(search)
        self._at(now + draw(self._chance), lambda later: self._finish(later, search))

    def _finish(self, now: float, search: Search) -> None:
        if search.is_lost:
            return
        node = search.node
        node.running.discard(search)
        node.busy -= 1
        node.unanswered -= 1
        if node.waiting:
            self._work(now, node.waiting.popleft())
        if search.shard is None:
            for shard in range(self._plan.shards):
                self._ask(now, search.query, shard)
            return
        search.query.missing -= 1
        self._end_if_complete(now, search.query)

    def _ask(self, now: float, query: Query, shard: int, but: Node | None = None) -> None:
        """Ask the replica that owes the fewest answers among those that are not known to be down."""
        known = [node for node in self._shards[shard] if not node.is_known_down and node is not but]
        if not known:
            query.has_failed = True
            query.missing -= 1
            self._end_if_complete(now, query)
            return
        least = min(node.unanswered for node in known)
        self._begin(
            now, Search(query, shard, self._chance.choice([node for node in known if node.unanswered == least]))
        )

    def _end_if_complete(self, now: float, query: Query) -> None:
        if query.missing == 0 and query.has_failed:
            self._failed += 1
        elif query.missing == 0:
            self._latencies.append(now - query.arrived + self._plan.network_ms)

    def _fail(self, now: float, node: Node) -> None:
        """Lose a node with everything it was doing; its callers wait for their timeouts."""
        node.is_up = False
        lost = [*node.running, *node.waiting]
        node.running.clear()
        node.waiting.clear()
        node.busy = 0
        for search in lost:
            search.is_lost = True
            self._at(now + TIMEOUT_MS, lambda later, search=search: self._repeat(later, search))  # type: ignore[misc]
        self._at(now + DETECT_MS, lambda _: self._notice(node))

    def _repeat(self, now: float, search: Search) -> None:
        assert search.shard is not None, "the front end does not fail here"
        search.node.unanswered -= 1
        self._ask(now, search.query, search.shard, but=search.node)

    @staticmethod
    def _notice(node: Node) -> None:
        node.is_known_down = True


def simulate(plan: Plan, queries: int, seed: int = 1) -> Outcome:
    """Run a plan."""
    return Simulation(plan, seed).run(queries)


def simulate_availability(
    shards: int, replicas: int, between_failures: float, repair: float, *, years: float, seed: int = 1
) -> float:
    """Return the share of the time in which every shard had a replica; times of nodes are in minutes."""
    chance, end = random.Random(seed), years * 365 * DAY
    up = [replicas] * shards
    nodes = [(chance.expovariate(1 / between_failures), number, False) for number in range(shards * replicas)]
    heapq.heapify(nodes)
    down_shards, since, lost = 0, 0.0, 0.0
    while nodes[0][0] < end:
        now, number, is_back = heapq.heappop(nodes)
        shard = number // replicas
        before = down_shards
        up[shard] += 1 if is_back else -1
        down_shards += (up[shard] == 0 and not is_back) - (up[shard] == 1 and is_back)
        if not before and down_shards:
            since = now
        elif before and not down_shards:
            lost += now - since
        mean = between_failures if is_back else repair
        heapq.heappush(nodes, (now + chance.expovariate(1 / mean), number, not is_back))
    return 1 - (lost + (end - since if down_shards else 0)) / end


def computed_availability(shards: int, replicas: int, between_failures: float, repair: float) -> float:
    """Return the same as a formula: nodes fail independently, and each is repaired by itself."""
    down = repair / (between_failures + repair)
    return float((1 - down**replicas) ** shards)


def erlang_c(servers: int, load: float) -> float:
    """Return the share of arrivals that wait in a queue M/M/c; `load` is in servers."""
    term, total = 1.0, 1.0
    for number in range(1, servers):
        term *= load / number
        total += term
    last = term * load / servers / (1 - load / servers)
    return last / (total + last)


def rows_of_latency(queries: int, seed: int, growth: Growth, cores: int = 8) -> Iterator[Sequence[object]]:
    """Yield a row for each cluster and load: what users see with all nodes, and how many wait when one fails."""
    yield (
        "chunks",
        "shards",
        "replicas",
        "load",
        "queries/s",
        "p50 ms",
        "p95",
        "p99",
        "delayed by a failure",
        "at most ms",
    )
    for shards, chunks in ((1, 10**6), (1, 10**7), (8, 10**8), (64, 10**9)):
        for replicas in (1, 2, 3):
            for load in (0.3, 0.45, 0.6, 0.8):
                mean = search_ms(chunks / shards, growth)
                rate = load * replicas * cores / mean * 1000
                number = max(queries // max(shards // 4, 1), 2_000)
                middle = number / rate * 500
                outcomes = [
                    simulate(
                        Plan(
                            shards,
                            replicas,
                            cores,
                            rate,
                            lognormal(mean, SPREAD),
                            lognormal(EMBED_MS + MERGE_MS * shards, EMBED_SPREAD),
                            network_ms=2 * NETWORK_MS,
                            failures=failures,
                        ),
                        number,
                        seed,
                    )
                    for failures in ((), ((middle, 0, 0),))
                ]
                whole, hurt = outcomes
                times = [whole.percentile(share) for share in (0.5, 0.95, 0.99)]
                late: Sequence[object] = (NOT_ENOUGH, "")
                if load * replicas < replicas - 1:
                    late = (sum(item > TIMEOUT_MS for item in hurt.latencies), f"{hurt.latencies[-1]:.0f}")
                shown = (f"{chunks:,}", shards, replicas, f"{load:.0%}", f"{rate:.0f}")
                yield (*shown, *(f"{item:.0f}" for item in times), *late)


def rows_of_availability(years: float, seed: int) -> Iterator[Sequence[object]]:
    """Yield a row for each cluster: how much of the time every shard has a replica."""
    yield ("shards", "replicas", "repair", "simulated", "computed", "minutes a year without a complete answer")
    for repair in (10.0, 240.0):
        for shards in (1, 8, 64):
            for replicas in (1, 2, 3):
                known = computed_availability(shards, replicas, 30 * DAY, repair)
                found = simulate_availability(shards, replicas, 30 * DAY, repair, years=years, seed=seed)
                name = "10 minutes" if repair < DAY / 24 else "4 hours"
                yield (shards, replicas, name, f"{found:.5%}", f"{known:.5%}", f"{(1 - known) * 365 * DAY:,.1f}")


def rows_of_search(cores: int = 8) -> Iterator[Sequence[object]]:
    """Yield a row for each size of a shard: the time of a search, and how many a node does."""
    yield ("chunks in a shard", "search ms, power", "search ms, log", f"searches/s of {cores} cores, power", "log")
    for chunks in (10_000, 100_000, 10**6, 10**7, 15_625_000):
        slow, fast = search_ms(chunks), search_ms(chunks, "log")
        rates = (f"{cores / item * 1000:,.0f}" for item in (slow, fast))
        yield (f"{chunks:,}", f"{slow:.1f}", f"{fast:.1f}", *rates)


def show(title: str, rows: Iterator[Sequence[object]]) -> None:
    """Print a table."""
    print(f"\n## {title}\n")
    for number, row in enumerate(rows):
        print(f"| {' | '.join(map(str, row))} |", flush=True)
        if not number:
            print(f"|{'---|' * len(row)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=20_000, help="of each simulation with up to 4 shards")
    parser.add_argument("--years", type=float, default=200, help="of each simulation of failures")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--growth", choices=("power", "log"), default="power", help="of search times beyond 100,000")
    options = parser.parse_args()
    show("Searches", rows_of_search())
    show(
        f"Latency, 8 cores a node, growth: {options.growth}",
        rows_of_latency(options.queries, options.seed, options.growth),
    )
    show("Availability, a failure of each node every 30 days", rows_of_availability(options.years, options.seed))


if __name__ == "__main__":
    main()
