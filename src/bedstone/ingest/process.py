"""The process that reads and splits untrusted text, with limits on time, memory and output."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import IO, Any

from bedstone.ingest.extraction import ExtractionError

PASSED_VARIABLES = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT", "COVERAGE_PROCESS_CONFIG")  # the last one in tests
SCRATCH = "bedstone-read-"
# How a process ends that was killed from outside: by the system without memory, at a shutdown, by an administrator.
KILLED = frozenset(
    -getattr(signal, name) for name in ("SIGKILL", "SIGTERM", "SIGHUP", "SIGINT") if hasattr(signal, name)
)
CPU_LIMIT = -getattr(signal, "SIGXCPU", 0)


@dataclass(frozen=True)
class Limits:
    """The most that reading one file may take: seconds and bytes."""

    seconds: float = 60.0
    seconds_per_page: float = 20.0
    seconds_per_megabyte: float = 10.0  # of text to split
    silence: float = 120.0
    memory: int = 1_536 * 2**20
    cpu: int = 3_600
    output: int = 512 * 2**20
    file: int = 256 * 2**20


class WorkerProcess:
    """A process that answers one request after another; `stop` ends it from another thread."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.process: subprocess.Popen[bytes] | None = None
        self._scratch: TemporaryDirectory[str] | None = None
        self._stop_reason: str | None = None

    def __enter__(self) -> "WorkerProcess":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def ask(
        self, request: Mapping[str, Any], seconds: float, silence: float
    ) -> "Iterator[tuple[dict[str, Any], Watchdog]]":
        """Yield the responses to a request, with the watchdog of the work, or raise `ExtractionError`.

        The work may take `seconds`, and `silence` until the next response.
        """
        process = self._ensure_process()
        watchdog = Watchdog(self, seconds, silence)
        try:
            _send(process, request)
            assert process.stdout
            for line in read_lines(process.stdout, self.limits.output):
                response: dict[str, Any] = json.loads(line)
                if "error" in response:
                    raise ExtractionError(response["error"], response["message"])
                yield response, watchdog
                if "done" in response:
                    return
            raise self._failure(process.wait())
        finally:
            watchdog.end()

    def stop(self, reason: str = "cancelled") -> None:
        """Stop the work at once."""
        self._stop_reason = self._stop_reason or reason
        self._kill()

    def close(self) -> None:
        """End the process, and remove its files."""
        self._kill()
        if self.process is not None:
            with suppress(BrokenPipeError), self.process:  # it may not have lived to read a message
                pass
        if self._scratch is not None:
            self._scratch.cleanup()

    def _ensure_process(self) -> "subprocess.Popen[bytes]":
        if self.process is None:
            self._scratch = TemporaryDirectory(prefix=f"{SCRATCH}{os.getpid()}-")
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-m", "bedstone.ingest.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=_environment(self._scratch.name),
                start_new_session=True,
            )
            limits = {"memory": self.limits.memory, "cpu": self.limits.cpu, "file": self.limits.file}
            _send(self.process, limits)
        if self._stop_reason is not None:  # while the process was being started
            self._kill()
        return self.process

    def _failure(self, code: int) -> ExtractionError:
        if self._stop_reason == "time_limit":
            return ExtractionError("time_limit", "Reading the file exceeds the time limit.")
        if self._stop_reason is not None:
            return ExtractionError("time_limit", "Reading was stopped.")
        if code < 0 and code == CPU_LIMIT:
            return ExtractionError("time_limit", "Reading the file exceeds the time limit.")
        if code in KILLED:
            name = signal.Signals(-code).name
            return ExtractionError("worker_killed", f"The process that reads the file was killed ({name}).")
        return ExtractionError("worker_crashed", f"The process that reads the file crashed (exit code {code}).")

    def _kill(self) -> None:
        process = self.process
        if process is None or process.returncode is not None:
            return
        try:
            os.killpg(process.pid, 9)
        except (ProcessLookupError, PermissionError, AttributeError):
            process.kill()


class Watchdog:
    """Stops a worker that exceeds its time, in total or between two responses."""

    def __init__(self, worker: WorkerProcess, seconds: float, silence: float) -> None:
        self._worker = worker
        self._allowed = seconds
        self._silence = silence
        self._started = self._last = time.monotonic()
        self._is_over = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def extend(self, seconds: float) -> None:
        """Note a response, and allow the work more time."""
        self._last = time.monotonic()
        self._allowed += seconds

    def end(self) -> None:
        """Stop watching."""
        self._is_over.set()

    def _run(self) -> None:
        while not self._is_over.wait(0.25):
            now = time.monotonic()
            if now - self._started > self._allowed or now - self._last > min(self._silence, self._allowed):
                self._worker.stop("time_limit")
                return


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


def _send(process: "subprocess.Popen[bytes]", message: Mapping[str, Any]) -> None:
    """Send a message; one that the process does not live to read is missed with its response."""
    assert process.stdin
    with suppress(BrokenPipeError):
        process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()


def read_lines(stream: IO[bytes], limit: int) -> Iterator[bytes]:
    """Yield complete lines, up to a limit of bytes."""
    total = 0
    for line in stream:
        if not line.endswith(b"\n"):  # cut off: the process was killed while it wrote
            return
        total += len(line)
        if total > limit:
            raise ExtractionError("too_large", f"Extracted text exceeds the {limit // 2**20} MB limit.")
        yield line


def _environment(scratch: str) -> dict[str, str]:
    """Return the environment of the worker: no proxies, no tokens."""
    passed = {name: os.environ[name] for name in PASSED_VARIABLES if name in os.environ}
    return passed | {"TMPDIR": scratch, "OMP_THREAD_LIMIT": "1", "ORT_DISABLE_TELEMETRY": "1", "PYTHONUTF8": "1"}
