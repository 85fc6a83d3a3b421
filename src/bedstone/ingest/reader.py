"""Read a file in a process of its own, with limits on time, memory and output."""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import IO, Any

from bedstone.ingest.detection import detect, find_format, is_image
from bedstone.ingest.extraction import ExtractionError, Notes, Page, ReadOptions
from bedstone.ingest.left_out import LeftOut

PASSED_VARIABLES = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT", "COVERAGE_PROCESS_CONFIG")  # the last one in tests
SCRATCH = "bedstone-read-"


@dataclass(frozen=True)
class Limits:
    """The most that reading one file may take: seconds and bytes."""

    seconds: float = 60.0
    seconds_per_page: float = 20.0
    silence: float = 120.0
    memory: int = 1_536 * 2**20
    cpu: int = 3_600
    output: int = 512 * 2**20
    file: int = 256 * 2**20


class FileReader:
    """Reads one file once; `stop` ends it from another thread."""

    def __init__(
        self,
        path: Path,
        options: ReadOptions | None = None,
        limits: Limits | None = None,
        *,
        known_notes: Mapping[str, Any] | None = None,
    ) -> None:
        """Read a file; one whose first pages are known starts behind them, with the notes that belong to them."""
        self._path = path
        self._known_notes = known_notes or {}
        self._options = options or ReadOptions()
        self._limits = limits or Limits()
        self._process: subprocess.Popen[bytes] | None = None
        self._stop_reason: str | None = None
        self.notes = Notes()
        self.page_notes: Mapping[str, Any] = {}  # what the reader noted with the last page
        self.format = detect(path)

    def pages(self) -> Iterator[Page]:
        """Yield the pages as they are read, or raise `ExtractionError`."""
        declaration = find_format(self.format) if self.format else None
        if declaration is None:
            raise ExtractionError("unsupported", "Unsupported file format.")
        with (
            TemporaryDirectory(prefix=f"{SCRATCH}{os.getpid()}-") as scratch,
            self._start(declaration.reader, scratch) as process,
        ):
            self._process = process
            if self._stop_reason is not None:  # while the process was being started
                self._kill()
            watchdog = _Watchdog(self, self._limits)
            try:
                yield from self._receive(process, watchdog)
            finally:
                watchdog.end()
                self._kill()

    def stop(self, reason: str = "cancelled") -> None:
        """Stop reading at once."""
        self._stop_reason = self._stop_reason or reason
        self._kill()

    def _receive(self, process: "subprocess.Popen[bytes]", watchdog: "_Watchdog") -> Iterator[Page]:
        assert process.stdout
        is_complete = False
        for line in _lines(process.stdout, self._limits.output):
            response: dict[str, Any] = json.loads(line)
            if "page" in response:
                page = Page(**response["page"])
                self.page_notes = response.get("notes") or {}
                watchdog.reset(page.of)
                yield page
            elif "error" in response:
                raise ExtractionError(response["error"], response["message"])
            else:
                is_complete = True
                self.notes.metadata.update(response["done"]["metadata"])
                self.notes.warnings.extend(response["done"]["warnings"])
                self.notes.left_out = LeftOut.from_dict(response["done"]["left_out"])
        if not is_complete:
            raise self._failure(process.wait())

    def _failure(self, code: int) -> ExtractionError:
        if self._stop_reason == "time_limit":
            return ExtractionError("time_limit", "Reading the file exceeds the time limit.")
        if self._stop_reason is not None:
            return ExtractionError("time_limit", "Reading was stopped.")
        return ExtractionError("worker_crashed", f"The process that reads the file crashed (exit code {code}).")

    def _start(self, reader: str, scratch: str) -> "subprocess.Popen[bytes]":
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
            "reader": reader,
            "options": asdict(self._options),
            "notes": dict(self._known_notes),
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


class _Watchdog:
    """Stops a reader that exceeds its time, in total or between two pages."""

    def __init__(self, reader: FileReader, limits: Limits) -> None:
        self._reader = reader
        self._limits = limits
        self._started = self._last_page = time.monotonic()
        self._pages = 0
        self._is_over = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def reset(self, page_count: int | None) -> None:
        """Note that a page has arrived."""
        self._last_page = time.monotonic()
        self._pages = max(self._pages, page_count or 0)

    def end(self) -> None:
        """Stop watching."""
        self._is_over.set()

    def _run(self) -> None:
        while not self._is_over.wait(0.25):
            now = time.monotonic()
            allowed = self._limits.seconds + self._limits.seconds_per_page * self._pages
            if now - self._started > allowed or now - self._last_page > min(self._limits.silence, allowed):
                self._reader.stop("time_limit")
                return


def read_whole(
    path: Path, options: ReadOptions | None = None, limits: Limits | None = None
) -> tuple[list[Page], Notes]:
    """Return every page of a file; a document without text is an error, a picture without text is not."""
    reader = FileReader(path, options, limits)
    pages = list(reader.pages())
    if not any(page.markdown.strip() for page in pages) and not is_image(reader.format or ""):
        raise ExtractionError("no_text_found", "No text was found in the file.")
    return pages, reader.notes


def sweep_scratch() -> None:
    """Remove the scratch folders of processes that were killed while they read."""
    for folder in Path(gettempdir()).glob(f"{SCRATCH}*"):
        owner = folder.name.removeprefix(SCRATCH).partition("-")[0]
        if owner.isdigit() and not _is_alive(int(owner)):
            shutil.rmtree(folder, ignore_errors=True)


def _is_alive(process: int) -> bool:
    if os.name == "nt":
        return True  # there signal 0 would interrupt the process
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _lines(stream: IO[bytes], limit: int) -> Iterator[bytes]:
    total = 0
    for line in stream:
        total += len(line)
        if total > limit:
            raise ExtractionError("too_large", f"Extracted text exceeds the {limit // 2**20} MB limit.")
        yield line


def _environment(scratch: str) -> dict[str, str]:
    """Return the environment of the worker: no proxies, no tokens."""
    passed = {name: os.environ[name] for name in PASSED_VARIABLES if name in os.environ}
    return passed | {"TMPDIR": scratch, "OMP_THREAD_LIMIT": "1", "ORT_DISABLE_TELEMETRY": "1", "PYTHONUTF8": "1"}
