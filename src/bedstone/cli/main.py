"""The `bedstone` command; each subcommand is imported when it is used."""

import sys
from difflib import get_close_matches
from importlib import import_module

import click

from bedstone import __version__
from bedstone.cli.startup import collection_paused
from bedstone.errors import BedstoneError
from bedstone.permissions import create_private_files

COMMANDS = {
    "serve": "bedstone.cli.serve:serve",
    "work": "bedstone.cli.work:work",
    "status": "bedstone.cli.status:status",
    "search": "bedstone.cli.search:search",
    "tools": "bedstone.cli.tools:tools",
    "knowledge": "bedstone.cli.knowledge:knowledge",
    "docs": "bedstone.cli.docs:docs",
    "kb": "bedstone.cli.kb:kb",
    "salesforce": "bedstone.cli.salesforce:salesforce",
    "eval": "bedstone.cli.evaluate:evaluation",
    "tune": "bedstone.cli.tune:tune",
    "migrate-data": "bedstone.cli.migrate:migrate_data",
    "settings": "bedstone.cli.settings:settings",
    "doctor": "bedstone.cli.doctor:doctor",
    "install": "bedstone.cli.install:install",
}


class Bedstone(click.Group):
    """Imports commands on demand, runs `serve` by default, and prints our errors without a traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the commands, the most needed first."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command."""
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        with collection_paused():
            command = getattr(import_module(module), name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggest a command for a misspelled name; click only knows those already imported."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            near = get_close_matches(args[0], COMMANDS, n=1)
            guess = f" Did you mean {near[0]!r}?" if near else ""
            raise click.UsageError(f"No such command {args[0]!r}.{guess}", ctx) from None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Run `serve` for options without a command and for a pipe; show the help on a terminal."""
        if not args:
            args = ["--help"] if sys.stdin.isatty() else ["serve"]
        elif args[0].startswith("-") and args[0] not in ("--help", "-h", "--version"):
            args = ["serve", *args]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; print an expected error as one line, without a traceback."""
        try:
            return super().invoke(ctx)
        except BedstoneError as error:
            raise click.ClickException(error.message) from error
        except OSError as error:
            if error.filename is None or isinstance(error, BrokenPipeError):
                raise
            raise click.ClickException(f"{error.filename}: {error.strerror}") from error


@click.group(cls=Bedstone, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="bedstone")
def main() -> None:
    """Solid ground for agents: one knowledge server over the Model Context Protocol.

    Without a command, serve over standard input and output, as MCP clients expect.
    """
    create_private_files()


def serve_toolset(label: str) -> None:
    """Serve one toolset, with the options of `bedstone serve`."""
    main(["serve", "--toolsets", label, *sys.argv[1:]], prog_name=f"bedstone.mcp_servers.{label}.server")
