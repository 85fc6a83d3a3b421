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
from bedstone.cli.options import CONTENT_FLAGS, configuration, serve_arguments, settings_options
from bedstone.errors import InvalidSetting
from bedstone.settings import Settings, environment_name, setting_fields

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@click.command(short_help="Print or write a client's MCP configuration.")
@click.argument("client", type=click.Choice(list(CLIENTS)))
@settings_options(CONTENT_FLAGS)
@click.option("--url", help="Connect to a running server, such as http://localhost:3000/mcp, instead of starting one.")
@click.option("--server-name", default="bedstone", show_default=True, help="Name of the entry.")
@click.option("--write", is_flag=True, help="Write it into the client's configuration file; other entries stay.")
def install(client: str, *, url: str | None, server_name: str, write: bool, **options: Any) -> None:
    """Print (or write) the configuration that connects CLIENT to Bedstone.

    Options such as --kb-file become part of the command that the client starts.
    """
    target = CLIENTS[client]
    if not NAME.fullmatch(server_name):
        raise InvalidSetting(f"Invalid server name {server_name!r}. Use letters, digits, _ and -.")
    entry = _network_entry(target, url, configuration(options).settings) if url else _command_entry(options)
    fragment = {target.key: {server_name: entry}}
    path = target.path()
    if not write:
        click.echo(json.dumps(fragment, indent=2))
        click.echo(f"\nAdd this to {path}, or run the command again with --write.", err=True)
        return
    try:
        _replace_file(path.resolve(), _merge(path, _read_configuration(path), fragment))
    except OSError as error:
        raise InvalidSetting(f"Cannot write {path}: {error.strerror}.") from error
    click.echo(f"Added {server_name} to {path}. Restart {target.title} to use it.")


def _network_entry(target: Client, url: str, settings: Settings) -> dict[str, Any]:
    if not target.remote:
        raise InvalidSetting(f"{target.title} starts its own servers. Omit --url, or add the address in its settings.")
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise InvalidSetting(f"Invalid address {url!r}. For example: http://localhost:3000/mcp")
    return network_entry(url, guarded=settings.access_token is not None)


def _command_entry(options: dict[str, Any]) -> dict[str, Any]:
    """Return the command for the client, with the settings from options, variables and files."""
    settings = configuration(options).settings
    choose_toolsets(settings)  # raises an error if nothing is configured
    if settings.kb.file_path and not settings.kb.file_path.exists():
        click.echo(f"Note: {settings.kb.file_path} does not exist yet.", err=True)
    entry = _launch_command(serve_arguments(options))
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
        return {"command": "uvx", "args": ["bedstone", *arguments]}
    return {"command": str(Path(sys.executable).with_name("bedstone")), "args": arguments}


def _read_configuration(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8") or "{}")
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise InvalidSetting(f"Cannot read {path}: {error.strerror}; nothing was written.") from error
    except ValueError as error:
        raise InvalidSetting(f"{path} is not valid JSON ({error}); nothing was written.") from error
    if not isinstance(document, dict):
        raise InvalidSetting(f"{path} is not a JSON object; nothing was written.")
    return document


def _merge(path: Path, document: dict[str, Any], fragment: dict[str, Any]) -> dict[str, Any]:
    for key, servers in fragment.items():
        present = document.get(key, {})
        if not isinstance(present, dict):
            raise InvalidSetting(f"{key!r} in {path} is not an object; nothing was written.")
        document = document | {key: present | servers}
    return document


def _replace_file(path: Path, document: dict[str, Any]) -> None:
    """Replace the file atomically and keep its permissions; the first version becomes a .bak file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft, original = path.with_suffix(".json.new"), path.with_suffix(".json.bak")
    draft.touch(mode=0o600)
    draft.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    if path.exists():
        shutil.copymode(path, draft)
        if not original.exists():
            shutil.copy2(path, original)
    draft.replace(path)
