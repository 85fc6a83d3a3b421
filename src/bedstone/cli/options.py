"""Settings as command-line options, declared once for every command that needs them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin

import click

from bedstone.settings import Configuration, load_settings, local_config, setting_fields

Command = TypeVar("Command", bound=Callable[..., Any])

CONTENT_FLAGS = {
    "--toolsets": "toolsets",
    "--data-dir": "data_dir",
    "--docs-index": "docs.index",
    "--kb-file": "kb.file_path",
    "--read-only": "read_only",
    "--log-level": "log.level",
    "--log-format": "log.format",
}
SERVER_FLAGS = {
    "--transport": "mcp.transport",
    "--host": "mcp.host",
    "--port": "mcp.port",
    "--token-file": "mcp.token_file",
    "--name": "name",
}


def settings_options(flags: dict[str, str]) -> Callable[[Command], Command]:
    """Add an option per flag, and --config; `configuration` reads them back."""

    def decorate(command: Command) -> Command:
        for flag, key in reversed(flags.items()):
            command = _option(flag, key)(command)
        return click.option("--config", type=click.Path(path_type=Path), help="Configuration file to use.")(command)

    return decorate


def configuration(options: dict[str, Any]) -> Configuration:
    """The settings in force, given a command's options."""
    keys = {_parameter(key): key for key in (SERVER_FLAGS | CONTENT_FLAGS).values()}
    flags = {keys[name]: value for name, value in options.items() if name in keys and value is not None}
    return load_settings(flags, config=options.get("config"))


def given_arguments(options: dict[str, Any]) -> list[str]:
    """What a user gave, and the local configuration file, as arguments for a start in another folder."""
    config = options.get("config") or local_config()
    arguments = ["--config", str(config.absolute())] if config else []
    for flag, key in CONTENT_FLAGS.items():
        value = options.get(_parameter(key))
        if isinstance(value, bool):
            arguments += [flag] if value else []
        elif value is not None:
            arguments += [flag, str(value.expanduser().absolute() if isinstance(value, Path) else value)]
    return arguments


def _option(flag: str, key: str) -> Callable[[Command], Command]:
    info = dict(setting_fields())[key]
    default = (
        f" [default: {info.default}]" if isinstance(info.default, str | int) and info.annotation is not bool else ""
    )
    help_text = f"{info.description}.{default}"
    if info.annotation is bool:
        return click.option(flag, _parameter(key), is_flag=True, default=None, help=help_text)
    kind: click.ParamType[Any] = click.STRING
    if get_origin(info.annotation) is Literal:
        kind = click.Choice(get_args(info.annotation))
    elif info.annotation is int:
        kind = click.INT
    elif info.annotation == (Path | None):
        kind = click.Path(path_type=Path)
    return click.option(flag, _parameter(key), type=kind, default=None, help=help_text)


def _parameter(key: str) -> str:
    return key.replace(".", "_")
