"""What an org refuses, in its own words."""

from typing import Any

TAIL = "Please reference your WSDL or the describe call for the appropriate names."


class Refused(Exception):
    """A request the org answers with an error. `position` is where in a statement, for those it can locate."""

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
        """The JSON an org sends."""
        message = self.message
        if statement is not None and self.position is not None:
            message = located(statement, self.position, message)
        if self.fields is not None:
            return [{"message": message, "errorCode": self.code, "fields": self.fields}]
        if statement is not None:
            return [{"message": message, "errorCode": self.code}]
        return [{"errorCode": self.code, "message": message}]


def located(statement: str, position: int, detail: str) -> str:
    """An error with a piece of the statement, a caret, and row and column."""
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


def no_column(name: str, entity: str, position: int | None = None) -> Refused:
    """A field that is not there."""
    return Refused(
        "INVALID_FIELD",
        f"No such column '{name}' on entity '{entity}'. If you are attempting to use a custom field, be sure to append "
        f"the '__c' after the custom field name. {TAIL}",
        position=position,
    )


def no_object(name: str, position: int | None = None) -> Refused:
    """An object that is not there."""
    return Refused(
        "INVALID_TYPE",
        f"sObject type '{name}' is not supported. If you are attempting to use a custom object, be sure to append the "
        f"'__c' after the entity name. {TAIL}",
        position=position,
    )


def no_parent(name: str, position: int | None = None) -> Refused:
    """A parent relationship that is not there."""
    return Refused(
        "INVALID_FIELD",
        f"Didn't understand relationship '{name}' in field path. If you are attempting to use a custom relationship, "
        f"be sure to append the '__r' after the custom relationship name. {TAIL}",
        position=position,
    )


def no_child(name: str, position: int | None = None) -> Refused:
    """A child relationship that is not there."""
    return Refused(
        "INVALID_TYPE",
        f"Didn't understand relationship '{name}' in FROM part of query call. If you are attempting to use a custom "
        f"relationship, be sure to append the '__r' after the custom relationship name. {TAIL}",
        position=position,
    )


def malformed(message: str, position: int | None = None) -> Refused:
    """A statement that does not hold together."""
    return Refused("MALFORMED_QUERY", message, position=position)


def not_found() -> Refused:
    """A resource that is not there."""
    return Refused("NOT_FOUND", "The requested resource does not exist", status=404)
