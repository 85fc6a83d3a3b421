"""Every error a caller can act on; the class says what the caller can do about it.

BedstoneError
├── InvalidInput                fix the call
│   ├── MissingArgument, UnknownArgument
│   ├── UnsupportedFormat, FileTooLarge, PathNotAllowed                  (services.knowledge)
│   ├── InvalidManifest, UnreadableFile                                  (services.docs)
│   ├── InvalidCursor, IndexVersionMismatch                              (search)
│   ├── StoreVersionMismatch                                             (store)
│   └── SyntaxProblem, BadDescribe, InvalidQuery                         (salesforce, services.schema)
├── NotFound                    name something that exists
│   ├── UnknownTool, UnknownResource, UnknownPrompt, UnknownTask
│   ├── FileNotFound, DocumentNotFound, CollectionNotFound               (services.knowledge)
│   ├── DocumentNotReady, UnreadDocument                                 (services.knowledge)
│   ├── ChunkNotFound                                                    (services.docs)
│   └── ArticleNotFound, ObjectNotFound, RecordNotFound, UnknownOrg, OrgNotFound
├── Unavailable                 wait, or ask an administrator
│   ├── ReadOnly
│   ├── StoreUnavailable                                                 (store)
│   ├── KbUnreadable                                                     (services)
│   └── OrgUnavailable, MirrorMissing, MirrorBusy, SyncBusy, NotSynced
├── InvalidSetting              fix the configuration
├── MissingExtra                install an optional part
├── EmptyKnowledgeBase          add documents first                      (services.knowledge)
├── ExtractionFailed            repair the file, or add another one      (services.knowledge)
├── OcrFailed                   add a better scan                        (services.knowledge)
├── TaskFailed                  read why the task failed                 (toolsets.knowledge)
└── SalesforceError             what an org answered
    └── AuthError, PermissionDenied, LimitExceeded, ApiReserveReached, RecordNotFound, OrgUnavailable, KnowledgeDisabled
"""

import re
from typing import Any


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
