"""Read one untrusted file in a process of its own: `python -m bedstone.ingest.worker`.

The request is one line of JSON (path, reader, options, limits); the response is one line per page, then a last one.
The process exits when its standard input closes. What native libraries print goes to standard error.
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

NICENESS = 5  # searches come first
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ufffe\uffff]")


def main() -> None:
    """Read the file that standard input names."""
    responses = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="surrogatepass")
    os.dup2(2, 1)
    request = json.loads(sys.stdin.readline())
    _set_limits(request["limits"])
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    for response in _responses(request):
        _send(responses, response)
    os._exit(0)  # skips the teardown of native libraries


def _set_limits(limits: dict[str, int]) -> None:
    """Limit the process before it loads native libraries."""
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


def _exit_with_parent() -> None:
    sys.stdin.read()
    os._exit(3)


def _responses(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    from bedstone.ingest.extraction import ExtractionError, Notes, ReadOptions  # noqa: PLC0415
    from bedstone.ingest.resuming import NotesLog, merge_notes  # noqa: PLC0415

    notes = merge_notes(Notes(), request.get("notes") or {})
    log = NotesLog(notes)
    try:
        module, _, name = request["reader"].partition(":")
        read = getattr(import_module(module), name)
        for page in read(Path(request["path"]), ReadOptions(**request["options"]), notes):
            yield {"page": asdict(replace(page, markdown=_clean(page.markdown))), "notes": log.changes()}
    except ExtractionError as error:
        yield {"error": error.reason, "message": error.message}
    except MemoryError:
        yield {"error": "memory_limit", "message": "Reading the file exceeds the memory limit."}
    except RecursionError:
        yield {"error": "too_deep", "message": "The file is nested too deeply."}
    except Exception as error:  # noqa: BLE001 - a defect of a reader fails one file, and its name is logged
        yield {"error": "damaged", "message": f"The file cannot be read ({type(error).__name__})."}
    else:
        for item in notes.left_out.items:
            item.text = _clean(item.text)
        left_out = notes.left_out.to_dict()
        yield {"done": {"metadata": notes.metadata, "warnings": notes.warnings, "left_out": left_out}}


def _clean(text: str) -> str:
    """Replace lone surrogates, normalize to NFC and remove control characters."""
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return CONTROLS.sub("", unicodedata.normalize("NFC", whole.replace("\r\n", "\n"))).strip()


def _send(responses: IO[str], response: dict[str, Any]) -> None:
    responses.write(json.dumps(response) + "\n")
    responses.flush()


if __name__ == "__main__":
    main()
