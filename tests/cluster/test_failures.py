"""Nodes and writers that are killed: nothing is lost, answers go on while they can, and errors say what is wrong."""

import hashlib
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bedstone.errors import Unavailable
from bedstone.records import Change, Chunk, Document
from bedstone.search.embedders.hashing import HashingEmbedder
from bedstone.search.hits import SearchRequest
from bedstone.search.index import Access, IndexDamaged, IndexQuery, IndexUnwritable, SearchIndex
from bedstone.search.indexer import embed_missing
from bedstone.search.indexes.opensearch.index import Factory, OpenSearchIndex
from bedstone.search.live_index import LiveIndex
from bedstone.settings.sections import OpenSearchSettings
from bedstone.store.engine import Store
from bedstone.store.engines.memory import MemoryStore
from bedstone.store.engines.postgres import PostgresStore
from bedstone.store.engines.sqlite import SqliteStore
from support.opensearch import SearchCluster
from support.postgres import PostgresServer

EMBEDDER = HashingEmbedder()
RECOVERY_SECONDS = 90
ROUNDS = 24
WRITER = """
import sys
from pathlib import Path
from bedstone.search.embedders.hashing import HashingEmbedder
from bedstone.search.indexer import embed_missing
from bedstone.search.indexes.opensearch.index import OpenSearchIndex
from bedstone.settings.sections import OpenSearchSettings
from bedstone.records import Chunk, Document
from bedstone.store.engines.sqlite import SqliteStore
file, hosts, prefix, name = sys.argv[1:]
store, embedder = SqliteStore(Path(file)), HashingEmbedder()
settings = OpenSearchSettings(hosts=hosts.split(","), prefix=prefix)
index = OpenSearchIndex.open(store, None, embedder, settings=settings)
for number in range(100_000):
    items = [(Document(f"{name}-{number}-{part}", "", ""), [
        Chunk(f"{name}-{number}-{part}-{place}", "x", f"word{number} of {name} at {place}",
              facets={"document": f"{name}-{number}-{part}"})
        for place in range(5)]) for part in range(4)]
    store.put(items)
    if number % 3 == 2:
        store.delete([f"{name}-{number - 1}-0", f"{name}-{number - 2}-1"])
    embed_missing(store, embedder)
    index.catch_up()
    print(number, flush=True)
"""


def settings_of(cluster: SearchCluster, name: str, **others: object) -> OpenSearchSettings:
    return OpenSearchSettings.model_validate({"hosts": cluster.addresses, "prefix": name, "shards": 2, **others})


@contextmanager
def opened(
    store: Store, cluster: SearchCluster, name: str, access: Access = "write", **others: object
) -> Iterator[OpenSearchIndex]:
    index = OpenSearchIndex.open(store, None, EMBEDDER, access, settings_of(cluster, name, **others))
    try:
        yield index
    finally:
        index.close()


def put(store: Store, *names: str) -> None:
    store.put(
        (Document(name, "", ""), [Chunk(f"{name}-{part}", "x", f"All about {name} {part}.", facets={"document": name})])
        for name in names
        for part in [0]
    )
    embed_missing(store, EMBEDDER)


def digest_of_store(store: Store) -> str:
    return digest({name: {str(count)} for name, count in store.chunk_counts().items()})


def digest_of_index(index: SearchIndex) -> str:
    counts = index.count_facets(None, None).get("document", {})
    return digest({name: {str(count)} for name, count in counts.items()})


def digest(counts: dict[str, set[str]]) -> str:
    return hashlib.sha256(repr(sorted((name, sorted(values)) for name, values in counts.items())).encode()).hexdigest()


def until(condition: Callable[[], bool], seconds: float = RECOVERY_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.2)


def catches_up(index: SearchIndex) -> bool:
    try:
        index.catch_up()
    except IndexUnwritable:
        return False
    return True


