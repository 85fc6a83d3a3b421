"""The segments of the vector index: whatever happens to store, process and files, a search finds what the store has."""

import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import bedstone.search.indexes.segments.state as state_module
from bedstone.records import Chunk, Document, Passage
from bedstone.search.filters import AllOf, AnyOf, Filter, Missing, OneOf, matches
from bedstone.search.indexes.segments.arrays import TRAILER, ArraysDamaged, ArrayWriter, map_arrays
from bedstone.search.indexes.segments.facets import FacetList, join_tables
from bedstone.search.indexes.segments.graphs import new_index
from bedstone.search.indexes.segments.manifest import MANIFEST, read_manifest
from bedstone.search.indexes.segments.nearest import find_nearest, largest
from bedstone.search.indexes.segments.segment import Graph, Part, Segment, Snapshot
from bedstone.search.indexes.vector import VectorIndex
from bedstone.store.engine import Store
from bedstone.store.engines.sqlite import SqliteStore

DIMENSIONS = 8
LIMIT = 40
PARTS = ("red", "green", "blue")
FILTERS: tuple[Filter | None, ...] = (
    None,
    OneOf("colour", ("red", "blue")),
    Missing("colour"),
    AnyOf((OneOf("owner", ("d1", "d4", "nobody")), OneOf("colour", ("green",)))),
)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits that a few hundred passages reach."""
    for name, value in {"MAX_TAIL": 12, "MERGED_AT_ONCE": 3, "MAX_SCANNED": 150, "MAX_LOOSE": 40}.items():
        monkeypatch.setattr(state_module, name, value)
    monkeypatch.setattr("bedstone.search.indexes.vector.MAX_TAIL", 12)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "store.sqlite")
    yield store
    store.close()


def opened(store: Store, folder: Path | None, *, read_only: bool = False) -> VectorIndex:
    index = VectorIndex(store, DIMENSIONS, 1.0, folder, read_only=read_only)
    index.catch_up()
    return index


class World:
    """A store that changes at random."""

    def __init__(self, store: Store, seed: int) -> None:
        self.store, self.random = store, random.Random(seed)

    def vector(self) -> np.ndarray:
        values = np.array([self.random.gauss(0, 1) for _ in range(DIMENSIONS)], np.float32)
        return values / np.linalg.norm(values)

    def put(self, number: int, chunks: int, *, is_embedded: bool = True) -> None:
        name = f"d{number}"
        colour = {"colour": PARTS[number % 3]} if number % 4 else {}
        parts = [
            Chunk(id=f"{name}#{at}", text="x", plain="x" * 9, facets={"owner": name, **colour}) for at in range(chunks)
        ]
        self.store.put([(Document(name, "", ""), parts)])
        if is_embedded:
            self.embed()

    def embed(self) -> None:
        waiting = self.store.chunks_without_vectors(limit=self.random.randint(20, 200))
        passages = [
            (Passage(item.head.rowid, at, at + 3), self.vector().astype(np.float16).tobytes())
            for item in waiting
            for at in range(self.random.choice((1, 1, 2, 3)))
        ]
        self.store.put_passages(passages)

    def change(self) -> None:
        match self.random.choice(("put", "put", "put", "many", "wait", "embed", "delete", "forget")):
            case "put":
                self.put(self.random.randrange(60), self.random.randint(0, 4))
            case "many":
                for number in range(self.random.randrange(40), 60):
                    self.put(number, 2, is_embedded=False)
                self.embed()
            case "wait":
                self.put(self.random.randrange(60), 2, is_embedded=False)
            case "embed":
                self.embed()
            case "delete":
                first = self.random.randrange(60)
                self.store.delete([f"d{number}" for number in range(first, first + self.random.choice((1, 3, 20)))])
            case "forget":
                if self.random.random() < 0.2:
                    self.store.delete_passages()
                    self.embed()


def expected(store: Store, query: np.ndarray, condition: Filter | None) -> dict[int, tuple[float, tuple[int, int]]]:
    """Return the best cosine of every chunk, and where it is, from the store alone."""
    items = [item for item in store.passages_between(0, 2**62) if condition is None or matches(condition, item.facets)]
    vectors = store.vectors([item.id for item in items])
    best: dict[int, tuple[float, tuple[int, int]]] = {}
    for item in items:
        cosine = float(np.frombuffer(vectors[item.id], np.float16).astype(np.float32) @ query)
        if cosine > best.get(item.passage.chunk_rowid, (-2.0, (0, 0)))[0]:
            best[item.passage.chunk_rowid] = cosine, (item.passage.start, item.passage.end)
    return best


def check(index: VectorIndex, store: Store, seed: int = 0) -> None:
    """Compare searches with the store: which chunks, how near, and where."""
    assert len(index) == store.counts().passages
    world = World(store, seed)
    for condition in FILTERS:
        query = world.vector()
        best = expected(store, query, condition)
        near = index.search(query, LIMIT, condition)
        assert min(LIMIT // 2, len(best)) <= len(near.cosines) <= LIMIT  # passages are fetched, several of a chunk
        first = sorted(best, key=lambda rowid: -best[rowid][0])[:5]
        for rowid in first:
            assert near.cosines[rowid] == pytest.approx(best[rowid][0], abs=0.004)
        for rowid, cosine in near.cosines.items():
            assert cosine == pytest.approx(best[rowid][0], abs=0.004)
        if first:
            assert near.span(first[0]) == best[first[0]][1]
        others = sorted(best)[::7]
        also = index.search(query, 3, condition, others).cosines
        assert set(others) <= set(also)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("seed", range(6))
def test_any_history_is_searched_like_the_store(store: SqliteStore, tmp_path: Path, seed: int) -> None:
    world, folder = World(store, seed), tmp_path / "vectors"
    index, follower, memory = opened(store, folder), opened(store, folder, read_only=True), opened(store, None)
    for step in range(60):
        world.change()
        match world.random.choice(("follow", "follow", "follow", "finish", "reopen", "kill", "wait")):
            case "wait":
                continue
            case "finish":
                index.catch_up()
                index.finish()
            case "reopen":
                index.save()
                index = opened(store, folder)
            case "kill":  # whatever was not saved is lost
                index._is_stopping = True  # noqa: SLF001 - its thread ends, like that of a process
                if worker := index._worker:  # noqa: SLF001
                    worker.join()
                index = opened(store, folder)
        for each in (index, follower, memory):
            each.catch_up()
            check(each, store, step)
    for each in (index, memory):
        each.catch_up()
        each.finish()
        check(each, store)
    assert index.save() in (True, False)
    assert not index.save()
    check(opened(store, folder), store)


@pytest.mark.usefixtures("small")
def test_a_change_reads_what_changed_and_a_start_nothing(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(store, 1)
    for number in range(200):
        world.put(number, 1, is_embedded=False)
    world.random = random.Random(4)
    while store.chunks_without_vectors():
        world.embed()
    index = opened(store, tmp_path / "vectors")
    index.finish()
    index.save()
    read: list[int] = []
    read_vectors = store.vectors

    def count(ids: list[int]) -> dict[int, bytes]:
        read.extend(ids)
        return read_vectors(ids)

    monkeypatch.setattr(store, "vectors", count)
    again, reader = opened(store, tmp_path / "vectors"), opened(store, tmp_path / "vectors", read_only=True)
    assert read == []
    for number in range(5):
        world.put(1000 + number, 1)
        for each in (again, reader):
            each.catch_up()
    store.delete(["d3", "d1001"])
    again.catch_up()
    monkeypatch.undo()
    assert len(set(read)) <= 15
    assert len(read) == 2 * len(set(read))
    check(again, store)


def test_what_a_graph_misses_is_not_replaced_by_what_is_deleted() -> None:
    chance, facets = np.random.default_rng(1), FacetList()
    facets.number({})

    def segment(first: int) -> Segment:
        halves = chance.normal(size=(50, DIMENSIONS)).astype(np.float16)
        ids = np.arange(first, first + 50)
        none = np.zeros(50, np.int32)
        return Segment(ids, ids, np.zeros((50, 2), np.int32), none, halves.astype(np.int8), halves, facets, None, 50)

    large, small = segment(1), segment(51)
    graph = new_index(DIMENSIONS)
    graph.add(large.ids[:5], large.codes[:5])  # as if it found no others
    deleted = np.arange(50) < 45
    snapshot = Snapshot([Part(replace(large, graph=Graph(graph))), Part(small, deleted, 45)])
    query = large.halves[0].astype(np.float32)
    near = find_nearest(snapshot, query, large.codes[0], 20, filter=None, also=())
    assert near.cosines.keys() == {1, 2, 3, 4, 5, 96, 97, 98, 99, 100}


@pytest.mark.usefixtures("small")
def test_segments_are_merged_and_a_graph_is_extended(store: SqliteStore, tmp_path: Path) -> None:
    world, folder = World(store, 2), tmp_path / "vectors"
    index = opened(store, folder)
    for number in range(60):
        world.put(number, 1)
        index.catch_up()
        if number % 10 == 9:
            index.finish()
    assert list(folder.glob("*.segment"))
    assert not list(folder.glob("*.graph"))
    for number in range(60, 300):
        world.put(number, 1)
        index.catch_up()
        if number % 10 == 9:
            index.finish()
    (graph,) = folder.glob("*.graph")
    assert len(list(folder.glob("*.segment"))) <= 5
    check(index, store)
    store.delete([f"d{number}" for number in range(250)])
    index.catch_up()
    index.finish()
    check(index, store)
    assert not graph.exists()
    assert not list(folder.glob("*.graph"))


def damage_files(store: SqliteStore, folder: Path) -> None:
    """Write files of every kind."""
    world = World(store, 3)
    for number in range(120):
        world.put(number, 2)
    index = opened(store, folder)
    index.finish()
    for number in range(200, 215):
        world.put(number, 1)
    store.delete(["d7", "d8", "d9"])
    index.catch_up()
    index.save()
    for kind in ("segment", "graph", "deleted"):
        assert list(folder.glob(f"*.{kind}")), kind


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def garble(path: Path) -> None:
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 64] = bytes(byte ^ 0x5A for byte in content[middle : middle + 64])
    path.write_bytes(content)


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("how", [truncate, garble, empty, Path.unlink])
@pytest.mark.parametrize("kind", ["*.segment", "*.graph", "*.deleted", MANIFEST])
def test_damaged_files_are_replaced(
    store: SqliteStore, tmp_path: Path, kind: str, how: Callable[[Path], object], caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "vectors"
    damage_files(store, folder)
    for path in folder.glob(kind):
        how(path)
    reader = opened(store, folder, read_only=True)
    reader.verify()
    check(reader, store)
    index = opened(store, folder)
    if how is garble:
        index.verify()
    index.finish()
    check(index, store)
    assert index.problem is None
    if (kind, how) != (MANIFEST, Path.unlink):
        assert list(tmp_path.glob("vectors.damaged-*"))
        assert "Rebuilding the vector index" in caplog.text
    index.save()
    again = opened(store, folder)
    assert not again.verify()
    check(again, store)


def garble_vectors(path: Path) -> None:
    """Change what is not read before a search or a merge: the last array of a segment, and any part of a graph."""
    content = bytearray(path.read_bytes())
    footer = TRAILER.unpack(content[-TRAILER.size :])[0] if path.suffix == ".segment" else 0
    end = len(content) - TRAILER.size - footer - 64
    content[end - 48 : end] = bytes(byte ^ 0x5A for byte in content[end - 48 : end])
    path.write_bytes(content)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("kind", ["*.segment", "*.graph"])
def test_damage_is_found_before_a_merge_would_hide_it(
    store: SqliteStore, tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "vectors"
    damage_files(store, folder)
    for path in folder.glob(kind):
        garble_vectors(path)
    world = World(store, 4)
    for number in range(300, 400):
        world.put(number, 1)
    index = opened(store, folder)
    index.finish()
    assert "Rebuilding the vector index" in caplog.text
    assert not index.verify()
    check(index, store)


@pytest.mark.usefixtures("small")
def test_the_problem_is_told_until_a_damaged_graph_is_made_again(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "vectors"
    damage_files(store, folder)
    for path in folder.glob("*.graph"):
        truncate(path)
    monkeypatch.setattr(VectorIndex, "_maintain_soon", lambda _: False)
    index = opened(store, folder)
    assert index.problem == "The vector index was damaged and is being rebuilt"
    check(index, store)
    monkeypatch.undo()
    index.finish()
    assert index.problem is None
    check(index, store)


def test_a_manifest_names_no_file_outside_its_folder(store: SqliteStore, tmp_path: Path) -> None:
    world, folder = World(store, 5), tmp_path / "vectors"
    world.put(1, 1)
    opened(store, folder).save()
    content = json.loads((folder / MANIFEST).read_text())
    (entry,) = content["entries"]
    outside = tmp_path / entry["segment"]
    (folder / entry["segment"]).rename(outside)
    for name in (f"../{outside.name}", str(outside)):
        forged = {**content, "entries": [{**entry, "segment": name}]}
        (folder / MANIFEST).write_text(json.dumps(forged))
        with pytest.raises(ArraysDamaged, match="names other files"):
            read_manifest(folder)
    check(opened(store, folder), store)


def test_files_of_an_earlier_version_are_dropped(store: SqliteStore, tmp_path: Path) -> None:
    world, folder = World(store, 5), tmp_path / "vectors"
    for number in range(10):
        world.put(number, 1)
    former = tmp_path / "vectors.usearch"
    former.write_bytes(b"usearch, but not really")
    check(opened(store, folder, read_only=True), store)
    assert former.exists()
    index = opened(store, folder)
    assert not former.exists()
    index.save()
    content = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps({**content, "format": 99}))
    check(opened(store, folder, read_only=True), store)
    index = opened(store, folder)
    check(index, store)
    assert index.save()
    assert json.loads((folder / MANIFEST).read_text())["format"] == 1
    assert not list(tmp_path.glob("*.damaged-*"))


def test_segments_of_another_store_or_model_are_not_used(store: SqliteStore, tmp_path: Path) -> None:
    world, folder = World(store, 6), tmp_path / "vectors"
    for number in range(10):
        world.put(number, 1)
    opened(store, folder).save()
    other = SqliteStore(tmp_path / "other.sqlite")
    elsewhere = World(other, 7)
    for number in range(20):
        elsewhere.put(number, 1)
    for read_only in (True, False):
        check(opened(other, folder, read_only=read_only), other)
    other.close()
    wider = VectorIndex(store, DIMENSIONS, 0.5, folder)  # another scale
    wider.catch_up()
    check(wider, store)


WRITER = """
import os, sys
from pathlib import Path
import bedstone.search.indexes.segments.state as state, bedstone.search.indexes.vector as vector
from bedstone.store.engines.sqlite import SqliteStore
from search.test_segments import DIMENSIONS, World
state.MAX_TAIL = vector.MAX_TAIL = 12; state.MERGED_AT_ONCE = 3; state.MAX_SCANNED = 60; state.MAX_LOOSE = 10
root, last, end, steps = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), 0
def reach(kind, call):
    def perform(*args, **options):
        global steps
        steps += kind == last
        if steps == end:
            os._exit(9)
        return call(*args, **options)
    return perform
