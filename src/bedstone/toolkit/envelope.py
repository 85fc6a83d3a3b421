"""Errors as {"error": {"code", "message", "details"}}: the shape of the contracts that name their codes."""

from collections.abc import Collection
from typing import Any

from bedstone.errors import BedstoneError, InvalidInput
from bedstone.toolkit.reply import Reply


def in_envelope(error: BedstoneError, codes: Collection[str], otherwise: str) -> Reply:
    """An error under its code if the contract has it; wrong input names the field, and all else is `otherwise`."""
    details: Any = error.details.get("details")
    code = error.code if error.code in codes else otherwise
    if isinstance(error, InvalidInput):
        code = "INVALID_INPUT"
        named = {key: value for key, value in error.details.items() if key != "parameter" and value is not None}
        details = {"field": error.details.get("parameter"), **named}
    return Reply({"error": {"code": code, "message": error.message, "details": details}}, is_error=True)
