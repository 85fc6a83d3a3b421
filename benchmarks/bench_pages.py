"""CPU time and size of pages with 10,000 documents and the largest schema: `make bench-pages`.

Uses the data folder next to the checkout (or $BEDSTONE_BENCH_DATA). Filling the site takes some minutes, most of them
for vectors: `--folder` keeps it for the next run, `--keyword` does without vectors.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from urllib.parse import quote

from bench_server import cpu_seconds
from large_site import LONG_DOCX, LONG_PDF, Site, document_id, fill_site

from support.processes import Listening, listening

DATA = Path(os.environ.get("BEDSTONE_BENCH_DATA", Path(__file__).parents[2] / "shared" / "data"))
TIMES = 9
MAX_MS = 50
MAX_KB = 150  # of a page without its images
STALE_SECONDS = 2.5  # after which a page reads again what its menu shows
BUILD_SECONDS = 300
IDLE_SHARE = 0.02  # of a second: a server that uses less has finished its background work
MENU_PAGE = "/tools/get-object"
MANUAL = "porter-workshop-manual.pdf"
QUERY = quote("SELECT Id, Na FROM Account")
# The names of documents in braces are replaced with their ids.
PAGES = (
    "/",
    "/search",
    "/search?q=tulips",
    "/search?q=when+to+replace+a+brake+disc",
    "/search?q=account+name",
    "/search?q=tulips&in=knowledge&most=50",
    "/search?q=name&in=salesforce_graph&mode=keyword",
    "/search/results?q=retry+with+backoff",
    "/search/preview?q=brake+disc",
    "/search/beside?q=brake+disc",
    "/palette?q=a",
    "/palette?q=file-77",
    "/activity",
    "/activity/live",
    "/activity?page=20",
    "/documents",
    "/documents?page=100&sort=filename",
    "/documents?name=77&format=pdf",
    "/documents?context=spring&sort=size",
    "/documents?status=failed",
    "/documents/{small}",
    "/documents/{manual}",
    "/documents/{manual}?q=brake+disc",
    "/documents/{manual}?view=facts",
    "/documents/{pdf}",
    "/documents/{pdf}?page=300&view=outline",
    "/documents/{pdf}?page=300&view=text",
    "/documents/{pdf}?q=regulation",
    "/documents/{docx}",
    "/documents/{docx}?section=20",
    "/documents/{docx}?view=outline",
    "/docs",
    "/docs/corpora/sdks",
    "/docs/corpora/sdks?name=link",
    "/docs/corpora/sdks/docs/sdks/links/README.md",
    "/docs/corpora/python-sdk/docs/migration.md",
    "/docs/corpora/python-sdk/docs/migration.md?q=client",
    "/knowledge-file",
    "/salesforce",
    "/salesforce?search=account&category=standard",
    "/salesforce?page=20&sort=fields",
    "/salesforce/names?text=acc",
    "/salesforce/objects/Account",
    "/salesforce/objects/User",
    "/salesforce/objects/User?view=two-steps",
    "/salesforce/objects/User?view=list",
    "/salesforce/paths?from=Account&to=Opportunity",
    "/salesforce/soql",
    f"/salesforce/soql?q={QUERY}",
    f"/salesforce/soql/complete?q={QUERY}&at=13",
    "/salesforce/soql/fields?object=User",
    "/tools",
    "/tools/search",
    "/tools/get-object",
    "/quality",
    "/quality?show=worse",
)
IMAGES = (
    "/documents/{manual}/pages/1.webp",
    "/documents/{manual}/pages/1/marks.svg",
    "/documents/{pdf}/pages/300.webp",
)


@dataclass(frozen=True)
class Cost:
    """CPU milliseconds of the first request and of a later one, and the size of the answer."""

    first: float
    later: float
    kilobytes: float


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="folder to fill, or to use again")
    parser.add_argument("--keyword", action="store_true", help="measure keyword search, without vectors")
    options = parser.parse_args()
    if not DATA.is_dir():
        sys.exit(f"No data folder in {DATA}. Set BEDSTONE_BENCH_DATA.")
    provider = "none" if options.keyword else "minilm"
    with site_folder(options.folder) as folder:
        site = Site(folder)
        if not (site.data / "evaluations").exists():
            fill_site(site, DATA, provider)
        with serving(site, provider) as server:
            return measure(server, site)


@contextmanager
def site_folder(kept: Path | None) -> Iterator[Path]:
    if kept is not None:
        yield kept
        return
    with tempfile.TemporaryDirectory(prefix="bedstone-bench-") as folder:
        yield Path(folder)


@contextmanager
def serving(site: Site, provider: str) -> Iterator[Listening]:
    """Serve the site, until its indexes are built."""
    options = ("--data-dir", site.data, "--kb-file", site.knowledge_file, "--log-level", "error")
    with listening(*options, log=site.folder / "log", BEDSTONE_EMBEDDING__PROVIDER=provider) as server:
        wait_until_idle(server)
        yield server


def wait_until_idle(server: Listening) -> None:
    """Wait until the server has finished its background work."""
    deadline = time.monotonic() + BUILD_SECONDS
    while time.monotonic() < deadline:
        before = cpu_seconds(server.process.pid)
        time.sleep(1)
        if cpu_seconds(server.process.pid) - before < IDLE_SHARE:
            return
    sys.exit(f"The server is still busy after {BUILD_SECONDS} seconds.")


def measure(server: Listening, site: Site) -> int:
    """Print a row for each page; return how many exceed a limit."""
    documents = site.newest_documents()
    ids = {
        "small": document_id(5),
        "manual": documents[MANUAL],
        "pdf": documents[Path(LONG_PDF).name],
        "docx": documents[Path(LONG_DOCX).name],
    }
    print("| page | first, CPU ms | later, CPU ms | KB |\n|---|---|---|---|")
    costs = {path: _report(server, path, ids) for path in PAGES}
    for path in IMAGES:
        _report(server, path, ids)
    menu = measure_menu(server, costs[MENU_PAGE].later)
    slow = [path for path, cost in costs.items() if cost.later + menu > MAX_MS]
    large = [path for path, cost in costs.items() if cost.kilobytes > MAX_KB]
    worst = max(cost.later for cost in costs.values())
    print(
        f"\nThe first page after {STALE_SECONDS} s reads again what its menu shows: {menu:.1f} ms more.\n"
        f"Maximum: {worst:.1f} + {menu:.1f} ms (limit {MAX_MS}), "
        f"{max(cost.kilobytes for cost in costs.values()):.0f} KB (limit {MAX_KB})."
    )
    for path in dict.fromkeys([*slow, *large]):
        print(f"Exceeds a limit: {path}")
    return len(slow) + len(large)


def _report(server: Listening, path: str, ids: dict[str, str]) -> Cost:
    cost = measure_page(server, path.format(**ids))
    print(f"| `{path}` | {cost.first:.0f} | {cost.later:.1f} | {cost.kilobytes:.0f} |", flush=True)
    return cost


def measure_page(server: Listening, path: str) -> Cost:
    """Measure a page; the later cost is the median of several requests."""
    first, size = measure_request(server, path)
    later = [measure_request(server, path)[0] for _ in range(TIMES)]
    return Cost(first, statistics.median(later), size / 1024)


def measure_menu(server: Listening, fresh: float) -> float:
    """Return what a page costs more whose menu is stale."""
    costs = []
    for _ in range(TIMES):
        time.sleep(STALE_SECONDS)
        costs.append(measure_request(server, MENU_PAGE)[0])
    return max(0.0, statistics.median(costs) - fresh)


def measure_request(server: Listening, path: str) -> tuple[float, int]:
    """Return the CPU milliseconds of one request, and the size of its answer."""
    before = cpu_seconds(server.process.pid)
    status, body = server.request("GET", path, headers={"accept": "text/html"})
    spent = cpu_seconds(server.process.pid) - before
    assert status == HTTPStatus.OK, (path, status, body[:500])
    return spent * 1000, len(body)


if __name__ == "__main__":
    sys.exit(main())
