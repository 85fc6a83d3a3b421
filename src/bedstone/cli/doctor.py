"""`bedstone doctor`: check what the server needs, and say what to do about what is missing."""

import json
import platform
import socket
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Literal

import click

from bedstone import __version__
from bedstone.app import chosen_toolsets
from bedstone.cli.logs import configure_logging
from bedstone.cli.options import CONTENT_FLAGS, SERVER_FLAGS, configuration, settings_options
from bedstone.errors import BedstoneError
from bedstone.settings import LogSettings, Settings

MARKS = {"ok": "[green]ok[/green]", "note": "[yellow]note[/yellow]", "problem": "[red]problem[/red]"}


@dataclass(frozen=True)
class Finding:
    """One thing looked at, and what to do about it."""

    subject: str
    verdict: Literal["ok", "note", "problem"]
    message: str


@click.command(short_help="Check settings, folders and optional parts.")
@settings_options(CONTENT_FLAGS | SERVER_FLAGS)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor(*, as_json: bool, **options: Any) -> None:
    """Check settings, folders and optional parts; the exit code is 1 if something must be mended."""
    configure_logging(LogSettings(level="error"))
    findings = list(examine(options))
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        _print(findings)
    sys.exit(any(finding.verdict == "problem" for finding in findings))


def examine(options: dict[str, Any]) -> Iterator[Finding]:
    """Look at everything, in the order one would mend it."""
    yield Finding("bedstone", "ok", f"{__version__} on Python {platform.python_version()}, mcp {version('mcp')}")
    try:
        settings = configuration(options).settings
        yield Finding("settings", "ok", "valid; `bedstone settings` shows them")
        yield Finding("toolsets", "ok", ", ".join(chosen_toolsets(settings)))
    except BedstoneError as error:
        yield Finding("settings", "problem", error.message)
        return
    yield _data_folder(settings.data_folder)
    yield _kb(settings)
    yield from _network(settings)


def _data_folder(folder: Path) -> Finding:
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    try:
        TemporaryFile(dir=existing).close()
    except OSError as error:
        reason = f"{folder} cannot be written ({error.strerror}). Choose another with --data-dir."
        return Finding("data folder", "problem", reason)
    return Finding("data folder", "ok", f"{folder}{'' if folder.exists() else ' (made when first needed)'}")


def _kb(settings: Settings) -> Finding:
    from bedstone.toolsets.kb.text_file import TextFile

    path = settings.kb.file_path
    if path is None:
        return Finding("kb file", "note", "Not configured. Serve a text file with --kb-file FILE.")
    file = TextFile(path).load()
    if file.problem:
        return Finding("kb file", "problem", file.problem)
    return Finding("kb file", "ok", f"{path}, {file.size_bytes} bytes")


def _network(settings: Settings) -> Iterator[Finding]:
    from bedstone.transports.access import Access

    mcp = settings.mcp
    try:
        Access.for_address(mcp.host, allowed_hosts=mcp.allowed_hosts, token=settings.access_token)
        yield Finding("access", "ok", "with a token" if settings.access_token else "this machine only")
    except BedstoneError as error:
        yield Finding("access", "problem", error.message)
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", mcp.port)) == 0:
            yield Finding("port", "note", f"Something already listens on {mcp.port}. Choose another with --port.")
        else:
            yield Finding("port", "ok", f"{mcp.port} is free")


def _print(findings: list[Finding]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_header=False)
    for finding in findings:
        table.add_row(MARKS[finding.verdict], finding.subject, finding.message)
    Console().print(table)
