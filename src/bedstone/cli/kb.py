"""`bedstone kb`: call the kb tools from the command line."""

from typing import Any

import click

from bedstone.cli.options import settings_options
from bedstone.cli.tools import call_and_print

KB_FLAGS = {"--kb-file": "kb.file_path", "--log-level": "log.level"}


@click.group
def kb() -> None:
    """Show the knowledge base file as agents see it."""


@kb.command
@settings_options(KB_FLAGS)
def info(**options: Any) -> None:
    """Print the answer of get_kb_info."""
    call_and_print("get_kb_info", {}, options | {"toolsets": "kb"})


@kb.command
@settings_options(KB_FLAGS)
def content(**options: Any) -> None:
    """Print the answer of get_kb_content."""
    call_and_print("get_kb_content", {}, options | {"toolsets": "kb"})