store = SqliteStore(root / "store.sqlite")
world = World(store, end)
index = vector.VectorIndex(store, DIMENSIONS, 1.0, root / "vectors")
index.catch_up()
os.fsync = reach("sync", os.fsync)
Path.replace = reach("replace", Path.replace)
Path.unlink = reach("unlink", Path.unlink)
for number in range(5):
    for _ in range(4):
        world.put(world.random.randrange(90), 4)
    store.delete([f"d{world.random.randrange(90)}"])
    index.catch_up()
    index.finish()
index.save()
"""


def run_writer(root: Path, last: str, end: int) -> bool:
    """Run a process that writes segments, and ends itself at a step of a kind; return whether it got there."""
    tests = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", WRITER, str(root), last, str(end)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"PYTHONPATH": str(tests), "PATH": ""},
    )
    assert done.returncode in (0, 9), done.stderr
    return done.returncode == 9


def test_a_process_that_is_killed_at_any_step_loses_nothing(
    store: SqliteStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Before and after each file is synchronized, replaced, deleted; a reader follows meanwhile."""
    reader = opened(store, tmp_path / "vectors", read_only=True)
    folder = tmp_path / "vectors"
    for last, end in product(("sync", "replace", "unlink"), (1, 2, 3, 5, 8)):
        assert run_writer(tmp_path, last, end) or end > 5, (last, end)
        reader.catch_up()
        check(reader, store)
        check(opened(store, folder, read_only=True), store)
        assert "Rebuilding" not in caplog.text
    assert not run_writer(tmp_path, "none", 1)
    index = opened(store, folder)
    check(index, store)
    assert not index.verify()
    index.finish()
    index.save()
    known = {MANIFEST}
    for entry in json.loads((folder / MANIFEST).read_text())["entries"]:
        known |= {entry["segment"], entry["deleted"], entry["graph"]} - {None}
    assert {path.name for path in folder.iterdir()} == known


