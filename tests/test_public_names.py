"""What other packages may rely on."""

import re
from pathlib import Path

import bedstone
import bedstone.toolkit

ROOT = Path(__file__).resolve().parents[1]


def test_the_version_is_the_newest_of_the_changes() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").partition("\n## [")[2]
    newest = re.search(r"\d+\.\d+\.\d+", changes)  # a heading, or what "Unreleased" announces
    assert newest
    assert newest[0] == bedstone.__version__


def test_the_toolkit_offers_what_a_toolset_needs() -> None:
    assert sorted(bedstone.toolkit.__all__) == [
        "Arguments",
        "Audio",
        "Citation",
        "Content",
        "Embedded",
        "Image",
        "Links",
        "NavigationItem",
        "NoArguments",
        "Progress",
        "Prompt",
        "PromptArgument",
        "PromptMessage",
        "Reply",
        "Resource",
        "ResourceContents",
        "ResourceTemplate",
        "Result",
        "TaskView",
        "Text",
        "Tool",
        "Toolset",
        "ToolsetContext",
        "ToolsetSpec",
        "tool",
    ]
