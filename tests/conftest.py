"""Fixtures every test may use."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.configuration import set_hypothesis_home_dir

from bedstone.salesforce.client import client as salesforce_client
from support import balancer, noise, proofs, replicas
from support.bucket import BucketServer, bucket_server
from support.demo_org import Running, running
from support.postgres import PostgresServer, postgres_server

# The same examples in every run: what fails in CI fails here.
set_hypothesis_home_dir(Path(__file__).parents[1] / ".cache" / "hypothesis")
settings.register_profile("bedstone", database=None, deadline=None, derandomize=True)
settings.load_profile("bedstone")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--embedding-noise", type=int, metavar="SEED", help="Add noise to vectors, to find near ties.")
    parser.addoption("--embedder", metavar="NAME", help="Run tests/search/test_embedders.py on this embedder.")
    parser.addoption("--balancer", choices=balancer.CHOICES, help="Two servers behind this, on PostgreSQL.")
    parser.addoption("--store", metavar="ADDRESS", help="Run tests/store on this store; {folder}, {name} are new.")


def pytest_configure(config: pytest.Config) -> None:
    proofs.register(config)
    config.addinivalue_line("markers", "one_server(reason): cannot run behind a load balancer (--balancer)")
    config.addinivalue_line("markers", "needs_session(*doors): the handshake era needs a session for this")
    balancer.choose(config.getoption("--balancer"))
    if (seed := config.getoption("--embedding-noise")) is not None:
        noise.turn_on(seed)


def pytest_unconfigure() -> None:
    replicas.close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if balancer.chosen is None:
        proofs.record(items)
        return
    for item in items:
        if marker := item.get_closest_marker("one_server"):
            item.add_marker(pytest.mark.skip(reason=f"One server only: {marker.args[0]}"))
        marker = item.get_closest_marker("needs_session") if balancer.chosen.is_stateless else None
        if marker and (not marker.args or item.callspec.id in marker.args):  # type: ignore[attr-defined]
            item.add_marker(pytest.mark.skip(reason="Clients of the handshake era have no session here"))


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server; each store has a schema of its own."""
    with postgres_server() as server:
        yield server


@pytest.fixture(scope="session")
def bucket_process() -> Iterator[BucketServer]:
    """An S3 server for all tests of a process."""
    with bucket_server() as server:
        yield server


@pytest.fixture
def bucket(bucket_process: BucketServer, monkeypatch: pytest.MonkeyPatch) -> BucketServer:
    """An S3 server, and its credentials in the environment; each `address()` is a new prefix."""
    for name, value in bucket_process.environment.items():
        monkeypatch.setenv(name, value)
    return bucket_process


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The demo org, in a process of its own."""
    with running(tmp_path_factory.mktemp("demo")) as server:
        yield server


@pytest.fixture
def calm(demo: Running, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The demo org without faults, before and after; a client that waits for a busy one waits briefly."""
    monkeypatch.setattr(salesforce_client, "FIRST_WAIT", 0.01)
    demo.faults()
    yield
    demo.faults()
