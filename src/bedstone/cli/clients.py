"""MCP clients, and the configuration that connects each to a server."""

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
    """An MCP client: the files of its configuration, the key of its servers, and what its entries look like.

    `project_file` is shared with a team; `folder` is how a path of the project is written there.
    """

    title: str
    user_file: Callable[[], Path]
    place: str
    project_file: str | None = None
    folder: str = ""
    key: str = "mcpServers"
    has_type: bool = False
    remote: bool = True


def _application_support() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    if sys.platform == "win32":
        return Path(os.environ["APPDATA"])
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")


CLIENTS = {
    "claude-desktop": Client(
        "Claude Desktop",
        lambda: _application_support() / "Claude" / "claude_desktop_config.json",
        "its configuration file",
        remote=False,
    ),
    "claude-code": Client(
        "Claude Code",
        lambda: Path.home() / ".claude.json",
        "~/.claude.json, or .mcp.json in your project",
        project_file=".mcp.json",
        folder=".",
        has_type=True,
    ),
    "cursor": Client(
        "Cursor",
        lambda: Path.home() / ".cursor" / "mcp.json",
        "~/.cursor/mcp.json",
        project_file=".cursor/mcp.json",
        folder="${workspaceFolder}",
    ),
    "vscode": Client(
        "VS Code",
        lambda: _application_support() / "Code" / "User" / "mcp.json",
        "mcp.json of your profile, or .vscode/mcp.json in your project",
        project_file=".vscode/mcp.json",
        folder="${workspaceFolder}",
        key="servers",
        has_type=True,
    ),
}


def network_entry(url: str, *, kind: str = "http", guarded: bool = False) -> dict[str, Any]:
    """Return the entry for a running server, with a placeholder for the token."""
    entry: dict[str, Any] = {"type": kind, "url": url}
    return entry | {"headers": {"Authorization": "Bearer <token>"}} if guarded else entry


def snippet(entry: dict[str, Any], key: str = "mcpServers") -> str:
    """Return a complete configuration to paste."""
    return json.dumps({key: {"bedstone": entry}}, indent=2)


def client_configurations(url: str, *, guarded: bool, start: tuple[str, Sequence[str]]) -> list[tuple[str, str, str]]:
    """Return name, instruction and text to paste for each client; `start` is our program and its arguments."""
    program, arguments = start
    entry = network_entry(url, guarded=guarded)
    clients = [
        (client.title, f"Add to {client.place}:", snippet(entry, client.key))
        if client.remote
        else (
            client.title,
            f"{client.title} starts its own servers. Run on this machine, with the settings of this server:",
            shlex.join((program, "install", name, "--write", *arguments)),
        )
        for name, client in CLIENTS.items()
    ]
    return [*clients, ("Other clients", "Add to the MCP configuration, or use the address only:", snippet(entry))]
