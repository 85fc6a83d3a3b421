"""The suite of every search index, on a real cluster."""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from bedstone.search.indexes.opensearch.index import OpenSearchIndex
from bedstone.settings.sections import OpenSearchSettings
from bedstone.store.engine import Store
from bedstone.store.engines.memory import MemoryStore
from search import test_indexes as suite
from search.test_indexes import (  # noqa: F401 - pytest collects them here
    store,
    test_a_long_query_of_unknown_words_costs_little,
    test_an_empty_store_is_no_trouble,
    test_an_index_built_from_scratch_finds_the_same,
    test_an_index_follows_its_store,
    test_both_are_fused,
    test_facets_are_counted,
    test_filters_hold_inside_each_side,
    test_quotations_are_recognised,
    test_searches_go_on_while_the_index_catches_up,
    test_vectors_find,
    test_words_are_known_and_alike,
    test_words_find,
)
from support.opensearch import SearchCluster

SHARDS = {"opensearch": 1, "opensearch, three shards": 3}


@pytest.fixture(params=SHARDS)
def index(
    request: pytest.FixtureRequest,
    cluster: SearchCluster,
    tmp_path: Path,
    store: MemoryStore,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[OpenSearchIndex]:
    opened = []

    def open_index(store: Store, folder: Path) -> OpenSearchIndex:
        prefix = f"test-{sha256(str(folder).encode()).hexdigest()[:12]}"  # a new folder has a new index
        settings = OpenSearchSettings(hosts=cluster.addresses, prefix=prefix, shards=SHARDS[request.param])
        index = OpenSearchIndex.open(store, folder, suite.EMBEDDER, settings=settings)
        opened.append(index)
        return index

    monkeypatch.setattr(suite, "INDEXES", {request.param: open_index})
    index = open_index(store, tmp_path)
    index.catch_up()
    yield index
    for index in opened:
        index.close()
