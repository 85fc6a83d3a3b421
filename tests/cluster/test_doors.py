"""A base whose index is in a cluster, through the doors of the product: the command, and a server."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from support.opensearch import SearchCluster
from support.processes import BEDSTONE


@pytest.fixture
def environment(cluster: SearchCluster, tmp_path: Path) -> dict[str, str]:
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("BEDSTONE_")},
        "BEDSTONE_DATA_DIR": str(tmp_path / "data"),
        "BEDSTONE_SEARCH__INDEX": "opensearch",
        "BEDSTONE_OPENSEARCH__HOSTS": ",".join(cluster.addresses),
        "BEDSTONE_OPENSEARCH__PREFIX": tmp_path.name.lower().replace("_", "-")[:40],
        "BEDSTONE_OPENSEARCH__USER": "reader",
        "BEDSTONE_OPENSEARCH__PASSWORD": "hidden-word",
    }


def run(environment: dict[str, str], *arguments: str) -> str:
    done = subprocess.run(
        [BEDSTONE, *arguments], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "hidden-word" not in done.stdout + done.stderr
    return done.stdout


def test_documents_are_added_found_and_checked(environment: dict[str, str], tmp_path: Path) -> None:
    for name, text in {"tulips": "Tulips are planted in autumn.", "boats": "A boat needs paint every spring."}.items():
        (tmp_path / f"{name}.txt").write_text(text)
        run(environment, "knowledge", "add", str(tmp_path / f"{name}.txt"))
    assert "tulips.txt" in run(environment, "knowledge", "search", "when are tulips planted")
    assert "is damaged" not in run(environment, "knowledge", "verify")
    status = json.loads(run(environment, "knowledge", "status"))
    assert "cluster" not in json.dumps(status.get("problems", ""))
    assert not (tmp_path / "data" / "index" / "words").exists()
    run(environment, "settings")
