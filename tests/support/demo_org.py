"""The demo org in a process of its own."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from support.processes import BEDSTONE, bedstone, clean_environment, free_port

V = "/services/data/v65.0"


@dataclass(frozen=True)
class Running:
    http: httpx2.Client
    port: int
    https_port: int
    folder: Path
    process: "subprocess.Popen[str]"
    token: str

    def query(self, statement: str, **more: Any) -> Any:
        return self.http.get(f"{V}/query", params={"q": statement}, **more).json()

    def calls(self) -> int:
        """How many calls of the day were made."""
        used = self.http.get(f"{V}/limits").headers["sforce-limit-info"]
        return int(used.partition("=")[2].partition("/")[0])

    def faults(self, *names: str) -> Any:
        return self.http.put("/_demo/faults", json={"faults": list(names)}).json()


@contextmanager
def running(folder: Path) -> Iterator[Running]:
    port, https_port = free_port(), free_port()
    ports = ["--port", str(port), "--https-port", str(https_port)]
    command = [str(BEDSTONE), "salesforce", "demo", *ports, "--data", str(folder), "--admin"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=clean_environment()) as process:
        assert process.stderr
        said = ""
        while "Ctrl-C" not in said:
            line = process.stderr.readline()
            assert line, said
            said += line
        found = re.search(r"access token\s+(\S+)", said)
        assert found
        headers = {"Authorization": f"Bearer {found[1]}"}
        try:
            with httpx2.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=20) as http:
                yield Running(http, port, https_port, folder, process, found[1])
        finally:
            process.terminate()
            process.wait(10)


def log_in(demo: Running, data: Path, name: str = "demo") -> None:
    """Make the org known to a data folder."""
    login = ("salesforce", "login", "--method", "demo", "--url", f"http://localhost:{demo.port}", "--org", name)
    made = bedstone(*login, "--data-dir", data)
    assert made.returncode == 0, made.stderr
