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
    """An MCP client: the path of its configuration, the text that describes it, and the key of its servers."""

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
