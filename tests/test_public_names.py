"""What other packages may rely on."""

from pathlib import Path

import bedstone
import bedstone.toolkit

ROOT = Path(__file__).resolve().parents[1]


def test_the_version_is_the_newest_of_the_changes() -> None:
    newest = next(line for line in (ROOT / "CHANGELOG.md").read_text().splitlines() if line.startswith("## "))
    assert newest.split()[1] == bedstone.__version__


def test_the_toolkit_offers_what_a_toolset_needs() -> None:
    assert sorted(bedstone.toolkit.__all__) == [
        "Arguments",
        "Audio",
        "Content",
        "Embedded",
        "Image",
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
