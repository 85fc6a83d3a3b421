"""MCP clients, and the configuration that connects each to a server."""

import json
import os
import shlex
import sys
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

if TYPE_CHECKING:  # `bedstone install` needs no pages
    from bedstone.web.frame import ClientSetup


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


def client_setups(url: str, *, guarded: bool, start: tuple[str, Sequence[str]]) -> "list[ClientSetup]":
    """Return how to connect each client to a running server; `start` is our program and its arguments."""
    from bedstone.web.frame import ClientSetup

    entry = network_entry(url, guarded=guarded)
    header = ' --header "Authorization: Bearer <token>"' if guarded else ""
    program, arguments = start
    install = shlex.join((program, "install", "claude-desktop", "--write", *arguments))
    # A link cannot ask for the token, so it would install a client that is refused.
    cursor, vscode = ("", "") if guarded else (_cursor_link(url), _vscode_link(url))
    return [
        ClientSetup("claude-desktop", "Claude Desktop", "It starts its own server. Run this on this machine:", install),
        ClientSetup(
            "claude-code", "Claude Code", "Run this:", f"claude mcp add --transport http bedstone {url}{header}"
        ),
        ClientSetup(
            "cursor", "Cursor", "Paste into ~/.cursor/mcp.json:", snippet({"url": url} | _headers(entry)), cursor
        ),
        ClientSetup("vscode", "VS Code", "Paste into mcp.json of your profile:", snippet(entry, "servers"), vscode),
        ClientSetup("codex", "Codex", "Paste into ~/.codex/config.toml:", _codex_section(url, guarded=guarded)),
        ClientSetup(
            "gemini",
            "Gemini CLI",
            "Run this:",
            f"gemini mcp add -s user -t http{_gemini_header(header)} bedstone {url}",
        ),
        ClientSetup(
            "chatgpt",
            "ChatGPT",
            "ChatGPT connects from its own network. Give this server a public https address, set mcp.public_url to it, "
            "and add this under Settings, Plugins, with developer mode on. It uses search and fetch:",
            _public(url),
        ),
        ClientSetup("other", "Other", "Paste into the MCP configuration, or use the address only:", snippet(entry)),
    ]


def _headers(entry: dict[str, Any]) -> dict[str, Any]:
    return {"headers": entry["headers"]} if "headers" in entry else {}


def _cursor_link(url: str) -> str:
    config = b64encode(json.dumps({"url": url}).encode()).decode()
    return f"cursor://anysphere.cursor-deeplink/mcp/install?{urlencode({'name': 'bedstone', 'config': config})}"


def _vscode_link(url: str) -> str:
    return f"vscode:mcp/install?{quote(json.dumps({'name': 'bedstone', 'type': 'http', 'url': url}))}"


def _codex_section(url: str, *, guarded: bool) -> str:
    token = '\nbearer_token_env_var = "BEDSTONE_TOKEN"' if guarded else ""
    return f'[mcp_servers.bedstone]\nurl = "{url}"{token}'


def _gemini_header(header: str) -> str:
    return header.replace("--header", "-H")


def _public(url: str) -> str:
    """Return an address that ChatGPT can reach, as an example unless it is one already."""
    parts = urlsplit(url)
    return url if parts.scheme == "https" else f"https://kb.example.org{parts.path.removesuffix('/mcp')}/everything/mcp"
