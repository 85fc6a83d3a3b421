"""`bedstone install`: print or write the configuration of an MCP client."""

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from bedstone.app import choose_toolsets
from bedstone.cli.clients import CLIENTS, Client, network_entry
from bedstone.cli.jsonc import set_member
from bedstone.cli.options import CONTENT_FLAGS, configuration, serve_arguments, settings_options
from bedstone.errors import InvalidSetting
from bedstone.settings import Settings, environment_name, setting_fields

RELEASE = "bedstone[minilm,ocr]"
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@click.command(short_help="Print or write a client's MCP configuration.")
@click.argument("client", type=click.Choice(list(CLIENTS)))
@settings_options(CONTENT_FLAGS)
@click.option("--url", help="Connect to a running server, such as http://localhost:3000/mcp, instead of starting one.")
@click.option("--server-name", default="bedstone", show_default=True, help="Name of the entry.")
@click.option(
    "--scope",
    type=click.Choice(["user", "project"]),
    default="user",
    show_default=True,
    help="Your own configuration, or the file of this project that a team shares: it gets no path of this machine.",
)
@click.option("--write", is_flag=True, help="Write it into that file; everything else in it stays as it is.")
def install(client: str, *, url: str | None, server_name: str, scope: str, write: bool, **options: Any) -> None:
    """Print (or write) the configuration that connects CLIENT to Bedstone.

    Options such as --kb-file become part of the command that the client starts.
    """
    target = CLIENTS[client]
    if not NAME.fullmatch(server_name):
        raise InvalidSetting(f"Invalid server name {server_name!r}. Use letters, digits, _ and -.")
    entry = _network_entry(target, url, configuration(options).settings) if url else _command_entry(target, options)
    path = target.user_file()
    if scope == "project":
        path, entry = _project_file(target), _shareable(entry, target)
    if not write:
        click.echo(json.dumps({target.key: {server_name: entry}}, indent=2))
        click.echo(f"\nAdd this to {path}, or run the command again with --write.", err=True)
        return
    try:
        _write_entry(path.resolve(), (target.key, server_name), entry)
    except OSError as error:
        raise InvalidSetting(f"Cannot write {path}: {error.strerror}; nothing was written.") from error
    except ValueError as error:
        raise InvalidSetting(f"Cannot edit {path}: {error}; nothing was written.") from error
    click.echo(f"Added {server_name} to {path}. Restart {target.title} to use it.")


def _network_entry(target: Client, url: str, settings: Settings) -> dict[str, Any]:
    if not target.remote:
        raise InvalidSetting(f"{target.title} starts its own servers. Omit --url, or add the address in its settings.")
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise InvalidSetting(f"Invalid address {url!r}. For example: http://localhost:3000/mcp")
    return network_entry(url, guarded=settings.access_token is not None)


def _command_entry(target: Client, options: dict[str, Any]) -> dict[str, Any]:
    """Return the command for the client, with the settings from options, variables and files."""
    settings = configuration(options).settings
    choose_toolsets(settings)  # raises an error if nothing is configured
    if settings.kb.file_path and not settings.kb.file_path.exists():
        click.echo(f"Note: {settings.kb.file_path} does not exist yet.", err=True)
    entry: dict[str, Any] = {"type": "stdio"} if target.has_type else {}
    entry |= _launch_command(serve_arguments(options))
    if variables := dict(_environment(settings)):
        entry["env"] = variables
    return entry


def _environment(settings: Settings) -> Iterator[tuple[str, str]]:
    """Return the settings of this environment, without those of the network such as the token."""
    paths = {"data_dir": settings.data_dir, "kb.file_path": settings.kb.file_path}
    for key, _ in setting_fields():
        name = environment_name(key)
        if name in os.environ and not key.startswith("mcp."):
            yield name, str(paths.get(key) or os.environ[name])


def _launch_command(arguments: list[str]) -> dict[str, Any]:
    """Return the command that starts Bedstone: the one of this environment in a checkout, uvx for a release."""
    if distribution("bedstone").read_text("direct_url.json") is None:
        # Desktop programs do not know the PATH of your shell.
        return {"command": shutil.which("uvx") or "uvx", "args": ["--from", RELEASE, "bedstone", *arguments]}
    return {"command": str(Path(sys.executable).with_name("bedstone")), "args": arguments}


def _project_file(target: Client) -> Path:
    if target.project_file is None:
        raise InvalidSetting(f"{target.title} has no configuration per project. Use --scope user.")
    return Path.cwd() / target.project_file


def _shareable(entry: dict[str, Any], target: Client) -> dict[str, Any]:
    """Return an entry whose paths are inside the project and written relative to it."""

    def portable(value: str) -> str:
        path = Path(value)
        if not path.is_absolute() or path.stem == "uvx":
            return path.stem if path.stem == "uvx" else value
        if not path.is_relative_to(Path.cwd()):
            raise InvalidSetting(
                f"{value} is a path of this machine, and {target.project_file} is shared with a team. "
                "Use --scope user, or a file inside the project."
            )
        return f"{target.folder}/{path.relative_to(Path.cwd()).as_posix()}"

    shared = dict(entry)
    if "command" in entry:
        shared |= {"command": portable(entry["command"]), "args": [portable(item) for item in entry["args"]]}
    if "env" in entry:
        shared["env"] = {name: portable(value) for name, value in entry["env"].items()}
    return shared


def _write_entry(path: Path, keys: tuple[str, str], entry: dict[str, Any]) -> None:
    """Set the entry and keep every other byte, and the permissions; the first version becomes a .bak file."""
    original = path.read_bytes().decode("utf-8") if path.exists() else ""
    edited = set_member(original, keys, entry)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft, backup = path.with_name(f"{path.name}.new"), path.with_name(f"{path.name}.bak")
    draft.touch(mode=0o600)
    draft.write_bytes(edited.encode())
    if path.exists():
        shutil.copymode(path, draft)
        if not backup.exists():
            shutil.copy2(path, backup)
    draft.replace(path)
