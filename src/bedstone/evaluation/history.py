"""Runs of evaluations, kept in the data folder: `bedstone eval` writes them, the page shows them."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

FOLDER, MOST_RUNS, LONGEST_NAME = "evaluations", 500, 100
NOT_SHOWN = frozenset({"results", "error_messages"})


def keep_run(report: dict[str, Any], data_folder: Path) -> dict[str, Any]:
    """A run with its time, as it is kept."""
    folder = data_folder / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    now = datetime.now(UTC)
    kept = {"name": report["name"], "at": now.isoformat(timespec="seconds"), **report}
    name = "".join(char if char.isalnum() or char in "-_." else "-" for char in str(report["name"]))
    file = folder / f"{now.strftime('%Y%m%d-%H%M%S-%f')}-{name[:LONGEST_NAME]}.json"
    file.write_text(json.dumps(kept, indent=1, ensure_ascii=False), encoding="utf-8")
    return kept


class KeptRuns:
    """The runs of a data folder; each is read once, and what nobody is shown is let go of."""

    def __init__(self, data_folder: Path) -> None:
        self._folder = data_folder / FOLDER
        self._read: dict[tuple[str, int], dict[str, Any] | None] = {}

    def latest(self) -> list[dict[str, Any]]:
        """For each set of cases, the latest run and the one before."""
        by_name: dict[str, list[dict[str, Any]]] = {}
        files = sorted(self._folder.glob("*.json"), reverse=True)[:MOST_RUNS]
        keys = [(file.name, changed) for file in files if (changed := _changed(file))]
        self._read = {key: self._read[key] if key in self._read else self._run(key[0]) for key in keys}
        for run in self._read.values():
            if run is not None:
                by_name.setdefault(run["name"], []).append(run)
        return [
            {"name": name, "latest": runs[0], "before": runs[1] if len(runs) > 1 else None, "runs": len(runs)}
            for name, runs in by_name.items()
        ]

    def _run(self, name: str) -> dict[str, Any] | None:
        try:
            run = json.loads((self._folder / name).read_text("utf-8"))
        except (OSError, ValueError, RecursionError):
            return None
        if not isinstance(run, dict) or not isinstance(run.get("quality"), dict):
            return None
        kept = {key: value for key, value in run.items() if key not in NOT_SHOWN}
        return {"at": "", **kept, "name": str(run.get("name", name))}


def _changed(file: Path) -> int:
    """When a file was changed; 0 if it has gone."""
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0
