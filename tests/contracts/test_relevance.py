"""What a score means: `min_relevance: 0.5` keeps right answers, and leaves out what answers nothing."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bedstone.app import build_toolset
from bedstone.settings import Settings
from support.doors import DOORS, Door, payload

DOCUMENTS = {
    "staff-plan.md": """# Staff plan

The orchard cooperative will hire four new beekeepers in March. They work in pairs and look after sixty hives.

The shop keeps its two cashiers. A bookkeeper joins on the first of May, on three days a week.
""",
    "ferry.md": """# Ferry to the island

The ferry leaves the north pier at 07:15 and at 16:40. Bicycles travel free of charge, motor cars cost eighteen euros.

In storms the harbour master cancels the crossing and posts a red flag on the pier.
""",
    "library-rules.md": """# Library rules

A reader may borrow eight books for four weeks. A loan can be extended twice, unless somebody has reserved the book.

Each day that a book is late costs twenty cents. Lost books are replaced at the reader's expense.
""",
    "greenhouse.md": """# Greenhouse

Tomatoes are watered every morning before eight o'clock. The vents open when it gets warmer than 27 degrees.

Whitefly is fought with ladybirds; no pesticide is sprayed in the greenhouse.
""",
    "kiln.md": """# Pottery kiln

The first firing reaches 980 degrees and takes nine hours. Glaze firing needs 1,240 degrees.

Never open the kiln door before the pots have cooled below 100 degrees, or they crack.
""",
    "choir.md": """# Choir

The choir rehearses on Tuesday evenings in the old fire station. New singers are invited to an audition in September.

The membership fee is forty euros a year; students sing for free.
""",
    "warranty.md": """# Warranty of the Porter cargo bike

The frame is guaranteed for ten years, the battery for two years or 500 charging cycles.

Damage from overloading is not covered. Send a photograph of the defect and the receipt to the service desk.
""",
    "minutes.md": """# Minutes of the village council

The council decided to rebuild the stone bridge over the mill stream. The work costs 310,000 euros and ends in October.

The mayor reported that the swimming pool stays closed because its filter pump is broken.
""",
}
# Questions, keywords and a quotation.
ANSWERS = {
    "how many beekeepers will be hired": "staff-plan.md",
    "how many beekeepers will the cooperative hire": "staff-plan.md",
    "what time does the ferry leave the pier": "ferry.md",
    "how many books may a reader borrow": "library-rules.md",
    "what does a late book cost": "library-rules.md",
    "what is the fine for a late book": "library-rules.md",
    "penalty for returning library books too late": "library-rules.md",
    "when are the tomatoes watered in the morning": "greenhouse.md",
    "how hot is the glaze firing": "kiln.md",
    "how many degrees does the glaze firing need": "kiln.md",
    "when may I open the kiln door": "kiln.md",
    "where does the choir rehearse": "choir.md",
    "when do singers practise with the choir": "choir.md",
    "membership fee for students": "choir.md",
    "for how many years is the frame guaranteed": "warranty.md",
    "what does the new stone bridge cost": "minutes.md",
    "why is the swimming pool closed": "minutes.md",
    "cargo bike warranty": "warranty.md",
    "harbour master": "ferry.md",
    "posts a red flag on the pier": "ferry.md",
}
UNANSWERABLE = [
    "who invented the steam engine",
    "how do I reset my password",
    "what is the capital of Mongolia",
    "symptoms of vitamin D deficiency",
    "how are mortgage rates calculated",
    "configure a Kubernetes ingress",
    "which vaccine protects against measles",
    "how do I file my income tax return in October",
    "a recipe for bread with sourdough",
    "when was the railway station of Lisbon built",
    "how many students live in the state of Ohio",
    "who broke the world record for the free fall",
]


@asynccontextmanager
async def serving_base(folder: Path, **settings: Any) -> AsyncIterator[Door]:
    """A knowledge base with the documents, behind a client."""
    toolset = build_toolset("knowledge", Settings.model_validate({"data_dir": folder / "data", **settings}))
    async with toolset.opened(), DOORS["memory-2026"]([toolset]) as door:
        for name, text in DOCUMENTS.items():
            (folder / name).write_text(text)
            added = payload(await door.call("knowledge-add", {"file_path": str(folder / name), "async": False}))
            assert added["success"], added
        yield door


async def search(door: Door, query: str, min_relevance: float) -> list[dict[str, Any]]:
    arguments = {"query": query, "min_relevance": min_relevance}
    results: list[dict[str, Any]] = payload(await door.call("knowledge-search", arguments))["results"]
    return results


@pytest.mark.parametrize("model", ["all-MiniLM-L6-v2", "none"])
async def test_half_is_where_hits_begin_to_answer(model: str, tmp_path: Path) -> None:
    async with serving_base(tmp_path, embedding={"model_name": model}) as door:
        found = {query: await search(door, query, 0.5) for query in ANSWERS}
        assert {query: hits[0]["filename"] for query, hits in found.items() if hits} == ANSWERS
        above = {query: await search(door, query, 0.5) for query in UNANSWERABLE}
        assert [query for query, hits in above.items() if hits] == []
