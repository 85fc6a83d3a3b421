"""Files that try to take more than they give, added to a real server; `make bombs` adds more and larger ones."""

from pathlib import Path

import pytest

from soak.bombs import MAX_RATIO, MEGABYTE, MIN_FILE_BYTES, add, call, disk_bytes, peak_memory, warm_server
from support.bombs import BOMBS

SIZE = 60_000
NAMES = (
    *("heading.md", "heading-and-words.md", "headings.md", "nested-headings.md"),
    *("wide-table.md", "head-of-one-chunk.md", "blank-fence.md", "dots.txt"),
    *("same.docx", "diagonal.xlsx", "shared-string.xlsx", "claimed.pdf", "long-title.pdf", "line.txt"),
)
REFUSED = ("same.docx", "shared-string.xlsx")
MAX_MEMORY_GROWTH_MB = 150


@pytest.fixture(scope="module")
def bombs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("bombs")
    for name in NAMES:
        (folder / name).write_bytes(BOMBS[name](SIZE))
    return [folder / name for name in NAMES]


def test_there_are_forty_bombs() -> None:
    assert len(BOMBS) >= 40


def test_bombs_end_and_leave_memory_and_disk_alone(bombs: list[Path], tmp_path: Path) -> None:
    with warm_server(tmp_path, "hash") as server:
        before = peak_memory(server.process.pid)
        outcomes = {path.name: add(server, path)[0] for path in bombs}
        growth = (peak_memory(server.process.pid) - before) / MEGABYTE
        listed = {row["filename"]: row for row in call(server, "show")["documents"]}
        pages = call(server, "get", document_id=listed["claimed.pdf"]["id"])
        line = call(server, "get", document_id=listed["line.txt"]["id"])
        title = call(server, "get", document_id=listed["long-title.pdf"]["id"], max_characters=100)
    assert outcomes == dict.fromkeys(NAMES, "completed") | dict.fromkeys(REFUSED, "failed")
    for name in REFUSED:
        assert listed[name]["message"].startswith("The text is more than 20 times as large as the file.")
    assert growth < MAX_MEMORY_GROWTH_MB
    allowed = MAX_RATIO * sum(max(path.stat().st_size, MIN_FILE_BYTES) for path in bombs)
    assert disk_bytes(tmp_path / "data") <= allowed
    assert listed["line.txt"]["chunk_count"] == 20
    assert "100 chunks with the same text" in line["metadata"]["warnings"][0]
    assert pages["page_count"] == 1
    assert pages["metadata"]["warnings"] == ["Pages 2 to 1000000 are corrupt or missing"]
    assert len(title["metadata"]["title"]) <= 2_000
