"""Every error a caller can act on; the class says what the caller can do about it.

BedstoneError
├── InvalidInput                fix the call
│   ├── MissingArgument, UnknownArgument
│   ├── UnsupportedFormat, FileTooLarge, PathNotAllowed, UnsafeArchive   (services.knowledge)
│   ├── InvalidManifest, UnreadableFile                                  (services.docs)
│   ├── InvalidCursor, IndexVersionMismatch                              (search)
│   ├── StoreVersionMismatch                                             (store)
│   └── SyntaxProblem, BadDescribe, InvalidQuery                         (salesforce, services.schema)
├── NotFound                    name something that exists
│   ├── UnknownTool, UnknownResource, UnknownPrompt, UnknownTask
│   ├── FileNotFound, DocumentNotFound, CollectionNotFound               (services.knowledge)
│   ├── DocumentNotReady, UnreadDocument, PageNotFound                   (services.knowledge)
│   ├── ChunkNotFound                                                    (services.docs)
│   ├── UnknownId, SectionNotFound, UnknownName                          (services)
│   └── ArticleNotFound, ObjectNotFound, RecordNotFound, UnknownOrg, OrgNotFound
├── Unavailable                 wait, or ask an administrator
│   ├── ReadOnly
│   ├── StoreUnavailable, StoreDamaged, MoveMismatch                     (store)
│   ├── BlobsUnavailable, BlobDamaged                                    (store)
│   ├── IndexDamaged, IndexUnwritable                                    (search)
│   ├── ClusterUnavailable, ClusterConflict                              (search)
│   ├── StoreMismatch, TextMissing, OriginalMissing, RenderingBusy       (services.knowledge)
│   ├── KbUnreadable                                                     (services)
│   └── OrgUnavailable, MirrorMissing, MirrorBusy, SyncBusy, NotSynced
├── InvalidSetting              fix the configuration
├── MissingExtra                install an optional part
├── EmptyKnowledgeBase          add documents first                      (services.knowledge)
├── ExtractionFailed            repair the file, or add another one      (services.knowledge)
├── OcrFailed                   add a better scan                        (services.knowledge)
├── RenderingFailed             read the text, or download the original  (services.knowledge)
├── TaskFailed                  read why the task failed                 (toolsets.knowledge)
└── SalesforceError             what an org answered
    └── AuthError, PermissionDenied, LimitExceeded, ApiReserveReached, RecordNotFound, OrgUnavailable, KnowledgeDisabled
"""

import errno
import json
import re
from collections.abc import Collection
from typing import Any

# What the disk, the system or its limits cause, and no file does.
MACHINE_ERRORS = frozenset(
    getattr(errno, name)
    for name in (
        *("ENOSPC", "EDQUOT", "EIO", "EROFS", "EMFILE", "ENFILE", "ENOMEM", "EAGAIN", "EACCES", "EPERM"),
        *("EBUSY", "ENOLCK", "ENODEV", "ENXIO", "ESTALE", "ETIMEDOUT", "ENOTCONN", "EHOSTDOWN", "EREMOTEIO"),
    )
    if hasattr(errno, name)
)


def find_machine_error(error: BaseException, codes: Collection[int | None] = MACHINE_ERRORS) -> str | None:
    """Return what the machine lacks if that is behind an error, such as a full disk; None if it is the input."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, OSError) and seen.errno in codes:
            return str(seen.strerror)
        seen = seen.__cause__ or seen.__context__
    return None


class BedstoneError(Exception):
    """The base of all errors: a sentence for the caller, and facts for the error shape of a contract."""

    code = "error"

    def __init_subclass__(cls) -> None:
        """Name the error after its class, unless it has a code of its own."""
        if "code" not in cls.__dict__:
            cls.code = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details = details


class InvalidInput(BedstoneError):
    """The call is wrong; the message says how to fix it."""


class MissingArgument(InvalidInput):
    """A required argument is missing."""


class UnknownArgument(InvalidInput):
    """The tool has no argument with that name."""


class NotFound(BedstoneError):
    """Nothing has that name."""


class UnknownTool(NotFound):
    """No active toolset has that tool."""


class UnknownResource(NotFound):
    """No active toolset has a resource at that address."""


class UnknownPrompt(NotFound):
    """No active toolset has that prompt."""


class UnknownTask(NotFound):
    """No background task has that id."""


class Unavailable(BedstoneError):
    """Not possible now: wait, or ask an administrator."""


class ReadOnly(Unavailable):
    """The server rejects changes because it runs with --read-only."""


class InvalidSetting(BedstoneError):
    """A setting or an option is wrong; the message names it and what set it."""


class MissingExtra(BedstoneError):
    """An optional part is not installed; the message has the command."""


def explain(error: Exception) -> str:
    """Return in a few words why something cannot be read, in our words instead of those of a library."""
    match error:
        case BedstoneError():
            return error.message
        case UnicodeDecodeError():
            return f"not valid UTF-8 (byte {error.start})"
        case json.JSONDecodeError():
            return f"not valid JSON (line {error.lineno}, column {error.colno})"
        case RecursionError():
            return "nested too deeply"
        case OSError():
            return error.strerror or "I/O error"
        case _:
            return f"unexpected content ({type(error).__name__})"
