"""What the index in a search cluster does without one; `make test-cluster` runs it on a real one."""

import socket
import sys
import time
from pathlib import Path

import pytest

from bedstone.errors import InvalidSetting, MissingExtra, Unavailable
from bedstone.records import Chunk, Document
from bedstone.search.filters import OneOf
from bedstone.search.index import IndexQuery, IndexUnwritable
from bedstone.search.indexes.opening import choose_index, open_index
from bedstone.search.indexes.opensearch.bodies import MAX_TERM, facet_term, filter_query, with_filter
from bedstone.search.indexes.opensearch.index import Factory, OpenSearchIndex
from bedstone.search.indexes.opensearch.progress import STORE_ID
from bedstone.search.indexes.opensearch.tables import merge
from bedstone.settings.loading import load_settings
from bedstone.settings.sections import OpenSearchSettings, SearchSettings, Settings
from bedstone.store.engines.memory import MemoryStore
from support.processes import free_port

SECRET = "hidden-word"


def store_with(text: str) -> MemoryStore:
    store = MemoryStore()
    store.put([(Document("one", "", ""), [Chunk("one", text, text)])])
    return store


def test_a_cluster_that_is_not_there_is_said_and_nothing_hangs() -> None:
    address = f"http://127.0.0.1:{free_port()}"
    settings = OpenSearchSettings.model_validate({"hosts": address, "user": "someone", "password": SECRET})
    index = OpenSearchIndex.open(store_with("tulips"), None, None, settings=settings)
    started = time.monotonic()
    with pytest.raises(IndexUnwritable, match="cannot be reached") as caught:
        index.catch_up()
    assert SECRET not in f"{caught.value!r} {settings!r}"
    assert index.search(IndexQuery("tulips")).candidates == []
    assert (index.applied_seq, index.chunk_count, index.has_vectors) == (0, 0, False)
    assert time.monotonic() - started < 20
    index.close()


def test_a_node_that_accepts_and_never_answers_costs_bounded_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        settings = OpenSearchSettings.model_validate({"hosts": address, "timeout_seconds": 0.3})
        store = store_with("tulips")
        store.set_value(STORE_ID, "known")
        index = OpenSearchIndex.open(store, None, None, "read", settings)
        started = time.monotonic()
        with pytest.raises(IndexUnwritable, match="in time"):
            index.catch_up()
        assert "no index of these documents yet" in (index.problem() or "")
        with pytest.raises(Unavailable):
            index.verify()
        assert time.monotonic() - started < 10
        index.close()


def test_settings_choose_the_index(tmp_path: Path) -> None:
    assert choose_index(Settings()) == "embedded"
    chosen = choose_index(Settings(search=SearchSettings(index="opensearch")))
    assert isinstance(chosen, Factory)
    assert isinstance(open_index(MemoryStore(), tmp_path, None, kind=chosen), OpenSearchIndex)
    with pytest.raises(InvalidSetting, match="opensearch"):
        choose_index(Settings(search=SearchSettings(index="opensaerch")))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("search.example.org:9200", "begins with http"),
        ("https://someone:hidden-word@search.example.org", "opensearch.user and opensearch.password"),
    ],
)
def test_an_address_is_checked_and_has_no_password(value: str, message: str) -> None:
    with pytest.raises(InvalidSetting, match=message) as caught:
        load_settings(environ={"BEDSTONE_OPENSEARCH__HOSTS": value})
    assert SECRET not in str(caught.value)


def test_without_the_package_an_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [
        name for name in sys.modules if name.startswith(("opensearchpy", "bedstone.search.indexes.opensearch"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opensearchpy", None)
    kind = choose_index(Settings(search=SearchSettings(index="opensearch")))
    with pytest.raises(MissingExtra, match=r"bedstone\[opensearch\]"):
        open_index(MemoryStore(), None, None, kind=kind)


def test_values_are_bound_and_long_ones_stay_apart() -> None:
    hostile = '"}}],"match_all":{}'
    assert filter_query(OneOf("part", (hostile,))) == {"terms": {"facets": [f"part={hostile}"]}}
    assert with_filter([], None)["bool"]["minimum_should_match"] == 1
    long, longer = ("x" * count for count in (MAX_TERM, MAX_TERM + 1))
    assert facet_term("a", long) != facet_term("a", longer)
    assert len(facet_term("a", longer * 9).encode()) < 32_766


def test_ranges_are_merged() -> None:
    assert merge([(5, 6), (1, 2), (3, 3), (9, 9), (8, 8)]) == [(1, 3), (5, 6), (8, 9)]
    assert merge([]) == []
