"""CPU time and size of pages with 10,000 documents and the largest schema: `make bench-pages`.

The schema comes from the data folder next to the checkout (or $BEDSTONE_BENCH_DATA).
"""

import http
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench_server import cpu_seconds
from large_schema import fill

from bedstone.records import Chunk, Document
from bedstone.services.schema.store import SchemaStore
from bedstone.store.engines.sqlite import SqliteStore
from support.processes import listening

DATA = Path(os.environ.get("BEDSTONE_BENCH_DATA", Path(__file__).parents[2] / "shared" / "data"))
DOCUMENTS = 10_000
TIMES = 20
MAX_MS = 100
MAX_KB = 200
DOCUMENT_ID = "00000005-0000-4000-8000-000000000000"
PAGES = (
    "/",
    "/search?q=tulips",
    "/search/beside?q=tulips",
    "/documents",
    "/documents?page=100&sort=filename",
    "/documents?name=77&format=pdf",
    f"/documents/{DOCUMENT_ID}",
    "/salesforce",
    "/salesforce?search=account&category=standard",
    "/salesforce/objects/Account",
    "/salesforce/objects/User",
    "/salesforce/objects/User?depth=2",
    "/salesforce/objects/User/relationships",
    "/salesforce/paths?from=Account&to=Opportunity",
    "/salesforce/soql",
    "/tools",
    "/tools/get-object",
    "/quality",
)


def main() -> None:
    if not DATA.is_dir():
        sys.exit(f"No data folder in {DATA}. Set BEDSTONE_BENCH_DATA.")
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        store = SqliteStore(data / "index" / "knowledge.sqlite", durable=False)
        store.put(documents())
        store.close()
        fill(SchemaStore(data / "salesforce" / "schemas" / "import-large"), DATA)
        options = ("--data-dir", data, "--toolsets", "knowledge,salesforce_graph", "--log-level", "error")
        with listening(*options, log=data / "log", BEDSTONE_EMBEDDING__PROVIDER="none") as server:
            time.sleep(5)  # the server builds its indexes
            print("| page | first, CPU ms | then, CPU ms | KB |\n|---|---|---|---|")
            worst = [0.0, 0.0]
            for path in PAGES:
                before = cpu_seconds(server.process.pid)
                status, body = server.request("GET", path)
                first = (cpu_seconds(server.process.pid) - before) * 1000
                assert status == http.HTTPStatus.OK, (path, status)
                before = cpu_seconds(server.process.pid)
                for _ in range(TIMES):
                    server.request("GET", path)
                spent = (cpu_seconds(server.process.pid) - before) * 1000 / TIMES
                size = len(body) / 1024
                worst = [max(worst[0], spent), max(worst[1], size)]
                print(f"| `{path.replace(DOCUMENT_ID, 'ID')}` | {first:.0f} | {spent:.1f} | {size:.0f} |")
            print(f"\nMaximum: {worst[0]:.0f} ms (limit {MAX_MS}), {worst[1]:.0f} KB (limit {MAX_KB}).")


def documents() -> Iterator[tuple[Document, list[Chunk]]]:
    """Yield documents with one chunk each."""
    for number in range(DOCUMENTS):
        identity = f"{number:08d}-0000-4000-8000-000000000000"
        facts = {
            "filename": f"file-{number}.pdf",
            "source": "",
            "format": "pdf",
            "size": "1000",
            "added": str(1_700_000_000 + number),
            "status": "completed",
            "method": "text_extraction",
            "pages": "3",
            "user": "{}",
            "facts": "{}",
            "warnings": "[]",
        }
        text = f"Tulips of field {number}, counted in spring."
        chunk = Chunk(f"{identity[:8]}-1111{identity[13:]}", text, text, facets={"document": identity, "format": "pdf"})
        yield Document(identity, f"File {number}", f"digest {number}", facts), [chunk]


if __name__ == "__main__":
    main()
