"""Formats that other packages install are detected and read; a broken one is left out."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.outside import OUTSIDE_PACKAGE, Environment, create_environment

ODD_FORMATS = """
import os
import re
import zipfile

from bedstone.ingest.extraction import Page
from bedstone.ingest.format import Format

SHELF = Format(
    name="shelf",
    reader="odd_formats:read_shelf",
    suffixes=(".shelf",),
    media_type="application/zip",
    zip_member="books/",
)
NEWER_PDF = Format(name="pdf", reader="odd_formats:read_shelf", suffixes=(".pdf",), media_type="application/pdf")


def read_shelf(path, options, notes):
    notes.learn("process", os.getpid())
    with zipfile.ZipFile(path) as archive:
        for number, name in enumerate(archive.namelist(), start=1):
            yield Page(name, number)
"""
ENTRY_POINTS = {
    "shelf": "odd_formats:SHELF",
    "pdf": "odd_formats:NEWER_PDF",
    "broken": "odd_formats.missing:FORMAT",
    "nameless": "odd_formats:re",
}
PROGRAM = """
import json, os, sys, zipfile
from pathlib import Path
from bedstone.ingest.detection import detect, find_format, format_of, supported_formats
from bedstone.ingest.reader import read_whole
from bedstone.services.knowledge.errors import unsupported_format

folder = Path(sys.argv[1])
(folder / "guide.adoc").write_text("// draft\\n= Guide\\n\\n== Valves\\n\\nTurn the valve.")
(folder / "unnamed").write_text("//adoc\\ntext")
with zipfile.ZipFile(folder / "own.shelf", "w") as archive:
    archive.writestr("books/one", "")
(folder / "paper.pdf").write_bytes(b"%PDF-")
pages, notes = read_whole(folder / "guide.adoc")
shelf, shelf_notes = read_whole(folder / "own.shelf")
print(json.dumps({
    "detected": {path.name: detect(path) for path in sorted(folder.iterdir())},
    "pages": [page.markdown for page in pages],
    "title": notes.metadata["title"],
    "shelf": [page.markdown for page in shelf],
    "processes": [shelf_notes.metadata["process"], str(os.getpid())],
    "by_suffix": format_of("GUIDE.ADOC"),
    "pdf": find_format("pdf").reader,
    "additional": sorted(unsupported_format(".exe").details["additional_formats"][-2:]),
    "reader_loaded": "acme_diary.adoc_reader" in sys.modules,
}))
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with the outside package, and one with odd formats."""
    environment = create_environment(tmp_path_factory.mktemp("environment"))
    environment.install(OUTSIDE_PACKAGE)
    (environment.packages / "odd_formats.py").write_text(ODD_FORMATS)
    environment.register("odd-formats", "1.0", {"bedstone.formats": ENTRY_POINTS})
    return environment


def test_formats_of_other_packages_are_detected_and_read(environment: Environment, tmp_path: Path) -> None:
    done = subprocess.run(
        [environment.python, "-c", PROGRAM, tmp_path], capture_output=True, text=True, check=True, timeout=120
    )
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["detected"] == {"guide.adoc": "adoc", "own.shelf": "shelf", "paper.pdf": "pdf", "unnamed": "adoc"}
    assert found["pages"] == ["# Guide\n\n## Valves\n\nTurn the valve."]
    assert found["title"] == "Guide"
    assert found["shelf"] == ["books/one"]
    worker, own = found["processes"]
    assert worker != own
    assert found["by_suffix"] == "adoc"
    assert found["reader_loaded"] is False
    # A built-in name cannot be replaced, and a package that fails to load is skipped.
    assert found["pdf"] == "bedstone.ingest.formats.pdf.reader:read"
    assert found["additional"] == ["adoc", "shelf"]
    assert "Ignoring the format 'broken' of another package" in done.stderr
    assert "Ignoring the format 'nameless' of another package" in done.stderr
