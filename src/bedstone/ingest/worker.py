"""The process that reads one hostile file: `python -m bedstone.ingest.worker`.

It gets one line of JSON (path, format, options, limits) and answers one line per page, then a last one. Its input stays
open as a leash: when that ends, so does it. Whatever a native library prints goes to standard error.
"""

import json
import os
import re
import sys
import threading
import unicodedata
from collections.abc import Iterator
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path
from typing import IO, Any

NICENESS = 5  # whoever searches comes first
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ufffe\uffff]")


def main() -> None:
    """Read the file that standard input names."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="surrogatepass")
    os.dup2(2, 1)
    request = json.loads(sys.stdin.readline())
    _limit(request["limits"])
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    for answer in _answers(request):
        _say(answers, answer)
    os._exit(0)  # native libraries need no teardown


def _limit(limits: dict[str, int]) -> None:
    """Before anything native is loaded."""
    try:
        import resource  # noqa: PLC0415 - not on Windows
    except ImportError:
        return
    os.nice(NICENESS)
    for name, value in {
        "RLIMIT_AS": limits["memory"],
        "RLIMIT_CPU": limits["cpu"],
        "RLIMIT_CORE": 0,
        "RLIMIT_FSIZE": limits["file"],
    }.items():
        resource.setrlimit(getattr(resource, name), (value, value))


def _leave_with_parent() -> None:
    sys.stdin.read()
    os._exit(3)


def _answers(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    from bedstone.ingest.extraction import Notes, ReadOptions, Unreadable  # noqa: PLC0415
    from bedstone.ingest.formats import FORMATS  # noqa: PLC0415

    notes = Notes()
    try:
        module, _, name = FORMATS[request["format"]].partition(":")
        read = getattr(import_module(module), name)
        for page in read(Path(request["path"]), ReadOptions(**request["options"]), notes):
            yield {"page": asdict(replace(page, markdown=_tidy(page.markdown)))}
    except Unreadable as error:
        yield {"error": error.reason, "message": error.message}
    except MemoryError:
        yield {"error": "memory_limit", "message": "The file is refused: reading it takes too much memory."}
    except RecursionError:
        yield {"error": "too_deep", "message": "The file is refused: it is nested too deeply."}
    except Exception as error:  # noqa: BLE001 - a reader's defect costs one file, and is named in the log
        yield {"error": "damaged", "message": f"The file cannot be read ({type(error).__name__})."}
    else:
        yield {"done": {"metadata": notes.metadata, "warnings": notes.warnings}}


def _tidy(text: str) -> str:
    """Whole characters in their usual form, nothing that cannot be shown."""
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return CONTROLS.sub("", unicodedata.normalize("NFC", whole.replace("\r\n", "\n"))).strip()


def _say(answers: IO[str], answer: dict[str, Any]) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
