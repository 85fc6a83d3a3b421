"""The store of the previous version, as its users run it: the real code, kept in an archive, in processes of its own.

Before a migration is added, `python tests/support/previous.py` keeps the code that knows the schemas until then.
"""

import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.processes import clean_environment

ARCHIVE = Path(__file__).parents[1] / "fixtures" / "previous" / "store.zip"
SOURCE = Path(__file__).parents[2] / "src"
MODULES = ("__init__.py", "errors.py", "extensions.py", "permissions.py", "records.py", "store/**/*.py")
TIME = (2026, 1, 1, 0, 0, 0)  # of every file in the archive, so that the same code gives the same archive
SERVE = """
import sys
from bedstone.records import Chunk, Document, Passage, Task
from bedstone.store.opening import open_store
store = open_store(sys.argv[1], durable=True)
print("open", flush=True)
for line in sys.stdin:
    try:
        print(repr(eval(line)), flush=True)
    except Exception as error:
        print(f"{type(error).__name__}: {error}", flush=True)
"""


class PreviousStore:
    """A process of the previous version with an open store."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process

    def ask(self, expression: str) -> str:
        """Evaluate an expression about `store` in that process; return what it is, or the error."""
        assert self.process.stdin
        self.process.stdin.write(f"{expression}\n")
        self.process.stdin.flush()
        return self.read()

    def read(self) -> str:
        """Return one line that the process printed."""
        assert self.process.stdout
        return self.process.stdout.readline().rstrip("\n")

    def close(self) -> None:
        """Let the process end."""
        assert self.process.stdin
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)
        assert self.process.stdout
        self.process.stdout.close()


@contextmanager
def previous_store(address: str) -> Iterator[PreviousStore]:
    """Open a store with the code of the previous version."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE, address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=clean_environment() | {"PYTHONPATH": str(ARCHIVE)},
    )
    store = PreviousStore(process)
    try:
        assert store.read() == "open"
        yield store
    finally:
        store.close()


def keep() -> None:
    """Write the archive from the code of this folder."""
    ARCHIVE.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(ARCHIVE, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(path for pattern in MODULES for path in (SOURCE / "bedstone").glob(pattern)):
            info = zipfile.ZipInfo(str(path.relative_to(SOURCE)), TIME)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, path.read_bytes())


if __name__ == "__main__":
    keep()
