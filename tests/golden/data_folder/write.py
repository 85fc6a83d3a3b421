"""How data.zip was written: PYTHONPATH=tests .venv/bin/python tests/golden/data_folder/write.py

Run it only on code whose data folders later code must open; the archive in the repository is from Bedstone 0.1.0.
"""

import json
import shutil
import tempfile
from pathlib import Path

from support.demo_org import Running, V, log_in, running
from support.processes import Listening, bedstone, listening

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
OBJECTS = ("Account", "Contact", "Bike__c", "Service_Visit__c", "Warranty_Claim__c")
FILES = {
    "tulips.txt": "Tulips flower in April. Plant the bulbs in autumn, three times as deep as they are high.",
    "lamps.html": "<title>Lamps</title><h1>Lamps</h1><p>A lamp of 40 watts lights the shed.</p>",
    "anvils.md": "# Anvils\n\nAn anvil weighs 60 kilograms and stands on oak.\n",
    "broken.pdf": "%PDF-1.4 without anything that belongs into one",
    "first.txt": "The ferry leaves at seven.",
    "second.txt": "The lighthouse keeper feeds the gulls.",
    "third.txt": "A compass points to the north.",
}


def run(data: Path, *arguments: str | Path) -> None:
    """Run a command that must succeed."""
    done = bedstone(*arguments, "--data-dir", data)
    assert done.returncode == 0, done.stderr


def write_salesforce(org: Running, data: Path, folder: Path) -> None:
    """Mirror the articles of the demo org, and take over a few of its objects."""
    log_in(org, data)
    run(data, "salesforce", "sync-knowledge")
    folder.mkdir()
    for name in OBJECTS:
        described = org.http.get(f"{V}/sobjects/{name}/describe").json()
        (folder / f"{name}.json").write_text(json.dumps(described))
    run(data, "salesforce", "sync-schema", "--from", folder, "--name", "kestrel")
    (data / "salesforce" / "secrets.json").unlink()


def add(server: Listening, file: Path) -> None:
    """Queue a file."""
    params = {"name": "knowledge-add", "arguments": {"file_path": str(file)}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    assert b"queued for processing" in server.post("/mcp/tools/call", message)[1]


def main() -> None:
    """Write the archive."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        data = folder / "data"
        for name, text in FILES.items():
            (folder / name).write_text(text)
        shutil.copytree(ROOT / "demo" / "docs", folder / "docs")
        run(data, "docs", "build", folder / "docs", "--description", "Kestrel Fleet API (demo content)")
        with running(folder / "org") as org:
            write_salesforce(org, data, folder / "describes")
        run(data, "knowledge", "context", "create", "garden", "--description", "Plants and tools")
        run(data, "knowledge", "add", folder / "tulips.txt", "--context", "garden")
        run(data, "knowledge", "add", folder / "lamps.html", folder / "anvils.md")
        bedstone("knowledge", "add", folder / "broken.pdf", "--data-dir", data)
        options = ("--toolsets", "knowledge", "--data-dir", data)
        with listening(*options, log=folder / "log", BEDSTONE_PROCESSING__MAX_CONCURRENT_TASKS="1") as server:
            for name in ("first.txt", "second.txt", "third.txt"):
                add(server, folder / name)
            server.process.kill()  # with one task at a time, the later ones have not begun
        shutil.make_archive(str(HERE / "data"), "zip", data)


if __name__ == "__main__":
    main()
