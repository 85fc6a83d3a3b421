"""MCP clients, and how their configuration names a server."""

import json
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Client:
    """An MCP client: where its configuration lives, here and in words, and under which key servers stand."""

    title: str
    path: Callable[[], Path]
    place: str
    key: str = "mcpServers"
    remote: bool = True


def _claude_desktop() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "Claude" / "claude_desktop_config.json"
    if sys.platform == "win32":
        return Path(os.environ["APPDATA"]) / "Claude" / "claude_desktop_config.json"
    return Path.home() / ".config" / "Claude" / "claude_desktop_config.json"


CLIENTS = {
    "claude-desktop": Client("Claude Desktop", _claude_desktop, "its configuration file", remote=False),
    "claude-code": Client("Claude Code", lambda: Path.cwd() / ".mcp.json", ".mcp.json in your project"),
    "cursor": Client("Cursor", lambda: Path.home() / ".cursor" / "mcp.json", "~/.cursor/mcp.json"),
    "vscode": Client(
        "VS Code", lambda: Path.cwd() / ".vscode" / "mcp.json", ".vscode/mcp.json in your project", key="servers"
    ),
}


def network_entry(url: str, *, kind: str = "http", guarded: bool = False) -> dict[str, Any]:
    """The entry for a server that is already running; the token stays a blank to fill in."""
    entry: dict[str, Any] = {"type": kind, "url": url}
    return entry | {"headers": {"Authorization": "Bearer <token>"}} if guarded else entry


def snippet(entry: dict[str, Any], key: str = "mcpServers") -> str:
    """A whole configuration to paste."""
    return json.dumps({key: {"bedstone": entry}}, indent=2)


def configurations(url: str, *, guarded: bool, start: tuple[str, Sequence[str]]) -> list[tuple[str, str, str]]:
    """For each client its name, what to do, and what to paste there; `start` is our program and what it was given."""
    program, given = start
    entry = network_entry(url, guarded=guarded)
    made = [
        (client.title, f"Into {client.place}:", snippet(entry, client.key))
        if client.remote
        else (
            client.title,
            "It starts its servers itself. On this machine, with this server's settings:",
            shlex.join((program, "install", name, "--write", *given)),
        )
        for name, client in CLIENTS.items()
    ]
    return [*made, ("Others", "Their MCP configuration, or the address alone:", snippet(entry))]