def test_nothing_is_lost_when_a_node_is_killed(cluster: SearchCluster) -> None:
    """Each node in turn, while documents are added and deleted and others search; a reader compares at the end."""
    store, chance = MemoryStore(), random.Random(11)
    with opened(store, cluster, "killed") as writer, opened(store, cluster, "killed", "read") as reader:
        put(store, "first")
        writer.catch_up()
        reader.catch_up()
        problems: list[str] = []
        answers, done = [0], threading.Event()

        def search() -> None:
            while not done.is_set():
                try:
                    reader.catch_up()
                    found = reader.search(IndexQuery("first", EMBEDDER.embed_query("All about first 0.")))
                    if not found.candidates:
                        problems.append("the first document was not found")
                except IndexUnwritable:  # its record cannot be read at this moment: it answers from what it knows
                    pass
                except Unavailable as error:
                    problems.append(error.message)
                answers[0] += 1

        searching = threading.Thread(target=search)
        searching.start()
        try:
            for number in range(ROUNDS):
                put(store, *(f"n{number}-{part}" for part in range(10)))
                if number > 2:
                    store.delete([f"n{number - 2}-{chance.randrange(10)}"])
                if number % 8 == 3:
                    cluster.kill(number // 8)
                until(lambda: catches_up(writer))
                if number % 8 == 7:
                    cluster.start(number // 8)
                    cluster.wait()
        finally:
            done.set()
            searching.join()
        assert problems == []
        assert answers[0] > ROUNDS
        reader.catch_up()
        last = store.last_change()
        assert last
        assert writer.applied_seq == reader.applied_seq == last.seq
        for index in (writer, reader):
            index.verify()
            assert digest_of_index(index) == digest_of_store(store)


def test_a_killed_writer_is_followed_by_another(cluster: SearchCluster, tmp_path: Path) -> None:
    """At random moments: what was written twice or not recorded makes no difference."""
    file, chance = tmp_path / "store.sqlite", random.Random(5)
    store = SqliteStore(file)
    for turn in range(4):
        command = [sys.executable, "-c", WRITER, str(file), ",".join(cluster.addresses), "writers", f"w{turn}"]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            try:
                assert process.stdout
                for _ in range(chance.randint(1, 4)):
                    assert process.stdout.readline()
                time.sleep(chance.random() * 0.3)
            finally:
                process.kill()
    embed_missing(store, EMBEDDER)
    with opened(store, cluster, "writers") as index:
        index.catch_up()
        index.verify()
        assert index.chunk_count == store.counts().chunks > 20
        assert digest_of_index(index) == digest_of_store(store)
    store.close()


def test_a_second_writer_is_stopped(cluster: SearchCluster) -> None:
    store = MemoryStore()
    with opened(store, cluster, "two") as first, opened(store, cluster, "two") as second:
        put(store, "one")
        first.catch_up()
        second.catch_up()
        put(store, "two")
        first.catch_up()
        put(store, "three")
        with pytest.raises(IndexUnwritable, match="Another process"):
            second.catch_up()
        second.catch_up()  # it has read what the other one wrote
        assert digest_of_index(second) == digest_of_store(store)


class Stalled:
    """A store whose reader is stopped, like a process, after it has read what it is about to write."""

    def __init__(self, store: Store, method: str) -> None:
        self._store, self._method = store, method
        self.has_read, self.goes_on = threading.Event(), threading.Event()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        return self._stalling(found) if name == self._method else found

    def _stalling(self, read: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
        def stall(*arguments: Any) -> Iterator[Any]:
            found = list(read(*arguments))
            self.has_read.set()
            self.goes_on.wait(RECOVERY_SECONDS)
            return iter(found)

        return stall


@pytest.mark.parametrize("method", ["chunks_between", "passages_between"])
def test_what_a_former_writer_writes_late_does_not_stay(cluster: SearchCluster, method: str) -> None:
    store = MemoryStore()
    name = method.replace("_", "-")
    put(store, "one")
    with opened(store, cluster, name) as writer:
        writer.catch_up()
        stalled = Stalled(store, method)
        put(store, "gone")
        with opened(stalled, cluster, name) as former:
            late = threading.Thread(target=catches_up, args=[former])
            late.start()
            assert stalled.has_read.wait(RECOVERY_SECONDS)
            until(lambda: catches_up(writer))
            store.delete(["gone"])
            until(lambda: catches_up(writer))
            stalled.goes_on.set()
            late.join()
        writer.verify()
        assert digest_of_index(writer) == digest_of_store(store)


def test_changes_that_are_pruned_while_others_are_applied_are_not_missed(
    cluster: SearchCluster, postgres: PostgresServer
) -> None:
    class Pruned(PostgresStore):
        prunes = False

        def changes(self, after: int, limit: int = 1000) -> list[Change]:
            found = super().changes(after, limit)
            if self.prunes and limit > 1:
                self.prunes = False
                self.prune_changes(5)
            return found

    store = Pruned.open(postgres.address())
    put(store, *(f"a{number}" for number in range(40)))
    with opened(store, cluster, "pruned") as index:
        index.catch_up()
        for number in range(40):
            put(store, f"b{number}")
        store.delete([f"a{number}" for number in range(30)])
        for number in range(10):
            put(store, f"c{number}")
        store.prunes = True
        index.catch_up(in_batches=True)
        index.verify()
        assert digest_of_index(index) == digest_of_store(store)
    store.close()


def test_a_cluster_that_is_away_is_said_in_time(cluster: SearchCluster) -> None:
    store = MemoryStore()
    put(store, "kept")
    with opened(store, cluster, "away", user="someone", password="hidden-word", timeout_seconds=3) as index:
        index.catch_up()
        for number in range(len(cluster.nodes)):
            cluster.kill(number)
        started = time.monotonic()
        with pytest.raises(Unavailable, match="search cluster") as searched:
            index.search(IndexQuery("kept"))
        put(store, "later")
        with pytest.raises(IndexUnwritable, match="search cluster") as written:
            index.catch_up()
        assert time.monotonic() - started < 30
        assert "hidden-word" not in f"{searched.value!r} {written.value!r}"
        for number in range(len(cluster.nodes)):
            cluster.start(number)
        cluster.wait()
        until(lambda: catches_up(index))
        assert digest_of_index(index) == digest_of_store(store)


def test_two_of_three_nodes_are_enough_and_one_is_not(cluster: SearchCluster) -> None:
    """Without a majority nothing is written; what is found is never a part of the answer taken for all of it."""
    store = MemoryStore()
    put(store, *(f"d{number}" for number in range(40)))
    with opened(store, cluster, "majority", timeout_seconds=3) as index:
        index.catch_up()
        whole = digest_of_index(index)
        cluster.kill(2)
        assert digest_of_index(index) == whole
        put(store, "during")
        until(lambda: catches_up(index))
        assert [item.rowid for item in index.search(IndexQuery("during")).candidates]
        cluster.kill(1)
        put(store, "alone")
        with pytest.raises(IndexUnwritable):
            index.catch_up()
        for number in (1, 2):
            cluster.start(number)
        cluster.wait()
        until(lambda: catches_up(index))
        assert digest_of_index(index) == digest_of_store(store)


def test_a_lost_index_is_built_again(cluster: SearchCluster, tmp_path: Path) -> None:
    """Searches go on through the live index, which says what happens meanwhile."""
    store = MemoryStore()
    put(store, *(f"d{number}" for number in range(20)))
    factory = Factory(settings_of(cluster, "lost"))
    live = LiveIndex(store, tmp_path, lambda: EMBEDDER, kind=factory)
    live.become_writer()
    assert [hit.head.document_id for hit in live.search(SearchRequest("d7")).hits][:1] == ["d7"]
    index = live.current().index
    assert isinstance(index, OpenSearchIndex)
    name = index._chunks.progress  # noqa: SLF001 - what an administrator deletes
    assert name
    index._connection.delete_index(name.index)  # noqa: SLF001
    with pytest.raises(IndexDamaged, match="lost"):
        index.search(IndexQuery("d7"))
    until(lambda: bool(live.search(SearchRequest("d7")).hits))
    live.finish()
    assert digest_of_index(live.current().index) == digest_of_store(store)
    live.close()


def test_a_damaged_count_is_found_and_repaired(cluster: SearchCluster) -> None:
    store = MemoryStore()
    put(store, "one", "two", "three")
    with opened(store, cluster, "damaged") as index:
        index.catch_up()
        progress = index._chunks.progress  # noqa: SLF001
        assert progress
        index._connection.delete_matching(progress.index, {"term": {"rowid": 2}})  # noqa: SLF001
        index._connection.refresh(progress.index)  # noqa: SLF001
    with opened(store, cluster, "damaged") as index, pytest.raises(IndexDamaged, match="2 of 3 chunks"):
        index.verify()
    with opened(store, cluster, "damaged") as index:
        index.catch_up(in_batches=True)
        index.verify()
        assert digest_of_index(index) == digest_of_store(store)


def test_vectors_of_another_model_replace_the_old_ones(cluster: SearchCluster) -> None:
    store = MemoryStore()
    put(store, "one", "two")
    with opened(store, cluster, "models") as index:
        index.catch_up()
        store.delete_passages()
        index.catch_up()
        assert not index.has_vectors
        embed_missing(store, EMBEDDER)
        index.catch_up()
        assert index.has_vectors
        index.verify()


def test_a_reader_before_the_first_writer_says_so(cluster: SearchCluster) -> None:
    store = MemoryStore()
    with opened(store, cluster, "early", "read") as reader, opened(store, cluster, "early") as writer:
        put(store, "one")
        reader.catch_up()
        assert reader.search(IndexQuery("one")).candidates == []
        assert "no index" in (reader.problem() or "")
        writer.catch_up()
        reader.catch_up()
        assert reader.problem() is None
        assert reader.search(IndexQuery("one")).candidates
        other = MemoryStore()  # the store was replaced: its history is another one
        other.set_value("search_cluster_id", store.get_value("search_cluster_id") or "")
        put(other, "another", "history")
        with opened(other, cluster, "early") as successor:
            successor.catch_up()
            assert digest_of_index(successor) == digest_of_store(other)
        put(store, "two")
        with pytest.raises((IndexDamaged, IndexUnwritable)):
            writer.catch_up()
