"""Reads a file in a process of its own, with limits on time, memory and output."""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import IO, Any

from bedstone.ingest.detection import detect
from bedstone.ingest.extraction import Notes, Page, ReadOptions, Unreadable
from bedstone.ingest.formats import IMAGES

PASSED_VARIABLES = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT", "COVERAGE_PROCESS_CONFIG")  # the last one in tests
SCRATCH = "bedstone-read-"


@dataclass(frozen=True)
class Limits:
    """What one file may cost."""

    seconds: float = 60.0
    seconds_a_page: float = 20.0
    silence: float = 120.0
    memory: int = 1_536 * 2**20
    cpu: int = 3_600
    output: int = 512 * 2**20
    file: int = 256 * 2**20


class FileReader:
    """One reading of one file; `stop` ends it from another thread."""

    def __init__(self, path: Path, options: ReadOptions | None = None, limits: Limits | None = None) -> None:
        self._path = path
        self._options = options or ReadOptions()
        self._limits = limits or Limits()
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped: str | None = None
        self.notes = Notes()
        self.format = detect(path)

    def pages(self) -> Iterator[Page]:
        """Page by page, as they are read; `Unreadable` where that fails."""
        if self.format is None:
            raise Unreadable("unsupported", "The file is of a kind that cannot be read.")
        with TemporaryDirectory(prefix=f"{SCRATCH}{os.getpid()}-") as scratch, self._started(scratch) as process:
            self._process = process
            watch = _Watch(self, self._limits)
            try:
                yield from self._answers(process, watch)
            finally:
                watch.end()
                self._kill()

    def stop(self, reason: str = "cancelled") -> None:
        """End the reading at once."""
        self._stopped = self._stopped or reason
        self._kill()

    def _answers(self, process: "subprocess.Popen[bytes]", watch: "_Watch") -> Iterator[Page]:
        assert process.stdout
        finished = False
        for line in _lines(process.stdout, self._limits.output):
            answer: dict[str, Any] = json.loads(line)
            if "page" in answer:
                page = Page(**answer["page"])
                watch.heard(page.of)
                yield page
            elif "error" in answer:
                raise Unreadable(answer["error"], answer["message"])
            else:
                finished = True
                self.notes.metadata.update(answer["done"]["metadata"])
                self.notes.warnings.extend(answer["done"]["warnings"])
        if not finished:
            raise self._failure(process.wait())

    def _failure(self, code: int) -> Unreadable:
        if self._stopped == "time_limit":
            return Unreadable("time_limit", "The file is refused: reading it takes too long.")
        if self._stopped is not None:
            return Unreadable("time_limit", "Reading was stopped.")
        return Unreadable("worker_crashed", f"The file is refused: its reader ended unexpectedly (code {code}).")

    def _started(self, scratch: str) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen(
            [sys.executable, "-I", "-m", "bedstone.ingest.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(scratch),
            start_new_session=True,
        )
        request = {
            "path": str(self._path.resolve()),
            "format": self.format,
            "options": asdict(self._options),
            "limits": {"memory": self._limits.memory, "cpu": self._limits.cpu, "file": self._limits.file},
        }
        assert process.stdin
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
        return process

    def _kill(self) -> None:
        process = self._process
        if process is None:
            return
        try:
            os.killpg(process.pid, 9)
        except (ProcessLookupError, PermissionError, AttributeError):
            process.kill()


class _Watch:
    """Ends a reading that takes too long, as a whole or between two pages."""

    def __init__(self, reader: FileReader, limits: Limits) -> None:
        self._reader = reader
        self._limits = limits
        self._started = self._heard = time.monotonic()
        self._pages = 0
        self._over = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def heard(self, pages: int | None) -> None:
        """A page has come."""
        self._heard = time.monotonic()
        self._pages = max(self._pages, pages or 0)

    def end(self) -> None:
        """Nothing to watch any more."""
        self._over.set()

    def _run(self) -> None:
        while not self._over.wait(0.25):
            now = time.monotonic()
            allowed = self._limits.seconds + self._limits.seconds_a_page * self._pages
            if now - self._started > allowed or now - self._heard > min(self._limits.silence, allowed):
                self._reader.stop("time_limit")
                return


def read_whole(
    path: Path, options: ReadOptions | None = None, limits: Limits | None = None
) -> tuple[list[Page], Notes]:
    """Every page of a file; a document without any text is an error, a picture without text is not."""
    reader = FileReader(path, options, limits)
    pages = list(reader.pages())
    if not any(page.markdown.strip() for page in pages) and reader.format not in IMAGES:
        raise Unreadable("no_text_found", "No text was found in the file.")
    return pages, reader.notes


def sweep_scratch() -> None:
    """Remove the scratch folders of processes that were killed while they read."""
    for folder in Path(gettempdir()).glob(f"{SCRATCH}*"):
        owner = folder.name.removeprefix(SCRATCH).partition("-")[0]
        if owner.isdigit() and not _is_alive(int(owner)):
            shutil.rmtree(folder, ignore_errors=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _lines(stream: IO[bytes], most: int) -> Iterator[bytes]:
    total = 0
    for line in stream:
        total += len(line)
        if total > most:
            raise Unreadable("too_large", "The file is refused: it holds more text than can be taken.")
        yield line


def _environment(scratch: str) -> dict[str, str]:
    """Built from nothing: no proxies, no tokens."""
    kept = {name: os.environ[name] for name in PASSED_VARIABLES if name in os.environ}
    return kept | {"TMPDIR": scratch, "OMP_THREAD_LIMIT": "1", "ORT_DISABLE_TELEMETRY": "1", "PYTHONUTF8": "1"}
