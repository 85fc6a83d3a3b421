"""Questions that nothing answers: no strong hit, and a hint instead of a straight face."""

import json
from pathlib import Path
from typing import Any

import pytest

from bedstone.app import build_toolset
from bedstone.settings import Settings
from support.doors import DOORS, Door, payload
from support.processes import bedstone

FIXTURE = Path(__file__).parents[1] / "fixtures" / "unanswerable.json"
PAGES = {
    "backup.md": """# Back up a database

Run `dbctl backup` every night. The server keeps writing while the copy is made.

## Restore

Stop the server, copy the backup into the data directory, and start it again. How long a restore takes depends on the
size of the log.
""",
    "indexes.md": """# Indexes

An index makes a query fast and a write slow. Create one for each column that a WHERE clause names.

## Partial indexes

A partial index covers only the rows that a condition selects.
""",
    "replication.md": """# Replication

A replica follows the primary and answers reads. Add a second one before you upgrade.

## Failover

When the primary does not answer for ten seconds, a replica takes over.
""",
    "users.md": "# Users and roles\n\nGrant rights to roles, not to users. A role can be a member of another role.\n",
    "tuning.md": """# Tuning memory

The buffer pool holds pages that were read. Give it half of the memory of the machine.

## Checkpoints

A checkpoint writes dirty pages to disk. Long intervals make a crash recovery slow.
""",
    "errors.md": """# Errors

## Deadlock detected

Two transactions wait for each other. The server rolls one of them back; try it again.

## Disk full

The server stops writing and makes the database read-only until there is room.
""",
}
BREAD = [
    "How do I bake bread with a crisp crust?",
    "How long do I bake sourdough bread at home and how do I store it?",
    "bread recipe with sourdough",
    "what temperature makes bread rise",
]
ANSWERS = {
    "how do I make a copy of my data every night": "backup.md",
    "what happens when two transactions wait for each other": "errors.md",
    "how much memory should the buffer pool get": "tuning.md",
    "what takes over when the primary does not answer": "replication.md",
}


@pytest.fixture(scope="module", params=["minilm", "none"])
def index(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "database").mkdir()
    for name, text in PAGES.items():
        (folder / "database" / name).write_text(text)
    done = bedstone(
        "docs", "build", folder / "database", "--out", folder / "index", "--embedding-provider", request.param
    )
    assert done.returncode == 0, done.stderr
    return folder / "index"


async def search(door: Door, query: str) -> dict[str, Any]:
    found: dict[str, Any] = payload(await door.call("search_docs", {"query": query}))
    return found


async def test_bread_in_database_documentation_is_weak_and_said_to_be(index: Path) -> None:
    toolset = build_toolset("docs", Settings.model_validate({"docs": {"index": [index]}}))
    async with toolset.opened(), DOORS["memory-2026"]([toolset]) as door:
        for query in BREAD:
            found = await search(door, query)
            assert all(hit["score"] < 0.2 for hit in found["hits"]), (query, found)
            assert found["hint"]["message"], query
        for query, file in ANSWERS.items():
            found = await search(door, query)
            assert found["hits"][0]["filepath"] == file
            assert found["hits"][0]["score"] >= 0.5, (query, found["hits"][0])
            assert not found.get("hint"), query


async def test_questions_about_other_things_have_no_strong_hit(index: Path) -> None:
    every = [text for kinds in json.loads(FIXTURE.read_text()).values() for texts in kinds.values() for text in texts]
    assert len(every) >= 60
    toolset = build_toolset("docs", Settings.model_validate({"docs": {"index": [index]}}))
    async with toolset.opened(), DOORS["memory-2026"]([toolset]) as door:
        strong = [query for query in every if any(hit["score"] >= 0.5 for hit in (await search(door, query))["hits"])]
        assert len(strong) <= len(every) // 20, strong
