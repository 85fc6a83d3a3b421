"""A search cluster for all tests here."""

from collections.abc import Iterator

import pytest

from support.opensearch import SearchCluster, search_cluster


@pytest.fixture(scope="session")
def shared_cluster() -> Iterator[SearchCluster]:
    with search_cluster() as cluster:
        yield cluster


@pytest.fixture
def cluster(shared_cluster: SearchCluster) -> SearchCluster:
    """Three nodes that run; one that a test killed is started again."""
    for number, node in enumerate(shared_cluster.nodes):
        if node.process is None or node.process.poll() is not None:
            shared_cluster.start(number)
    shared_cluster.wait()
    return shared_cluster
