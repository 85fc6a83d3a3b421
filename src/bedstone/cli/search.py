"""`bedstone search`: search everything, as agents do."""

import json
from typing import TYPE_CHECKING, Any

import click

from bedstone.app import App, build_toolset
from bedstone.cli.options import CONTENT_FLAGS, settings_options
from bedstone.cli.running import with_app
from bedstone.services.catalog import STEP
from bedstone.toolkit import Reply

if TYPE_CHECKING:
    from rich.console import Console

BAND_STYLES = {"strong": "bold green", "good": "green", "weak": "dim"}


@click.command
@click.argument("query", nargs=-1, required=True)
@settings_options(CONTENT_FLAGS)
@click.option("--in", "source", metavar="SOURCE", help="Search one source, such as documents or schema.")
@click.option("--limit", type=click.IntRange(1, 50), default=8, show_default=True, help="Maximum number of results.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer that agents get.")
def search(query: tuple[str, ...], *, source: str | None, limit: int, as_json: bool, **options: Any) -> None:
    """Search documents, documentation, articles, the knowledge file and the schema at once."""
    arguments = {"query": " ".join(query), "source": source, "limit": limit}

    async def ask(app: App) -> Reply:
        toolset = app.toolsets.get("everything") or build_toolset("everything", app.settings, app.services)
        return await toolset.call("search", arguments)

    reply = with_app(options, ask)
    if reply.is_error or not isinstance(reply.payload, dict):
        raise click.ClickException(_message(reply))
    if as_json:
        click.echo(json.dumps(reply.payload, indent=2, ensure_ascii=False))
        return
    from bedstone.cli.progress import console

    _print(reply.payload, console())


def _message(reply: Reply) -> str:
    return str(reply.payload["message"]) if isinstance(reply.payload, dict) else reply.text


def _print(answer: dict[str, Any], console: "Console") -> None:
    """Print each result with where it stands and how sure it is."""
    from rich.text import Text

    for number, item in enumerate(answer["results"], 1):
        line = Text(f"{number}. {item['title']}", style="bold")
        line.append(f"  {item['band']} {item['score']:.2f}", style=BAND_STYLES[item["band"]])
        console.print(line)
        console.print(Text(f"   {item['source']}{STEP}{item.get('location') or item['title']}", style="dim"))
        console.print(Text(f"   {item['snippet']}"))
        console.print(Text(f"   {item['id']}", style="cyan"))
    for key in ("message", "notice"):
        if answer.get(key):
            console.print(Text(answer[key]))
    if left_out := answer.get("weak_results_left_out"):
        console.print(Text(f"{left_out} weak results are not shown.", style="dim"))
