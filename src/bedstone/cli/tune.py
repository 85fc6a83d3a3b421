"""`bedstone tune`: find out which settings suit a corpus, and write them if asked to."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bedstone.cli.options import UserPath, configuration, settings_options
from bedstone.errors import InvalidInput

if TYPE_CHECKING:
    from rich.console import Console

    from bedstone.evaluation.tuning import Question, Trial, TuningReport
    from bedstone.search.hits import SearchRequest
    from bedstone.search.retriever import Retriever
    from bedstone.settings import Settings

TUNING_FLAGS = {"--data-dir": "data_dir"}
MAX_QUESTIONS = 200  # that are made
MAX_NAMED = 3  # files that a question expects and the corpus does not have
LABELS = {
    "semantic_share": "share of semantic search",
    "promote_documents": "promotion of documents",
    "proximity": "weight of word proximity",
}


@dataclass(frozen=True)
class Target:
    """The corpus to tune: its name in the settings, what searches it, and its documents by the names people use."""

    corpus: str
    retriever: "Retriever"
    to_request: "Callable[[str, Mapping[str, str]], SearchRequest]"
    documents: Mapping[str, Sequence[str]]


@click.command
@click.argument("folder", type=UserPath(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--questions", "questions_file", type=UserPath(exists=True, dir_okay=False, path_type=Path),
    help="JSON list of cases as `bedstone eval run` reads them.  [default: questions from headings and link texts]",
)  # fmt: skip
@click.option(
    "--max-questions", type=click.IntRange(1), default=MAX_QUESTIONS, show_default=True,
    help="Maximum number of questions to make.",
)  # fmt: skip
@click.option("--write", is_flag=True, help="Write settings that are better into the configuration file.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@settings_options(TUNING_FLAGS)
def tune(
    folder: Path, *, questions_file: Path | None, max_questions: int, write: bool, as_json: bool, **options: Any
) -> None:
    """Report which settings suit the corpus in FOLDER: a docs index, or a data folder with added files.

    Each setting is chosen on one half of the questions and measured on the other. Nothing is written without --write,
    and only what is better beyond chance.
    """
    from bedstone.evaluation.tuning import count_searches
    from bedstone.evaluation.tuning import tune as measure
    from bedstone.settings.writing import format_tuning, tuning_file, write_tuning

    is_index = (folder / "metadata.json").is_file()
    settings = configuration(options if is_index else {**options, "data_dir": folder.absolute()}).settings
    with (_open_corpus if is_index else _open_documents)(settings, folder) as target:
        questions, notes = _read_questions(target, questions_file, max_questions)
        total = len(questions) * count_searches(target.retriever)
        with click.progressbar(length=total, label=f"Searching, {len(questions)} questions", file=sys.stderr) as bar:
            report = measure(target.retriever, target.corpus, questions, bar.update)
    if not target.retriever.index.has_vectors:
        notes.append("The index has no vectors, so semantic search takes no part.")
    file = tuning_file(settings)
    if write and report.better is not None:
        write_tuning(file, report.better)
    if as_json:
        lines = format_tuning(report.better) if report.better is not None else None
        written = str(file) if write and lines else None
        click.echo(json.dumps(_to_json(target.corpus, report, notes) | {"settings": lines, "written_to": written}))
        return
    from bedstone.cli.progress import console

    _print(report, notes, console())
    _print_outcome(report, file, is_written=write)


@contextmanager
def _open_corpus(settings: "Settings", folder: Path) -> Iterator[Target]:
    from bedstone.app import make_services
    from bedstone.services.docs.corpus import DocsCorpus
    from bedstone.services.docs.opening import docs_weights

    name = folder.resolve().name
    services = make_services(settings)
    corpus = DocsCorpus(
        folder,
        services.context.embedders.get,
        weights=docs_weights(settings),
        tuning=settings.search.tuning_of(f"docs/{name}"),
    )
    try:
        paths = [document.id for document in corpus.documents()]
        known = {path: [path] for path in paths} | {f"{name}/{path}": [path] for path in paths}
        yield Target(f"docs/{name}", corpus.retriever, corpus.make_request, known)
    finally:
        corpus.close()


@contextmanager
def _open_documents(settings: "Settings", folder: Path) -> Iterator[Target]:
    from bedstone.app import open_services
    from bedstone.search.hits import SearchRequest
    from bedstone.services.knowledge.opening import store_file

    file = store_file(settings)
    if file is not None and not file.exists():
        raise InvalidInput(f"{folder} is neither a docs index nor a data folder with added files.")
    with open_services(settings) as services:
        base = services["knowledge"].get()
        retriever = base.retriever
        known: dict[str, list[str]] = {}
        for document in retriever.store.documents(limit=2**31):
            for name in {document.id, document.title, document.attributes.get("filename", document.id)}:
                known.setdefault(name, []).append(document.id)
        yield Target("documents", retriever, lambda query, _: SearchRequest(query), known)


def _read_questions(target: Target, file: Path | None, limit: int) -> tuple[list["Question"], list[str]]:
    """Return the questions of a file, or made ones, and what to know about them."""
    questions, notes = _given_questions(target, file) if file is not None else _made_questions(target, limit)
    if not questions:
        raise InvalidInput("No question is left to tune with. " + " ".join(notes))
    return questions, notes


def _given_questions(target: Target, file: Path) -> tuple[list["Question"], list[str]]:
    from bedstone.evaluation.cases import read_cases
    from bedstone.evaluation.tuning import Question

    questions, missing = [], []
    for case in read_cases(file):
        request = target.to_request(case.query, case.filters)
        if case.chunk is not None:
            if target.retriever.store.chunk(case.chunk) is None:
                missing.append(case.chunk)
            else:
                questions.append(Question(request, {case.chunk: 1.0}, case.chunk, by_chunk=True))
            continue
        grades = {item: grade for name, grade in case.grades.items() for item in target.documents.get(name, ())}
        missing += [name for name in case.grades if name not in target.documents]
        if grades:
            questions.append(Question(request, grades, max(grades, key=lambda name: (grades[name], name))))
    if not missing:
        return questions, []
    named = ", ".join(dict.fromkeys(missing[:MAX_NAMED])) + (", ..." if len(missing) > MAX_NAMED else "")
    return questions, [f"The corpus does not have {len(missing)} of the expected answers: {named}."]


def _made_questions(target: Target, limit: int) -> tuple[list["Question"], list[str]]:
    from bedstone.evaluation.questions import make_questions
    from bedstone.evaluation.tuning import Question

    retriever = target.retriever
    with click.progressbar(length=retriever.index.chunk_count, label="Reading", file=sys.stderr) as bar:
        made = make_questions(retriever.store, limit, retriever.index.is_quotation, bar.update)
    linked = sum(item.origin == "link" for item in made)
    questions = [
        Question(target.to_request(item.query, {}), {item.document: 1.0}, item.document, ignored=item.repeated_in)
        for item in made
    ]
    note = (
        f"Made {len(made)} questions: {linked} from link texts, {len(made) - linked} from headings. They share words "
        "with their answers, so they favour keyword search. Questions that people asked are a better guide."
    )
    return questions, [note]


def _print(report: "TuningReport", notes: Sequence[str], console: "Console") -> None:
    from rich.table import Table

    for note in notes:
        console.print(note)
    sides = ", ".join(f"{name} {count}" for name, count in report.answers.items())
    console.print(f"\n{report.questions} questions about {report.groups} answers. Found in the first 10 by: {sides}\n")
    table = Table(box=None, pad_edge=False)
    for title in ("search", *next(iter(report.figures.values()))):
        table.add_column(title)
    for mode, figures in report.figures.items():
        table.add_row(mode, *(f"{value:.3f}" for value in figures.values()))
    console.print(table)
    table = Table(box=None, pad_edge=False)
    for title in ("setting", "now", "best", "held-out gain", "98 % interval", "verdict", "nDCG@10 by value"):
        table.add_column(title)
    for trial in report.trials:
        table.add_row(*_cells(trial))
    console.print()
    console.print(table)


def _cells(trial: "Trial") -> list[str]:
    values = "  ".join(f"{_name(value)}: {score:.3f}" for value, score in trial.scores.items())
    interval = f"{trial.low:+.3f} to {trial.high:+.3f}"
    named = LABELS[trial.setting]
    return [named, _name(trial.now), _name(trial.best), f"{trial.gain:+.3f}", interval, trial.verdict, values]


def _name(value: Any) -> str:
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else f"{value:g}"


def _print_outcome(report: "TuningReport", file: Path, *, is_written: bool) -> None:
    from bedstone.settings.writing import format_tuning

    if report.better is None:
        click.echo("\nNo setting is better beyond chance. Nothing is written.")
        return
    now = report.figures["hybrid"]["ndcg@10"]
    click.echo(f"\nBetter: nDCG@10 {report.better_score:.3f} instead of {now:.3f}, on all questions.\n")
    click.echo(format_tuning(report.better))
    click.echo(f"Written to {file}. Restart the server." if is_written else f"--write puts this into {file}.")


def _to_json(corpus: str, report: "TuningReport", notes: Sequence[str]) -> dict[str, Any]:
    data = asdict(report)
    data["better"] = report.better.model_dump(exclude_none=True) if report.better is not None else None
    for trial in data["trials"]:
        trial["scores"] = [{"value": value, "ndcg@10": score} for value, score in trial["scores"].items()]
    return {"corpus": corpus, "notes": list(notes), **data}
