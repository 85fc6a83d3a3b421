"""Errors as {"error": {"code", "message", "details"}}: the shape of the contracts that define error codes."""

from collections.abc import Collection
from typing import Any

from bedstone.errors import BedstoneError, InvalidInput
from bedstone.toolkit.reply import Reply


def render_error_envelope(error: BedstoneError, codes: Collection[str], default_code: str) -> Reply:
    """Render an error under its code if the contract defines it, otherwise under `default_code`.

    The details of invalid input name the field.
    """
    details: Any = error.details.get("details")
    code = error.code if error.code in codes else default_code
    if isinstance(error, InvalidInput):
        code = "INVALID_INPUT"
        values = {key: value for key, value in error.details.items() if key != "parameter" and value is not None}
        details = {"field": error.details.get("parameter"), **values}
    return Reply({"error": {"code": code, "message": error.message, "details": details}}, is_error=True)
