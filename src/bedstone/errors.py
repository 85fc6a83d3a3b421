"""Every error a caller can act on.

BedstoneError
├── InvalidInput            fix the call                    MissingArgument, UnknownArgument
├── NotFound                name something that exists      UnknownTool, UnknownResource, UnknownPrompt, UnknownTask
├── Unavailable             wait, or ask an administrator   ReadOnly
├── InvalidSetting          fix the configuration
└── MissingExtra            install an optional part
"""

from typing import Any


class BedstoneError(Exception):
    """Base of all: a sentence for the caller, and facts for the contract's error shape."""

    code = "error"

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details = details


class InvalidInput(BedstoneError):
    """The call is wrong; the message says how to mend it."""

    code = "invalid_input"


class MissingArgument(InvalidInput):
    """A required argument is absent."""

    code = "missing_argument"


class UnknownArgument(InvalidInput):
    """The tool takes no argument of that name."""

    code = "unknown_argument"


class NotFound(BedstoneError):
    """Nothing has that name."""

    code = "not_found"


class UnknownTool(NotFound):
    """No toolset that is on has such a tool."""

    code = "unknown_tool"


class UnknownResource(NotFound):
    """No toolset that is on knows the address."""

    code = "unknown_resource"


class UnknownPrompt(NotFound):
    """No toolset that is on has such a prompt."""

    code = "unknown_prompt"


class UnknownTask(NotFound):
    """No background task has that id."""

    code = "unknown_task"


class Unavailable(BedstoneError):
    """It cannot be done now: wait, or ask an administrator."""

    code = "unavailable"


class ReadOnly(Unavailable):
    """The server refuses changes because it runs with --read-only."""

    code = "read_only"


class InvalidSetting(BedstoneError):
    """A setting or an option is wrong; the message names it and what set it."""

    code = "invalid_setting"


class MissingExtra(BedstoneError):
    """An optional part is not installed; the message has the command."""

    code = "missing_extra"
