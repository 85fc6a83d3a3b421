"""`bedstone install`: print or write the configuration of an MCP client."""

import json
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import click

from bedstone.cli.options import CONTENT_FLAGS, SERVER_FLAGS, given_arguments, settings_options
from bedstone.errors import InvalidSetting


@dataclass(frozen=True)
class Client:
    """An MCP client: where its configuration lives, and under which key servers stand."""

    title: str
    path: Callable[[], Path]
    key: str = "mcpServers"


def _claude_desktop() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "Claude" / "claude_desktop_config.json"
    if sys.platform == "win32":
        return Path(os.environ["APPDATA"]) / "Claude" / "claude_desktop_config.json"
    return Path.home() / ".config" / "Claude" / "claude_desktop_config.json"


CLIENTS = {
    "claude-desktop": Client("Claude Desktop", _claude_desktop),
    "claude-code": Client("Claude Code", lambda: Path.cwd() / ".mcp.json"),
    "cursor": Client("Cursor", lambda: Path.home() / ".cursor" / "mcp.json"),
    "vscode": Client("VS Code", lambda: Path.cwd() / ".vscode" / "mcp.json", key="servers"),
}


@click.command(short_help="Print or write a client's MCP configuration.")
@click.argument("client", type=click.Choice(list(CLIENTS)))
@settings_options(CONTENT_FLAGS | SERVER_FLAGS)
@click.option("--url", help="Connect to a running server, such as http://localhost:3000/mcp, instead of starting one.")
@click.option("--server-name", default="bedstone", show_default=True, help="Name of the entry.")
@click.option("--write", is_flag=True, help="Write it into the client's configuration file; other entries are kept.")
def install(client: str, *, url: str | None, server_name: str, write: bool, **options: Any) -> None:
    """Print (or write) the configuration that connects CLIENT to Bedstone.

    Options such as --kb-file become part of the command that the client starts.
    """
    target = CLIENTS[client]
    entry = {"type": "http", "url": url} if url else _command(given_arguments(options))
    fragment = {target.key: {server_name: entry}}
    if not write:
        click.echo(json.dumps(fragment, indent=2))
        click.echo(f"\nGoes into {target.path()}; --write puts it there.", err=True)
        return
    path = target.path()
    _write(path, _merge(_read(path), fragment))
    click.echo(f"Wrote {server_name} into {path}. Restart {target.title} to use it.")


def _command(arguments: list[str]) -> dict[str, Any]:
    """What starts Bedstone where this runs: this environment's own command in a checkout, uvx for a release."""
    if distribution("bedstone").read_text("direct_url.json") is None:
        return {"command": "uvx", "args": ["bedstone", *arguments]}
    return {"command": str(Path(sys.executable).with_name("bedstone")), "args": arguments}


def _read(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8") or "{}")
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise InvalidSetting(f"{path} is not valid JSON ({error}); nothing was written.") from error
    if not isinstance(document, dict):
        raise InvalidSetting(f"{path} does not hold a JSON object; nothing was written.")
    return document


def _merge(document: dict[str, Any], fragment: dict[str, Any]) -> dict[str, Any]:
    return document | {key: (document.get(key) or {}) | servers for key, servers in fragment.items()}


def _write(path: Path, document: dict[str, Any]) -> None:
    """Replace the file whole, keeping the old one beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        shutil.copy2(path, path.with_suffix(".json.bak"))
    draft = path.with_suffix(".json.new")
    draft.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    draft.replace(path)
