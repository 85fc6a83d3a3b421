"""Keep a docs index up to date with its documents, in a thread of its own."""

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from bedstone.errors import BedstoneError, Unavailable
from bedstone.services.docs.builder import BuildReport
from bedstone.services.docs.index_folder import IndexFolder
from bedstone.services.schedule import RunRecord, describe_changes
from bedstone.services.service import SyncFacts, format_count

logger = logging.getLogger(__name__)

FIRST_INDEX_SECONDS = 0.25  # keywords are published before vectors, so the build may still be running
FIRST_SCAN_MILLISECONDS = 500
DEBOUNCE_MILLISECONDS = 400  # an editor writes a file in several steps


class CorpusWatcher:
    """Builds an index once, and with `watch` again after every change."""

    def __init__(self, docs: Path, index: Path, build: Callable[[], BuildReport], *, watch: bool) -> None:
        self.name = index.name
        self._docs = docs
        self._index = index
        self._build = build
        self._watch = watch
        self._stop = threading.Event()
        self._built = threading.Event()
        self._failure: BedstoneError | None = None
        self._asked = threading.Event()
        self._updating = threading.Lock()
        self._record = RunRecord()
        self._thread = threading.Thread(target=self.run, name=f"docs-{index.name}", daemon=True)

    def start(self) -> None:
        """Start the thread, and return as soon as there is an index to serve, new or from an earlier build."""
        self._thread.start()
        while IndexFolder(self._index).metadata is None:
            if not self._thread.is_alive():
                raise self._failure or BedstoneError(f"Cannot index {self._docs}.")
            self._built.wait(FIRST_INDEX_SECONDS)
            self._built.clear()

    def stop(self) -> None:
        """Ask the thread to stop; the next build resumes an interrupted one."""
        self._stop.set()

    def build_now(self) -> None:
        """Build again in the background; at the next look at the folder if that is watched."""
        if self._asked.is_set() or self._updating.locked():
            return
        self._asked.set()
        if not self._thread.is_alive():
            threading.Thread(target=self._update, name=f"docs-{self.name}", daemon=True).start()

    def facts(self) -> SyncFacts:
        """Return how the last build went."""
        rhythm = "when files change" if self._watch else "when the server starts"
        facts = self._record.facts("Documentation", str(self._docs), name=self.name, rhythm=rhythm, verb="Build now")
        progress = IndexFolder(self._index).progress if facts.is_running else None
        return replace(facts, is_running=facts.is_running or self._asked.is_set(), progress=str(progress or ""))

    def run(self) -> None:
        """Build, and with `watch` continue until stopped."""
        if not self._watch:
            self._update()
            return
        from watchfiles import DefaultFilter, watch  # noqa: PLC0415 - only watching needs it

        # Watching starts before the first build, so that changes during the build are not missed.
        changes = watch(
            self._docs,
            watch_filter=DefaultFilter(ignore_paths=[self._index.resolve()]),
            stop_event=self._stop,
            debounce=DEBOUNCE_MILLISECONDS,
            rust_timeout=FIRST_SCAN_MILLISECONDS,
            yield_on_timeout=True,
            raise_interrupt=False,
        )
        for number, changed in enumerate(changes):
            # Retry also after another process was building.
            if number == 0 or changed or self._asked.is_set() or isinstance(self._failure, Unavailable):
                self._update()

    def _update(self) -> None:
        with self._updating:
            self._asked.clear()
            self._failure = self._try_build()
            self._built.set()

    def _try_build(self) -> BedstoneError | None:
        try:
            with self._record.running():
                report = self._build()
                self._record.succeed(_summarize(report))
        except BedstoneError as error:
            logger.warning("Cannot index %s: %s", self._docs, error.message, extra={"action": "docs_failed"})
            return error
        except Exception:
            # Keep watching: the next change may fix it.
            logger.exception("Cannot index %s", self._docs, extra={"action": "docs_failed"})
            return BedstoneError(f"Cannot index {self._docs}; see the server log.")
        for warning in report.warnings:
            logger.warning("%s", warning, extra={"action": "docs_warning"})
        for where, text in report.words.items():
            logger.info("Agents read as %s: %s", where, text, extra={"action": "docs_words"})
        logger.info(
            "Indexed %s: %d files, %d changed, %d removed, %d pages with problems, %d skipped",
            self._docs,
            report.files,
            report.changed,
            report.removed,
            report.problem_pages,
            len(report.skipped),
            extra={"action": "docs_indexed"},
        )
        return None


def _summarize(report: BuildReport) -> str:
    """Return in words what a build did."""
    changes = describe_changes(changed=report.changed, removed=report.removed)
    problems = format_count(report.problem_pages, "page with problems", "pages with problems")
    return f"{format_count(report.files, 'file')}, {changes}{f', {problems}' if report.problem_pages else ''}"
