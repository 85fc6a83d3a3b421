"""`bedstone eval`: measure search quality."""

import json
import shlex
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

import click

from bedstone.cli.options import UserPath, configuration, settings_options
from bedstone.errors import InvalidInput, Unavailable
from bedstone.evaluation.history import save_run
from bedstone.permissions import user_permissions
from bedstone.search.hits import MODES_BY_NAME, Mode

EVALUATION_FLAGS = {"--data-dir": "data_dir"}
CASES = click.option(
    "--cases", "cases_file", required=True, type=UserPath(exists=True, dir_okay=False, path_type=Path),
    help="JSON list of cases: query, expectedChunkId or expectedFiles, filters, category.",
)  # fmt: skip
OUTPUT_FILE = UserPath(dir_okay=False, path_type=Path)
INPUT_FILE = UserPath(exists=True, dir_okay=False, path_type=Path)


class SearchMode(click.Choice[Mode]):
    """Accepts the earlier names of the modes too."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Mode:
        return super().convert(MODES_BY_NAME.get(value, value), param, ctx)


@click.group("eval")
def evaluation() -> None:
    """Measure search quality."""


@evaluation.command
@click.argument("folder", type=UserPath(exists=True, file_okay=False, path_type=Path))
@click.option("--mode", type=SearchMode(get_args(Mode)), default="hybrid", show_default=True)
@click.option("--json", "json_file", type=OUTPUT_FILE, help="Write the results to this file.")
@settings_options(EVALUATION_FLAGS)
def beir(folder: Path, mode: Mode, json_file: Path | None, **options: Any) -> None:
    """Evaluate a labelled set in BEIR layout: corpus.jsonl, queries.jsonl, qrels/test.tsv."""
    from bedstone.app import make_services
    from bedstone.evaluation.beir import LabelledSet, build_retriever, evaluate

    labelled = LabelledSet.read(folder)
    settings = configuration(options).settings
    services = make_services(settings)
    embedder = None if mode == "keyword" else services.context.embedders.get()
    with click.progressbar(length=len(labelled.documents), label="Embedding", file=sys.stderr) as bar:
        retriever = build_retriever(labelled, embedder, bar.update)
    figures = {name: round(value, 4) for name, value in evaluate(labelled, retriever, mode).items()}
    quality = {name: value for name, value in figures.items() if "@" in name}
    save_run({"name": f"{folder.resolve().name}, {mode}", "quality": quality}, settings.data_folder)
    text = json.dumps({"set": folder.name, "mode": mode} | figures)
    if json_file:
        _write(json_file, text + "\n")
    click.echo(text)


@evaluation.command("run", context_settings={"ignore_unknown_options": True})
@CASES
@click.option("--server-command", help="Command of the server as one string, instead of COMMAND.")
@click.option("--server-arg", "server_arguments", multiple=True, help="Argument for --server-command; can be repeated.")
@click.option("--url", help="Address of a running server, instead of a command.")
@click.option("--pid", type=int, help="Process id of that server, to measure CPU and memory.")
@click.option("--token-file", type=INPUT_FILE, help="File with the access token of that server.")
@click.option("--build-command", help="Command to run first and to measure.")
@click.option("--warmup-queries", type=int, default=20, show_default=True, help="Number of searches before measuring.")
@click.option("--repeat", type=click.IntRange(1), default=1, show_default=True, help="Times to run all cases.")
@click.option("--file-level", is_flag=True, help="Count any chunk of an expected file as a hit.")
@click.option("--no-filters", is_flag=True, help="Ignore the filters of the cases.")
@click.option("--baseline", type=INPUT_FILE, help="Run to compare with; prints a Markdown table.")
@click.option("--json", "--out", "json_file", type=OUTPUT_FILE, help="Write the results to this file.")
@click.option("--name", help="Name of the run.  [default: name of the cases file]")
@click.argument("command", nargs=-1)
@settings_options(EVALUATION_FLAGS)
def run(cases_file: Path, baseline: Path | None, json_file: Path | None, name: str | None, **options: Any) -> None:
    """Run cases against any MCP server with search_docs and get_doc: COMMAND after --, or --url.

    Prints the results as JSON, or with --baseline a comparison. Every run is saved in the data folder.
    """
    from bedstone.evaluation.cases import read_cases
    from bedstone.evaluation.report import compare_runs

    cases = read_cases(cases_file, filters=not options["no_filters"])
    build = _measure_build(options["build_command"]) if options["build_command"] else {}
    report = _run(cases, options) | build
    title = name or cases_file.name.removesuffix(".json").removesuffix(".cases")
    report = save_run({"name": title, **report}, configuration(options).settings.data_folder)
    text = json.dumps(report, indent=1, ensure_ascii=False) + "\n"
    for message in report["error_messages"]:
        click.echo(f"Error: {message}", err=True)
    if json_file:
        _write(json_file, text)
    if baseline:
        click.echo(compare_runs({"baseline": _read_run(baseline), "now": report}), nl=False)
    elif not json_file:
        click.echo(text, nl=False)
    else:
        click.echo(compare_runs({title: report}), nl=False)


@evaluation.command
@click.argument("runs", nargs=-1, required=True, type=INPUT_FILE)
@click.option("--svg", type=OUTPUT_FILE, help="Write a chart to this file too.")
def compare(runs: tuple[Path, ...], svg: Path | None) -> None:
    """Compare runs with the first one, as a Markdown table."""
    from bedstone.evaluation.charts import bar_chart
    from bedstone.evaluation.report import compare_runs

    named: dict[str, dict[str, Any]] = {}
    for path in runs:
        report = _read_run(path)
        title = str(report.get("name", path.stem))
        named[title if title not in named else f"{title} ({path.stem})"] = report
    if svg:
        _write(svg, bar_chart(named, "Search quality and cost"))
    click.echo(compare_runs(named), nl=False)


@evaluation.command
@CASES
@click.option("--docs-dir", required=True, type=UserPath(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--provider", "providers", multiple=True, default=("none", "minilm"), show_default=True,
    type=click.Choice(["none", "minilm", "openai", "hash"]),
    help="Embedding provider to build with; repeat it to compare several.",
)  # fmt: skip
@click.option("--serve-arg", "serve_arguments", multiple=True, help="Option for `bedstone serve`; can be repeated.")
@click.option("--out", type=UserPath(file_okay=False, path_type=Path), help="Folder for the results and a chart.")
@settings_options(EVALUATION_FLAGS)
def benchmark(cases_file: Path, docs_dir: Path, providers: tuple[str, ...], out: Path | None, **options: Any) -> None:
    """Build one corpus with several embedding providers, measure and compare them."""
    from bedstone.evaluation.cases import read_cases
    from bedstone.evaluation.charts import bar_chart
    from bedstone.evaluation.report import compare_runs

    cases = read_cases(cases_file)
    reports: dict[str, dict[str, Any]] = {}
    with TemporaryDirectory(prefix="bedstone-benchmark-") as folder:
        for provider in providers:
            index = Path(folder) / provider
            bedstone = [sys.executable, "-m", "bedstone"]
            command = [*bedstone, "docs", "build", "--docs-dir", str(docs_dir), "--out", str(index)]
            build = _measure_build(shlex.join([*command, "--embedding-provider", provider]))
            size = sum(path.stat().st_size for path in index.rglob("*") if path.is_file()) / 1e6
            serve = (*bedstone, "serve", "--toolsets", "docs", "--docs-index", str(index))
            measured = _run(cases, {"command": (*serve, *options["serve_arguments"])})
            report = {"name": f"{docs_dir.name}, {provider}", **measured, **build, "index_mb": round(size, 1)}
            reports[provider] = save_run(report, configuration(options).settings.data_folder)
    table = compare_runs(reports)
    if out:
        for provider, report in reports.items():
            _write(out / f"{provider}.json", json.dumps(report, indent=1))
        _write(out / "comparison.md", table)
        _write(out / "comparison.svg", bar_chart(reports, f"{docs_dir.name}"))
    click.echo(table, nl=False)


def _write(file: Path, text: str) -> None:
    """Write a report that the user asks for, readable like other files of the user."""
    with user_permissions():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def _run(cases: Any, options: dict[str, Any]) -> dict[str, Any]:
    from bedstone.evaluation.probe import HttpServer, Probe, StdioServer
    from bedstone.evaluation.run import RunOptions, run_cases

    command = [*options.get("command", ())]
    if options.get("server_command"):
        command = [*shlex.split(options["server_command"]), *options["server_arguments"]]
    if bool(command) == bool(options.get("url")):
        raise InvalidInput("Name the server: a command after --, or --url.")
    token = options.get("token_file") and options["token_file"].read_text(encoding="utf-8").strip()
    server = StdioServer(command) if command else HttpServer(str(options["url"]), options.get("pid"), token)
    try:
        probe = Probe(server)
        run_options = RunOptions(
            bool(options.get("file_level")), options.get("warmup_queries", 20), options.get("repeat", 1)
        )
        with click.progressbar(length=len(cases), label="Cases", file=sys.stderr) as bar:
            return run_cases(cases, probe, run_options, bar.update)
    finally:
        server.close()


def _measure_build(command: str) -> dict[str, float]:
    """Run a command; return its wall and CPU time."""
    import resource

    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(shlex.split(command), stdout=subprocess.DEVNULL, check=False)  # noqa: S603
    if done.returncode:
        raise Unavailable(f"The build failed with exit code {done.returncode}: {command}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"build_s": round(time.perf_counter() - started, 2), "build_cpu_s": round(cpu, 2)}


def _read_run(path: Path) -> dict[str, Any]:
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InvalidInput(f"{path} is not a saved run of `bedstone eval`: {error}") from None
    if not isinstance(report, dict) or "quality" not in report:
        raise InvalidInput(f"{path} is not a saved run of `bedstone eval`: it has no quality figures.")
    return report
