"""jsforce, unchanged, against the demo org."""

import json

from support.demo_org import Running
from support.node import run_script

JSFORCE = "jsforce@3.10.26"
SCRIPT = """
const jsforce = require('jsforce');
(async () => {
  const conn = new jsforce.Connection({ loginUrl: process.argv[2], version: '65.0' });
  await conn.login('admin@kestrel.example', 'demo');
  const identity = await conn.identity();
  const described = await conn.sobject('Account').describe();
  const rows = await conn.query('SELECT Id, Name FROM Contact', { autoFetch: true, maxFetch: 1000 });
  const found = await conn.search("FIND {Connor} IN ALL FIELDS RETURNING Account(Id, Name)");
  const made = await conn.sobject('Lead').create({ LastName: 'Ünal', Company: 'B' });
  const several = await conn.sobject('Lead').create([{ LastName: 'A', Company: 'B' }, { LastName: 'C', Company: 'D' }]);
  await conn.sobject('Lead').update({ Id: made.id, FirstName: 'Z' });
  const read = await conn.sobject('Lead').retrieve(made.id);
  await conn.sobject('Lead').destroy([made.id, ...several.map((row) => row.id)]);
  let error = null;
  try { await conn.query('SELECT Nothing FROM Account'); } catch (problem) { error = problem.errorCode; }
  console.log(JSON.stringify({
    username: identity.username, fields: described.fields.length, rows: rows.records.length,
    found: found.searchRecords.map((row) => row.Name), name: read.Name,
    several: several.map((row) => row.success), error,
  }));
})().catch((problem) => { console.error(problem); process.exit(1); });
"""


def test_it_logs_in_reads_searches_and_changes(demo: Running) -> None:
    done = run_script(JSFORCE, SCRIPT, f"http://127.0.0.1:{demo.port}")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["username"] == "admin@kestrel.example"
    assert answer["fields"] > 50
    assert (answer["rows"], answer["found"]) == (426, ["O'Connor's Bikes"])
    assert (answer["name"], answer["several"], answer["error"]) == ("Z Ünal", [True, True], "INVALID_FIELD")
