"""`bedstone knowledge`: files people add."""

import json
from pathlib import Path

import click


@click.group
def knowledge() -> None:
    """Read files as the server would."""


@knowledge.command
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print text, pages, error and warnings as JSON.")
@click.option("--password", help="For a file that needs one.")
@click.option("--force-ocr", is_flag=True, help="Read pages as pictures, also where they have text.")
def extract(file: Path, as_json: bool, password: str | None, force_ocr: bool) -> None:
    """Print what would be read of a file, without adding it."""
    from bedstone.ingest.extraction import ReadOptions, Unreadable
    from bedstone.ingest.reader import read_whole

    options = ReadOptions(password=password, force_ocr=force_ocr)
    try:
        pages, notes = read_whole(file, options)
    except Unreadable as error:
        if not as_json:
            raise click.ClickException(error.message) from None
        click.echo(json.dumps({"markdown": "", "pages": None, "error": error.message, "warnings": []}))
        return
    text = "\n\n".join(page.markdown for page in pages)
    if not as_json:
        click.echo(text)
        for warning in notes.warnings:
            click.echo(f"Warning: {warning}", err=True)
        return
    numbered = [page.markdown for page in pages] if pages and pages[0].number is not None else None
    answer = {"markdown": text, "pages": numbered, "error": None, "warnings": notes.warnings}
    click.echo(json.dumps(answer, ensure_ascii=False))
