"""Errors as {"error": {"code", "message", "details"}}: the shape of the contracts that define error codes."""

from collections.abc import Mapping
from typing import Any

from bedstone.errors import BedstoneError, InvalidInput
from bedstone.toolkit.reply import Reply


def render_error_envelope(error: BedstoneError, codes: Mapping[str, str], default_code: str) -> Reply:
    """Render an error under the contract's code for its class, or for the nearest base class that has one.

    The details of invalid input name the field.
    """
    own = (kind.code for kind in type(error).__mro__ if issubclass(kind, BedstoneError))
    code = next((codes[name] for name in own if name in codes), default_code)
    details: Any = error.details.get("details")
    if isinstance(error, InvalidInput):
        values = {key: value for key, value in error.details.items() if key != "parameter" and value is not None}
        details = {"field": error.details.get("parameter"), **values}
    return Reply({"error": {"code": code, "message": error.message, "details": details}}, is_error=True)
