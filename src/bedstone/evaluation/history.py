"""Runs of evaluations in the data folder: `bedstone eval` saves them, the web page shows them."""

import json
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bedstone.permissions import make_private_folder

FOLDER = "evaluations"
MAX_RUNS = 500
MAX_RUN_BYTES = 20_000_000
MAX_NAME_LENGTH = 100
MAX_QUESTION_LENGTH = 300
DETAILS = frozenset({"results", "error_messages"})  # read again when a page shows them


def save_run(report: dict[str, Any], data_folder: Path) -> dict[str, Any]:
    """Save a run with the current time; return it as saved."""
    folder = data_folder / FOLDER
    make_private_folder(folder)
    now = datetime.now(UTC)
    run = {"name": report["name"], "at": now.isoformat(timespec="seconds"), **report}
    name = "".join(char if char.isalnum() or char in "-_." else "-" for char in str(report["name"]))
    file = folder / f"{now.strftime('%Y%m%d-%H%M%S-%f')}-{name[:MAX_NAME_LENGTH]}.json"
    file.write_text(json.dumps(run, indent=1, ensure_ascii=False), encoding="utf-8")
    return run


@dataclass(frozen=True)
class SavedRun:
    """A run of a set of questions: the name of its file, of the set, when it was, and what was measured."""

    id: str
    name: str
    at: str
    report: Mapping[str, Any]


@dataclass(frozen=True)
class Outcome:
    """The rank of the right answer to a question; None if it was not among the results."""

    name: str
    query: str
    kind: str
    rank: int | None


class RunHistory:
    """The runs of a data folder. Each file is read once; anything may be in it, so nothing but its form is trusted."""

    def __init__(self, data_folder: Path) -> None:
        self._folder = data_folder / FOLDER
        self._runs: dict[tuple[str, int], SavedRun | None] = {}

    def sets(self) -> dict[str, list[SavedRun]]:
        """Return the runs of each set of questions, the latest first; the set that ran last comes first."""
        files = sorted(self._folder.glob("*.json"), reverse=True)[:MAX_RUNS]
        keys = [(file.name, mtime) for file in files if (mtime := _mtime_ns(file))]
        self._runs = {key: self._runs[key] if key in self._runs else self._read_run(key[0]) for key in keys}
        by_name: dict[str, list[SavedRun]] = {}
        for run in self._runs.values():
            if run is not None:
                by_name.setdefault(run.name, []).append(run)
        return by_name

    def outcomes(self, run: SavedRun) -> list[Outcome]:
        """Return the rank of each question of a run; older runs have none."""
        results = self._load(f"{run.id}.json").get("results")
        items = [item for item in results if isinstance(item, dict)] if isinstance(results, list) else []
        return [_outcome(item) for item in items if item.get("name")]

    def _read_run(self, name: str) -> SavedRun | None:
        run = self._load(name)
        if not isinstance(run.get("quality"), dict):
            return None
        report = {key: value for key, value in run.items() if key not in DETAILS}
        title = clean_text(run.get("name") or name, MAX_NAME_LENGTH)
        return SavedRun(name.removesuffix(".json"), title, clean_text(run.get("at", ""), MAX_NAME_LENGTH), report)

    def _load(self, name: str) -> dict[str, Any]:
        """Return a file as an object; an empty one if it is something else, too large or gone."""
        file = self._folder / name
        try:
            run = json.loads(file.read_text("utf-8")) if file.stat().st_size <= MAX_RUN_BYTES else {}
        except (OSError, ValueError, RecursionError):
            return {}
        return run if isinstance(run, dict) else {}


def clean_text(value: Any, limit: int) -> str:
    """Return a value as a short text that can be shown: printable, in one line, without half a surrogate pair."""
    text = "".join(char if char.isprintable() else " " for char in str(value)[: limit + 1])
    return text if len(text) <= limit else f"{text[:limit]}…"


def _outcome(item: Mapping[str, Any]) -> Outcome:
    rank = item.get("rank")
    is_rank = isinstance(rank, int) and not isinstance(rank, bool) and rank > 0
    name = clean_text(item["name"], MAX_QUESTION_LENGTH)
    query = clean_text(item.get("query") or name, MAX_QUESTION_LENGTH)
    return Outcome(name, query, clean_text(item.get("category") or "", MAX_NAME_LENGTH), rank if is_rank else None)


def _mtime_ns(file: Path) -> int:
    """Return the modification time of a regular file, or 0 for anything else."""
    try:
        status = file.stat()
    except OSError:
        return 0
    return status.st_mtime_ns if stat.S_ISREG(status.st_mode) else 0
