"""Cost of the SOQL parser (compared with soql-parser-js), the demo org and the schema: `make bench-salesforce`.

Queries come from the data folder next to the checkout (or $BEDSTONE_BENCH_DATA).
"""

import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from large_schema import fill

from bedstone.salesforce.demo_org.org import DemoOrg, open_org
from bedstone.salesforce.graph.paths import PathFinder
from bedstone.salesforce.soql import parse_soql, write
from bedstone.salesforce.validation import validate
from bedstone.salesforce.validation.scope import suggest_object
from bedstone.search.embedders.minilm import MiniLm
from bedstone.services.schema.search import SchemaSearch
from bedstone.services.schema.store import SchemaStore
from bedstone.toolsets.salesforce_graph.views import object_details, object_line
from support.node import run_script

DATA = Path(os.environ.get("BEDSTONE_BENCH_DATA", Path(__file__).parents[2] / "shared" / "data"))
PEER = "@jetstreamapp/soql-parser-js@6.3.1"
ROUNDS = 5
TIMES = 20
ROWS = 10_000
SCRIPT = """
const { parseQuery } = require('@jetstreamapp/soql-parser-js');
const queries = JSON.parse(require('fs').readFileSync(process.argv[2], 'utf8'));
const medians = [];
for (const query of queries) {
  try { parseQuery(query); } catch (problem) { continue; }
  let best = Infinity;
  for (let round = 0; round < 5; round++) {
    const started = process.cpuUsage();
    for (let number = 0; number < 20; number++) parseQuery(query);
    const used = process.cpuUsage(started);
    best = Math.min(best, (used.user + used.system) / 20);
  }
  medians.push(best);
}
medians.sort((a, b) => a - b);
const at = (share) => medians[Math.floor(medians.length * share)];
console.log(JSON.stringify({ median: at(0.5), p95: at(0.95) }));
"""


def row(*cells: object) -> None:
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def best_cpu_us(work: Any, times: int = TIMES) -> float:
    """Return CPU microseconds per call, the best of several rounds."""
    rounds = []
    for _ in range(ROUNDS):
        started = time.process_time()
        for _ in range(times):
            work()
        rounds.append((time.process_time() - started) / times * 1e6)
    return min(rounds)


def measure_parser(work: Path) -> None:
    cases = json.loads((DATA / "salesforce" / "soql_dev.json").read_text())["cases"]
    queries = [
        case["soql"] for case in cases if case["verdicts"]["official_rest"] and case["verdicts"]["soql_parser_js"]
    ]
    ours = sorted(best_cpu_us(lambda query=query: parse_soql(query)) for query in queries)
    trees = [parse_soql(query) for query in queries]
    written = statistics.median(best_cpu_us(lambda tree=tree: write(tree)) for tree in trees)
    (work / "queries.json").write_text(json.dumps(queries))
    done = run_script(PEER, SCRIPT, str(work / "queries.json"))
    theirs = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {}
    print(f"\n## SOQL, {len(queries)} queries that both parse, CPU microseconds\n")
    row("measurement", "Bedstone", "soql-parser-js (Node)", "limit")
    row(*["---"] * 4)
    row("parse, median", f"{statistics.median(ours):.0f}", f"{theirs.get('median', 0):.0f}", 150)
    row("parse, 95th percentile", f"{ours[int(len(ours) * 0.95)]:.0f}", f"{theirs.get('p95', 0):.0f}", "")
    row("write, median", f"{written:.0f}", "", "")


def measure_demo_org(work: Path) -> None:
    print("\n## Demo org\n")
    started = time.process_time()
    open_org(work).close()
    created = time.process_time() - started
    started = time.process_time()
    org = open_org(work)
    reopened = time.process_time() - started
    print(f"Content created in {created:.1f} s of CPU, reopened in {reopened * 1000:.0f} ms.\n")
    add_leads(org)
    row("first page over 10,000 rows, JSON included", "CPU ms", "limit")
    row(*["---"] * 3)
    for statement in (
        "SELECT Id, Name, Company, Status FROM Lead",
        "SELECT Id, Name, Company, Status, Owner.Name FROM Lead ORDER BY Name",
        "SELECT Id, Name FROM Lead WHERE Name LIKE 'L%' AND CreatedDate = LAST_YEAR ORDER BY CreatedDate DESC",
        "SELECT Status, COUNT(Id) FROM Lead GROUP BY Status",
    ):
        row(
            f"`{statement}`",
            f"{best_cpu_us(lambda s=statement: json.dumps(org.queries.run(s, '/x')), 1) / 1000:.0f}",
            50,
        )
    org.close()


