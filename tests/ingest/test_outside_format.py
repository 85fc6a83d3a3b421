"""A format that another package installs is detected, read in the worker process, and searchable."""

import json
import os
import subprocess
import sysconfig
import venv
from pathlib import Path
from typing import Any

import pytest

DECLARATION = """
import re

from bedstone.ingest.format import Format

ADOC = Format(
    name="adoc",
    reader="adoc.reader:read",
    suffixes=(".adoc",),
    media_type="text/asciidoc",
    magic=(b"//adoc",),
)
SHELF = Format(
    name="shelf",
    reader="adoc.reader:read_shelf",
    suffixes=(".shelf",),
    media_type="application/zip",
    zip_member="books/",
)
NEWER_PDF = Format(name="pdf", reader="adoc.reader:read", suffixes=(".pdf",), media_type="application/pdf")
"""
READER = """
import os
import zipfile

from bedstone.ingest.encodings import decode
from bedstone.ingest.extraction import Page

PROCESS = os.getpid()


def read(path, options, notes):
    title, _, text = decode(path.read_bytes(), notes).partition("\\n")
    notes.learn("title", title.strip("= "))
    notes.learn("process", PROCESS)
    yield Page("# " + title.strip("= ") + "\\n\\n" + text.strip())


def read_shelf(path, options, notes):
    with zipfile.ZipFile(path) as archive:
        for number, name in enumerate(archive.namelist(), start=1):
            yield Page(name, number)
"""
ENTRY_POINTS = """
[bedstone.formats]
adoc = adoc:ADOC
shelf = adoc:SHELF
pdf = adoc:NEWER_PDF
broken = adoc.missing:FORMAT
nameless = adoc:re
"""
PROGRAM = """
import json, os, sys, zipfile
from pathlib import Path
from bedstone.ingest.detection import detect, find_format, format_of, supported_formats
from bedstone.ingest.reader import read_whole
from bedstone.services.knowledge.errors import unsupported

folder = Path(sys.argv[1])
(folder / "guide.adoc").write_text("= Guide\\n\\nTurn the valve.")
(folder / "unnamed").write_text("//adoc\\ntext")
with zipfile.ZipFile(folder / "own.shelf", "w") as archive:
    archive.writestr("books/one", "")
(folder / "paper.pdf").write_bytes(b"%PDF-")
pages, notes = read_whole(folder / "guide.adoc")
print(json.dumps({
    "detected": {path.name: detect(path) for path in sorted(folder.iterdir())},
    "pages": [page.markdown for page in pages],
    "shelf": [page.markdown for page in read_whole(folder / "own.shelf")[0]],
    "metadata": notes.metadata | {"own": str(os.getpid())},
    "by_suffix": format_of("GUIDE.ADOC"),
    "pdf": find_format("pdf").reader,
    "additional": unsupported(".exe").details["additional_formats"][-3:],
    "reader_loaded": "adoc.reader" in sys.modules,
}))
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the packages of this one and the outside package: the worker ignores PYTHONPATH."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=os.name != "nt")
    site = Path(sysconfig.get_path("purelib", "venv", vars={"base": str(folder), "platbase": str(folder)}))
    (site / "here.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    (site / "adoc").mkdir()
    (site / "adoc" / "__init__.py").write_text(DECLARATION)
    (site / "adoc" / "reader.py").write_text(READER)
    information = site / "adoc-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: adoc\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(ENTRY_POINTS)
    return Path(sysconfig.get_path("scripts", "venv", vars={"base": str(folder)})) / "python"


def run(*command: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=True, timeout=120)


def test_a_format_of_another_package_is_read_end_to_end(python: Path, tmp_path: Path) -> None:
    done = run(python, "-c", PROGRAM, tmp_path)
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["detected"] == {"guide.adoc": "adoc", "own.shelf": "shelf", "paper.pdf": "pdf", "unnamed": "adoc"}
    assert found["pages"] == ["# Guide\n\nTurn the valve."]
    assert found["shelf"] == ["books/one"]
    assert found["metadata"]["title"] == "Guide"
    assert found["metadata"]["process"] != found["metadata"]["own"]
    assert found["by_suffix"] == "adoc"
    assert found["reader_loaded"] is False
    # A built-in name cannot be replaced, and a package that fails to load is skipped.
    assert found["pdf"] == "bedstone.ingest.formats.pdf.reader:read"
    assert found["additional"] == ["odt", "adoc", "shelf"]
    assert "Ignoring the format 'broken' of another package" in done.stderr
    assert "Ignoring the format 'nameless' of another package" in done.stderr


def test_its_files_are_added_and_found(python: Path, tmp_path: Path) -> None:
    (tmp_path / "guide.adoc").write_text("= Guide\n\nTurn the valve before the tide.")
    data = ("--data-dir", tmp_path / "data")
    run(python, "-m", "bedstone", "knowledge", "add", tmp_path / "guide.adoc", *data)
    hits = run(python, "-m", "bedstone", "knowledge", "search", "valve", "--json", *data)
    assert "Turn the valve before the tide." in hits.stdout
