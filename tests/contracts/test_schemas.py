"""Tool names and schemas are the public API: every change of them must be visible in a diff.

`UPDATE_SNAPSHOTS=1 make test` writes the snapshots again.
"""

import json
import os
from pathlib import Path

import pytest

from bedstone.app import build_toolset
from bedstone.server.tools import definition
from bedstone.services.docs.builder import BuildOptions, DocsBuilder
from bedstone.settings import Settings
from bedstone.toolsets import TOOLSETS

SNAPSHOTS = Path(__file__).with_name("schemas")


@pytest.mark.parametrize("label", TOOLSETS.builtin)
def test_the_tools_are_what_they_were(label: str, tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    DocsBuilder(tmp_path / "source", tmp_path / "index", None, BuildOptions(), lambda *_: None).build()
    settings = Settings.model_validate({"docs": {"index": tmp_path / "index"}})
    tools = build_toolset(label, settings).tools.values()
    listed = [definition(tool).model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]
    snapshot = SNAPSHOTS / f"{label}.json"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        snapshot.write_text(json.dumps(listed, indent=2) + "\n")
    assert listed == json.loads(snapshot.read_text())