PAIRS = (
    ("Account", "Opportunity"),
    ("Account", "Contact"),
    ("Case", "Product2"),
    ("Task", "Account"),
    ("Lead", "Quote"),
)
QUERIES = (
    "SELECT Id, Name, Owner.Name, (SELECT Id, LastName FROM Contacts) FROM Account WHERE CreatedDate = LAST_N_DAYS:30",
    "SELECT StageName, COUNT(Id) FROM Opportunity WHERE IsWon = true GROUP BY StageName ORDER BY COUNT(Id) DESC",
    "SELECT Id FROM Case WHERE AccountId IN (SELECT Id FROM Account WHERE Name LIKE 'A%') LIMIT 10",
)
QUESTIONS = (
    "customers that pay late",
    "where a patient lives",
    "invoice lines",
    "how long a call took",
    "loan officer",
)


def measure_schema(work: Path) -> None:
    """Measure a server with the largest schema of the data folder."""
    store = SchemaStore(work / "large")
    rows = fill(store, DATA)
    floor = _cpu_seconds(lambda: [json.loads(line) for line in rows])
    before = _memory_mb()
    started = time.process_time()
    graph = store.load()
    graph.children("Account")
    loaded = time.process_time() - started
    finder = PathFinder(graph)
    search = SchemaSearch(graph, store.folder, MiniLm)
    print(f"\n## Schema graph, {len(graph.objects):,} objects, {graph.field_count:,} fields\n")
    row("measurement", "CPU ms", "limit")
    row(*["---"] * 3)
    row(f"load, with edges ({loaded / floor:.1f} times the cost of parsing the JSON)", f"{loaded * 1000:.0f}", 2000)
    row("memory, MB", f"{_memory_mb() - before:.0f}", 300)
    lines = best_cpu_us(lambda: [object_line(item, graph) for item in list(graph.objects.values())[:1000]], 1)
    account = graph.get("Account")
    assert account
    row("list, 1,000 rows", f"{lines / 1000:.1f}", 5)
    row("get, Account", f"{best_cpu_us(lambda: object_details(account, graph), 3) / 1000:.1f}", 5)
    row("find, with suggestions", f"{best_cpu_us(lambda: suggest_object('Acount', graph), 1) / 1000:.1f}", 5)
    row(
        "validate, median",
        f"{statistics.median(best_cpu_us(lambda q=q: validate(q, graph)) for q in QUERIES) / 1000:.2f}",
        1,
    )
    first = [_cpu_seconds(lambda pair=pair: finder.find(*pair)) * 1000 for pair in PAIRS]
    again = [best_cpu_us(lambda pair=pair: finder.find(*pair), 1) / 1000 for pair in PAIRS]
    row("paths to depth 5, first time, worst", f"{max(first):.0f}", "")
    row("paths to depth 5, median / worst", f"{statistics.median(again):.0f} / {max(again):.0f}", 50)
    embedding = _cpu_seconds(search.make_vectors)
    for kind in ("objects", "fields"):
        search.search("warm up", kind)
        taken = [_cpu_seconds(lambda q=q, k=kind: search.search(q, k)) * 1000 for q in QUESTIONS]
        row(f"semantic-search, {kind}, median", f"{statistics.median(taken):.0f}", 25)
    print(f"\nEmbedding all names, once: {embedding:.0f} s of CPU.")


def _cpu_seconds(work: Any) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def _memory_mb() -> float:
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1024


def add_leads(org: DemoOrg) -> None:
    item = org.schema.get("Lead")
    assert item
    with org.database.transaction():
        for number in range(ROWS):
            record = {"LastName": f"L{number}", "Name": f"L{number}", "Company": "C", "Status": "Working - Contacted"}
            stamps = {"OwnerId": org.user, "CreatedDate": "2025-05-01T00:00:00.000+0000"}
            org.database.insert(item, {"Id": org.database.next_id(item), **record, **stamps})


def main() -> None:
    if not DATA.is_dir():
        sys.exit(f"No data folder in {DATA}. Set BEDSTONE_BENCH_DATA.")
    with tempfile.TemporaryDirectory(prefix="bedstone-bench-") as folder:
        measure_parser(Path(folder))
        measure_demo_org(Path(folder))
        measure_schema(Path(folder))


if __name__ == "__main__":
    main()
