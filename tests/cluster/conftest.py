"""A search cluster for all tests here that need one; they run in one process, the others beside them in another one."""

from collections.abc import Iterator

import pytest

from support.opensearch import SearchCluster, search_cluster


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        needs_search = "shared_cluster" in getattr(item, "fixturenames", ())
        item.add_marker(pytest.mark.xdist_group("search" if needs_search else "balancer"))


@pytest.fixture(scope="session")
def shared_cluster() -> Iterator[SearchCluster]:
    with search_cluster() as cluster:
        yield cluster


@pytest.fixture
def cluster(shared_cluster: SearchCluster) -> SearchCluster:
    """Three nodes that run, without indexes; one that a test killed is started again."""
    for number, node in enumerate(shared_cluster.nodes):
        if node.process is None or node.process.poll() is not None:
            shared_cluster.start(number)
    shared_cluster.clear()
    shared_cluster.wait()
    return shared_cluster