def test_a_full_disk_delays_segments_but_no_change(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: None
) -> None:
    world, folder = World(store, 8), tmp_path / "vectors"
    index = opened(store, folder)

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    for number in range(40):
        world.put(number, 2)
        index.catch_up()
        index.finish()
    check(index, store)
    assert not list(folder.glob("*.segment"))
    monkeypatch.undo()
    index._retry_at = 0.0  # noqa: SLF001 - half a minute later
    index.finish()
    assert index.save()
    check(opened(store, folder), store)


@pytest.mark.parametrize("seed", range(20))
def test_joined_facets_are_those_that_were_joined(seed: int) -> None:
    chance = random.Random(seed)
    lists = [FacetList() for _ in range(chance.randint(1, 4))]
    for each in lists:
        for _ in range(chance.randint(0, 12)):
            keys = chance.sample(["a", "b", "ü", "owner"], chance.randint(0, 4))
            each.number({key: chance.choice(["x", "y", "", "鴨", "\ud800"]) for key in keys})
    joined, renumbered = join_tables([each.freeze() for each in lists])
    conditions = (
        OneOf("a", ("x", "鴨")),
        OneOf("b", ()),
        OneOf("none", ("x",)),
        Missing("ü"),
        Missing("none"),
        AllOf((OneOf("a", ("y", "\ud800")), Missing("owner"))),
        AnyOf((OneOf("owner", ("",)), Missing("b"))),
        AnyOf(()),
        AllOf(()),
    )
    for condition in conditions:
        passes = joined.passing(condition)
        for each, numbers in zip(lists, renumbered, strict=True):
            assert passes[numbers].tolist() == each.passing(condition).tolist()
    sets = {tuple(joined.numbers[:, column].tolist()) for column in range(joined.numbers.shape[1])}
    assert len(sets) == joined.numbers.shape[1]


