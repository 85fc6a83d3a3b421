"""Run the official MCP conformance suite against this server: `make conformance`."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from support.node import npx
from support.processes import listening

SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
REVISIONS = ("2025-11-25", "2026-07-28")
DECLINED = Path(__file__).with_name("declined.yaml")


def main() -> int:
    """The number of revisions with an unexpected result."""
    with TemporaryDirectory() as folder, listening("--toolsets", "conformance", log=Path(folder) / "log") as server:
        return sum(bool(_run(server.base, revision, Path(folder))) for revision in REVISIONS)


def _run(base: str, revision: str, folder: Path) -> int:
    arguments = ["--url", f"{base}/mcp", "--requirements", revision, "--expected-failures", str(DECLINED)]
    return npx(SUITE, "server", *arguments, "-o", str(folder / revision)).returncode


if __name__ == "__main__":
    sys.exit(main())
