"""Errors of the REST API, with the texts of a real org."""

from typing import Any

TAIL = "Please reference your WSDL or the describe call for the appropriate names."


class ApiError(Exception):
    """A request the org answers with an error; `position` is the place in the statement, where it is known."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        status: int = 400,
        position: int | None = None,
        fields: list[str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status
        self.position = position
        self.fields = fields

    def body(self, statement: str | None = None) -> list[dict[str, Any]]:
        """Return the JSON an org sends."""
        message = self.message
        if statement is not None and self.position is not None:
            message = _locate(statement, self.position, message)
        if self.fields is not None:
            return [{"message": message, "errorCode": self.code, "fields": self.fields}]
        if statement is not None:
            return [{"message": message, "errorCode": self.code}]
        return [{"errorCode": self.code, "message": message}]


def _locate(statement: str, position: int, detail: str) -> str:
    """Return a message with part of the statement, a caret, and the row and column."""
    position = min(position, len(statement))
    text = statement.replace("\n", " ").replace("\r", " ")
    start = max(0, position - 30)
    while start > 0 and text[start - 1] not in " ,":
        start -= 1
    end = min(len(text), position + 30)
    while end < len(text) and text[end] not in " ,":
        end += 1
    row = statement.count("\n", 0, position) + 1
    column = position - statement.rfind("\n", 0, position)
    return f"\n{text[start:end]}\n{' ' * (position - start)}^\nERROR at Row:{row}:Column:{column}\n{detail}"


def no_column(name: str, entity: str, position: int | None = None) -> ApiError:
    """Return the error for an unknown field."""
    return ApiError(
        "INVALID_FIELD",
        f"No such column '{name}' on entity '{entity}'. If you are attempting to use a custom field, be sure to append "
        f"the '__c' after the custom field name. {TAIL}",
        position=position,
    )


def no_object(name: str, position: int | None = None) -> ApiError:
    """Return the error for an unknown object."""
    return ApiError(
        "INVALID_TYPE",
        f"sObject type '{name}' is not supported. If you are attempting to use a custom object, be sure to append the "
        f"'__c' after the entity name. {TAIL}",
        position=position,
    )


def no_parent(name: str, position: int | None = None) -> ApiError:
    """Return the error for an unknown parent relationship."""
    return ApiError(
        "INVALID_FIELD",
        f"Didn't understand relationship '{name}' in field path. If you are attempting to use a custom relationship, "
        f"be sure to append the '__r' after the custom relationship name. {TAIL}",
        position=position,
    )


def no_child(name: str, position: int | None = None) -> ApiError:
    """Return the error for an unknown child relationship."""
    return ApiError(
        "INVALID_TYPE",
        f"Didn't understand relationship '{name}' in FROM part of query call. If you are attempting to use a custom "
        f"relationship, be sure to append the '__r' after the custom relationship name. {TAIL}",
        position=position,
    )


def malformed_query(message: str, position: int | None = None) -> ApiError:
    """Return the error for a malformed statement."""
    return ApiError("MALFORMED_QUERY", message, position=position)


def not_found() -> ApiError:
    """Return the error for an unknown resource."""
    return ApiError("NOT_FOUND", "The requested resource does not exist", status=404)
