"""Read an untrusted file, and split its text, in a process of its own: `python -m bedstone.ingest.worker`.

The first line of JSON has the limits, each further one is a request. To `read` a file (path, reader, options) the
response is one line per page, then a last one; to `split` pages it is lines of chunks, then a last one. To `measure`
the pages of an original, to `render` one or to `locate` its words, it is one line. The process exits when its standard
input closes. What native libraries print goes to standard error.
"""

import errno
import json
import os
import re
import sys
import threading
import unicodedata
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import asdict, replace
from importlib import import_module
from itertools import groupby
from pathlib import Path
from queue import SimpleQueue
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bedstone.records import Chunk

CHUNKS_PER_LINE = 100
# Characters of text for each byte of the file; ordinary documents stay far below it.
MAX_EXPANSION = 20
MIN_TEXT_LIMIT = 2**18  # however small the file is
EXPANSION_ERROR = (
    f"The text is more than {MAX_EXPANSION} times as large as the file. Save the file as plain text or CSV to add it."
)
NICENESS = 5  # searches come first
OWN_LIMITS = frozenset({errno.ENOMEM, errno.EAGAIN})  # errors that the limits of this process cause
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ufffe\uffff]")


def main() -> None:
    """Answer the requests of standard input."""
    responses = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="surrogatepass")
    os.dup2(2, 1)
    _set_limits(json.loads(sys.stdin.readline()))
    requests: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()
    while True:
        for response in _responses(requests.get()):
            _send(responses, response)


def _set_limits(limits: dict[str, int]) -> None:
    """Limit the process before it loads native libraries."""
    try:
        import resource  # noqa: PLC0415 - not on Windows
    except ImportError:
        return
    os.nice(NICENESS)
    for name, value in {"RLIMIT_AS": limits["memory"], "RLIMIT_CORE": 0, "RLIMIT_FSIZE": limits["file"]}.items():
        resource.setrlimit(getattr(resource, name), (value, value))
    # At the first limit the process ends with a signal of its own, so that the reason is known.
    resource.setrlimit(resource.RLIMIT_CPU, (limits["cpu"], limits["cpu"] + 1))


def _listen(requests: SimpleQueue[str]) -> None:
    """Take requests while others are answered, and exit with the parent; skips the teardown of native libraries."""
    try:
        for line in sys.stdin:
            requests.put(line)
    finally:
        os._exit(3)


def _responses(line: str) -> Iterator[dict[str, Any]]:
    from bedstone.errors import MACHINE_ERRORS, find_machine_error  # noqa: PLC0415 - after the limits are set
    from bedstone.ingest.extraction import ExtractionError  # noqa: PLC0415

    try:
        request = json.loads(line)
        yield from WORK[request["work"]](request)
    except MemoryError:
        yield {"error": "memory_limit", "message": "Reading the file exceeds the memory limit."}
    except RecursionError:
        yield {"error": "too_deep", "message": "The file is nested too deeply."}
    except Exception as error:  # noqa: BLE001 - a defect of a reader fails one file, and its name is logged
        if reason := find_machine_error(error, MACHINE_ERRORS - OWN_LIMITS):
            yield {"error": "machine", "message": reason}
        elif isinstance(error, ExtractionError):
            yield {"error": error.reason, "message": error.message}
        else:
            yield {"error": "damaged", "message": f"The file cannot be read ({type(error).__name__})."}


def _read(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    from bedstone.ingest.extraction import ExtractionError, Notes, ReadOptions  # noqa: PLC0415
    from bedstone.ingest.resuming import NotesLog, merge_notes  # noqa: PLC0415

    notes = merge_notes(Notes(), request.get("notes") or {})
    log = NotesLog(notes)
    module, _, name = request["reader"].partition(":")
    read = getattr(import_module(module), name)
    path, size = Path(request["path"]), 0
    for page in read(path, ReadOptions(**request["options"]), notes):
        size += len(page.markdown)
        if size > max(MIN_TEXT_LIMIT, MAX_EXPANSION * path.stat().st_size):
            raise ExtractionError("too_large", EXPANSION_ERROR)
        yield {"page": asdict(replace(page, markdown=_clean(page.markdown))), "notes": log.changes()}
    for item in notes.left_out.items:
        item.text = _clean(item.text)
    left_out = notes.left_out.to_dict()
    yield {"done": {"metadata": notes.metadata, "warnings": notes.warnings, "left_out": left_out}}


def _split(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    from bedstone.ingest.chunking.by_size import chunk_pages, without_copies  # noqa: PLC0415 - loads the parser
    from bedstone.ingest.chunking.pieces import SplitOptions  # noqa: PLC0415
    from bedstone.ingest.extraction import Page  # noqa: PLC0415

    pages = [Page(markdown, number) for number, markdown in request["pages"]]
    options, apart = SplitOptions(**request["options"]), request["splits_pages"]
    chunks, copies = without_copies(chunk_pages(request["document_id"], pages, options, {}, splits_pages=apart))
    for start in range(0, len(chunks), CHUNKS_PER_LINE):
        yield {"chunks": [_encode_chunk(chunk) for chunk in chunks[start : start + CHUNKS_PER_LINE]]}
    yield {"done": {"copies": copies}}


def _encode_chunk(chunk: "Chunk") -> dict[str, Any]:
    places = [(place.start, place.text_start, place.page, place.breadcrumb) for place in chunk.places]
    fields = ("id", "text", "plain", "page", "breadcrumb", "span")
    return {name: getattr(chunk, name) for name in fields} | {"places": places}


def _measure(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    from bedstone.ingest.rendering import open_original  # noqa: PLC0415

    with open_original(Path(request["path"]), request["format"]) as original:
        sizes = [(round(width, 2), round(height, 2)) for width, height in original.sizes()]
        runs = [(len(list(same)), *size) for size, same in groupby(sizes)]  # a book has one size, a thousand times
        yield {"done": {"sizes": runs, "notes": list(original.notes)}}


def _render(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    from bedstone.ingest.rendering import encode, open_original  # noqa: PLC0415

    with open_original(Path(request["path"]), request["format"]) as original:
        picture = encode(original.draw(request["page"], request["width"]))
        yield {"done": {"picture": b64encode(picture).decode()}}


def _locate(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    from bedstone.ingest.rendering import open_original  # noqa: PLC0415

    with open_original(Path(request["path"]), request["format"]) as original:
        yield {"done": {"words": original.words(request["page"]).pack()}}


WORK = {"read": _read, "split": _split, "measure": _measure, "render": _render, "locate": _locate}


def _clean(text: str) -> str:
    """Replace lone surrogates, normalize to NFC and remove control characters."""
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return CONTROLS.sub("", unicodedata.normalize("NFC", whole.replace("\r\n", "\n"))).strip()


def _send(responses: IO[str], response: dict[str, Any]) -> None:
    responses.write(json.dumps(response, ensure_ascii=False) + "\n")
    responses.flush()


if __name__ == "__main__":
    main()