@pytest.mark.parametrize("size", [1, 50, 30_000, 200_000])
@pytest.mark.parametrize("kind", ["spread", "equal", "few"])
def test_the_largest_are_found(size: int, kind: str) -> None:
    chance = np.random.default_rng(size)
    values = chance.normal(size=size)
    if kind == "equal":
        values[:] = 1.0
    if kind == "few":
        values[chance.random(size) < 0.99] = -np.inf
    for count in (1, 10, 150, 5_000):
        best = largest(values, count)
        assert len(set(best.tolist())) == len(best) == min(count, size)
        assert np.sort(values[best]).tolist() == np.sort(values)[-min(count, size) :].tolist()


def test_arrays_are_mapped_not_copied(tmp_path: Path) -> None:
    path = tmp_path / "arrays"
    with ArrayWriter(path, {"a": ("<i8", (4,)), "none": ("<i4", (0, 3))}, {"key": "value"}) as writer:
        writer.write("a", np.arange(3))
        writer.write("a", np.arange(1))
        writer.finish()
    arrays, about = map_arrays(path, ["a", "none"])
    assert arrays["a"].tolist() == [0, 1, 2, 0]
    assert arrays["none"].shape == (0, 3)
    assert about == {"key": "value"}
    assert not arrays["a"].flags.owndata
    assert not arrays["a"].flags.writeable
