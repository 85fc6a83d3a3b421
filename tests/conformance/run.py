"""Run the official MCP conformance suite against this server: `make conformance`."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from support.node import npx
from support.processes import listening

SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
REVISIONS = ("2025-11-25", "2026-07-28")
# Of the Tasks extension what needs no tool that asks the client or demands tasks: ours never do.
TASKS = ("lifecycle", "capability-negotiation", "request-headers", "wire-fields", "request-state-removal")
DECLINED = Path(__file__).with_name("declined.yaml")


def main() -> int:
    """The number of revisions and scenarios with an unexpected result."""
    with TemporaryDirectory() as folder, listening("--toolsets", "conformance", log=Path(folder) / "log") as server:
        failed = sum(bool(_run(server.base, revision, Path(folder))) for revision in REVISIONS)
        return failed + sum(bool(_scenario(server.base, f"tasks-{name}")) for name in TASKS)


def _run(base: str, revision: str, folder: Path) -> int:
    arguments = ["--url", f"{base}/mcp", "--requirements", revision, "--expected-failures", str(DECLINED)]
    return npx(SUITE, "server", *arguments, "-o", str(folder / revision)).returncode


def _scenario(base: str, name: str) -> int:
    return npx(SUITE, "server", "--url", f"{base}/mcp", "--scenario", name).returncode


if __name__ == "__main__":
    sys.exit(main())
