"""Runs of evaluations in the data folder: `bedstone eval` saves them, the web page shows them."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bedstone.permissions import make_private_folder

FOLDER = "evaluations"
MAX_RUNS = 500
MAX_NAME_LENGTH = 100
DETAILS = frozenset({"results", "error_messages"})  # not shown on the page


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


class RunHistory:
    """The runs of a data folder. Each file is read once, and details are dropped to save memory."""

    def __init__(self, data_folder: Path) -> None:
        self._folder = data_folder / FOLDER
        self._runs: dict[tuple[str, int], dict[str, Any] | None] = {}

    def latest(self) -> list[dict[str, Any]]:
        """Return the latest run of each set of cases with the run before it."""
        by_name: dict[str, list[dict[str, Any]]] = {}
        files = sorted(self._folder.glob("*.json"), reverse=True)[:MAX_RUNS]
        keys = [(file.name, mtime) for file in files if (mtime := _mtime_ns(file))]
        self._runs = {key: self._runs[key] if key in self._runs else self._read_run(key[0]) for key in keys}
        for run in self._runs.values():
            if run is not None:
                by_name.setdefault(run["name"], []).append(run)
        return [
            {"name": name, "latest": runs[0], "before": runs[1] if len(runs) > 1 else None, "runs": len(runs)}
            for name, runs in by_name.items()
        ]

    def _read_run(self, name: str) -> dict[str, Any] | None:
        try:
            run = json.loads((self._folder / name).read_text("utf-8"))
        except (OSError, ValueError, RecursionError):
            return None
        if not isinstance(run, dict) or not isinstance(run.get("quality"), dict):
            return None
        summary = {key: value for key, value in run.items() if key not in DETAILS}
        return {"at": "", **summary, "name": str(run.get("name", name))}


def _mtime_ns(file: Path) -> int:
    """Return the modification time of a file, or 0 if it no longer exists."""
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0
