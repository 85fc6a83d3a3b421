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
    """A failure with a sentence for the caller and facts for its contract's error shape."""

    code = "error"

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details = details


class InvalidInput(BedstoneError):
    code = "invalid_input"


class MissingArgument(InvalidInput):
    code = "missing_argument"


class UnknownArgument(InvalidInput):
    code = "unknown_argument"


class NotFound(BedstoneError):
    code = "not_found"


class UnknownTool(NotFound):
    code = "unknown_tool"


class UnknownResource(NotFound):
    code = "unknown_resource"


class UnknownPrompt(NotFound):
    code = "unknown_prompt"


class UnknownTask(NotFound):
    code = "unknown_task"


class Unavailable(BedstoneError):
    code = "unavailable"


class ReadOnly(Unavailable):
    code = "read_only"


class InvalidSetting(BedstoneError):
    code = "invalid_setting"


class MissingExtra(BedstoneError):
    code = "missing_extra"
