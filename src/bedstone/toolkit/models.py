"""Base models for the arguments and results of tools."""

from functools import cache
from typing import Any, ClassVar, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    GetJsonSchemaHandler,
    ValidationError,
)
from pydantic_core import CoreSchema, ErrorDetails, to_json

from bedstone.errors import InvalidInput, MissingArgument, UnknownArgument

# Where several types are allowed, pydantic names the one it tried.
TYPE_NAMES = frozenset({"str", "int", "float", "bool", "list", "dict"})


class _Shape(BaseModel):
    """Prints fields only: docstrings are for developers, not for agents."""

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        printed = handler.resolve_ref_schema(handler(schema))
        printed.pop("description", None)
        if not getattr(cls, "closed", False):
            printed.pop("additionalProperties", None)
        return printed


class Arguments(_Shape):
    """The arguments of a tool, by their names on the wire only.

    Unknown arguments are rejected; the schema says so (`additionalProperties: false`) only where `closed` is set,
    because most contracts print it open. `null` for an optional argument means it is absent.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, validate_by_alias=True, validate_by_name=False, defer_build=True
    )

    closed: ClassVar[bool] = False

    @classmethod
    def parse(cls, arguments: dict[str, Any]) -> Self:
        """Validate as strictly as JSON Schema: a string is never converted to a number."""
        optional = _optional_names(cls)
        given = {
            name: _integral(value) for name, value in arguments.items() if value is not None or name not in optional
        }
        try:
            return cls.model_validate_json(to_json(given), strict=True)
        except ValidationError as error:
            raise cls._explain(error.errors(include_url=False)) from None

    @classmethod
    def _explain(cls, problems: list[ErrorDetails]) -> InvalidInput:
        problems.sort(key=lambda problem: problem["type"] != "missing")
        problem = problems[0]
        parameter = ".".join(str(part) for part in problem["loc"] if part not in TYPE_NAMES and "[" not in str(part))
        match problem["type"]:
            case "missing":
                return MissingArgument(f"Missing required parameter: {parameter}", parameter=parameter)
            case "extra_forbidden":
                known = ", ".join(_names(cls)) or "none"
                return UnknownArgument(f"Unknown parameter: {parameter}. Parameters: {known}", parameter=parameter)
            case _:
                reason = problem["msg"].removeprefix("Value error, ")
                return InvalidInput(f"Invalid value for {parameter}: {reason}", parameter=parameter)


class NoArguments(Arguments):
    """For tools without arguments."""


class Result(_Shape):
    """The result of a tool, by its names on the wire.

    A field declared `X | None = None` is omitted if it is None; one declared `X | None` without a default is always
    present, as null if it is None.
    """

    model_config = ConfigDict(
        frozen=True, validate_by_alias=True, validate_by_name=True, serialize_by_alias=True, defer_build=True
    )

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        for field in cls.model_fields.values():
            if not field.is_required() and field.default is None:
                field.exclude_if = _is_none


def _is_none(value: Any) -> bool:
    return value is None


def _integral(value: Any) -> Any:
    """Return 2.0 as 2: JSON has one kind of number."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


@cache
def _names(model: type[BaseModel]) -> tuple[str, ...]:
    return tuple(field.alias or name for name, field in model.model_fields.items())


@cache
def _optional_names(model: type[BaseModel]) -> frozenset[str]:
    return frozenset(field.alias or name for name, field in model.model_fields.items() if not field.is_required())
