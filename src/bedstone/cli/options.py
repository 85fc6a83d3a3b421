"""Command-line options for settings, declared once for all commands."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin

import click

from bedstone.cli.redaction import hide
from bedstone.errors import InvalidInput
from bedstone.settings import CONFIG_VARIABLE, Configuration, load_settings, local_config, setting_fields
from bedstone.user_paths import parse_path

Command = TypeVar("Command", bound=Callable[..., Any])

CONTENT_FLAGS = {
    "--toolsets": "toolsets",
    "--data-dir": "data_dir",
    "--docs-index": "docs.index",
    "--docs-dir": "docs.dir",
    "--watch": "docs.watch",
    "--tool-prefix": "docs.tool_prefix",
    "--phrase-slop": "docs.phrase_slop",
    "--proximity-weight": "docs.proximity_weight",
    "--vector-weight": "docs.vector_weight",
    "--kb-file": "kb.file_path",
    "--org": "salesforce.org",
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
    "--role": "role",
}

EMBEDDING_FLAGS = {
    "--embedding-provider": "embedding.provider",
    "--embedding-model": "embedding.model_name",
    "--embedding-dimensions": "embedding.dimensions",
    "--embedding-api-key": "embedding.api_key",
    "--embedding-base-url": "embedding.base_url",
    "--embedding-coverage": "embedding.coverage",
    "--embedding-batch-size": "embedding.batch_size",
    "--embedding-concurrency": "embedding.concurrency",
    "--embedding-max-retries": "embedding.max_retries",
    "--cache-dir": "storage.model_cache_path",
}
ALIASES = {"--docs-index": "--index-dir"}  # the name in the first implementation of the contract


class UserPath(click.Path):
    """A path on the command line; `~` and `file://` are understood even where the shell leaves them alone."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, checked as `click.Path` does."""
        text = os.fsdecode(value)
        try:
            given = str(parse_path(text)) if text.startswith("~") or text.lower().startswith("file:") else value
        except InvalidInput as error:
            self.fail(error.message, param, ctx)
        return super().convert(given, param, ctx)


def settings_options(flags: dict[str, str]) -> Callable[[Command], Command]:
    """Add an option per flag, and --config; `configuration` reads their values."""

    def decorate(command: Command) -> Command:
        for flag, key in reversed(flags.items()):
            command = _make_option(flag, key)(command)
        return click.option("--config", type=UserPath(path_type=Path), help="Configuration file to use.")(command)

    return decorate


def configuration(options: dict[str, Any]) -> Configuration:
    """Load the settings, given the options of a command."""
    keys = {_parameter(key): key for key in (SERVER_FLAGS | CONTENT_FLAGS | EMBEDDING_FLAGS).values()}
    flags = {keys[name]: value for name, value in options.items() if name in keys and value not in (None, ())}
    loaded = load_settings(flags, config=options.get("config"))
    for secret in (*loaded.settings.secrets(), os.environ.get("OPENAI_API_KEY")):
        hide(secret)
    return loaded


def serve_arguments(options: dict[str, Any]) -> list[str]:
    """Return the options of a command and the local configuration file, for a start in another folder."""
    path = options.get("config") or os.environ.get(CONFIG_VARIABLE)
    config = Path(path) if path else local_config()
    arguments = ["--config", str(config.absolute())] if config else []
    for flag, key in CONTENT_FLAGS.items():
        value = options.get(_parameter(key))
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, bool):
                arguments += [flag] if item else []
            elif item is not None:
                arguments += [flag, str(item.expanduser().absolute() if isinstance(item, Path) else item)]
    return arguments


def _make_option(flag: str, key: str) -> Callable[[Command], Command]:
    info = dict(setting_fields())[key]
    has_default = isinstance(info.default, str | int | float) and info.annotation is not bool
    help_text = f"{info.description}.{f' [default: {info.default}]' if has_default else ''}"
    names = [name for name in (flag, ALIASES.get(flag)) if name]
    if info.annotation is bool:
        return click.option(*names, _parameter(key), is_flag=True, default=None, help=help_text)
    kind, is_repeatable = _click_type(info.annotation)
    default = () if is_repeatable else None
    return click.option(*names, _parameter(key), type=kind, multiple=is_repeatable, default=default, help=help_text)


def _click_type(annotation: Any) -> tuple["click.ParamType[Any]", bool]:
    """Return the click type of a setting, and whether its option can be repeated."""
    if get_origin(annotation) is Literal:
        return click.Choice(get_args(annotation)), False
    for option in get_args(annotation) or (annotation,):
        if option is Path:
            return UserPath(path_type=Path), annotation == list[Path]
        if option in (int, float):
            return (click.INT if option is int else click.FLOAT), False
    return click.STRING, False


def _parameter(key: str) -> str:
    return key.replace(".", "_")
