import re
import subprocess
import sys
from pathlib import Path

import pytest

from contracts.requirements import REQUIREMENTS

TESTS = Path(__file__).parents[1]
CONFTEST = """
from support import proofs


def pytest_configure(config):
    proofs.register(config)


def pytest_collection_modifyitems(items):
    proofs.record(items)
"""
SKIPPED = '@pytest.mark.proves("a.b")\n@pytest.mark.skipif(True, reason="no data")\ndef test_skipped(): ...\n'
PROVED = '@pytest.mark.proves("a.b")\ndef test_proved(): ...\n'


def test_every_requirement_is_proved_by_a_test() -> None:
    tests = "\n".join(path.read_text() for path in TESTS.rglob("test_*.py"))
    proved = {name for call in re.findall(r"@proves\(([^)]*)\)", tests) for name in re.findall(r'"([^"]+)"', call)}
    assert not set(REQUIREMENTS) - proved


@pytest.mark.parametrize(("tests", "status"), [(SKIPPED, 1), (SKIPPED + PROVED, 0), (PROVED, 0)])
@pytest.mark.parametrize("processes", ["0", "1"])
def test_a_run_that_skips_every_proof_of_a_requirement_fails(
    tests: str, status: int, processes: str, tmp_path: Path
) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(f"import pytest\n{tests}")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", processes, "test_it.py"]
    environment = {"PYTHONPATH": str(TESTS), "PATH": ""}
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == status, run.stdout + run.stderr
    assert ("a.b" in run.stdout) == bool(status)
