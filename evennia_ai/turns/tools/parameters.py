"""Parameters of tools: small types that make a JSON Schema and check what a model sent."""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from evennia_ai.errors import ToolError
from evennia_ai.kinds import NO_FLAG
from evennia_ai.language.words import storable


@dataclass(frozen=True)
class Parameter(ABC):
    """One argument of a tool."""

    says: str = ""  # what it is, for the model; empty where its name says it
    required: bool = True
    in_talk: bool = True  # whether prompts of talk name it; those of an extraction always do

    @abstractmethod
    def schema(self) -> dict[str, Any]:
        """Its JSON Schema."""

    def described(self) -> dict[str, str]:
        """What its schema says of it."""
        return {"description": self.says} if self.says else {}

    @abstractmethod
    def value(self, raw: object) -> Any:
        """The argument in the form the tool takes; raises `ValueError` if it is not of its kind."""


@dataclass(frozen=True)
class Text(Parameter):
    """A text of at most `limit` characters."""

    limit: int = 4000

    def schema(self) -> dict[str, Any]:
        return {"type": "string", **self.described()}

    def value(self, raw: object) -> str:
        """The text, stripped."""
        if not isinstance(raw, str) or (self.required and not raw.strip()):
            raise ValueError("a text")
        if len(raw) > self.limit:
            raise ValueError(f"a text of at most {self.limit:,} characters")
        return storable(raw.strip())


@dataclass(frozen=True)
class Name(Text):
    """What a thing, a person or an exit is called; the tool gets the stable id of that object.

    `place` is where it may be: ``here`` (in the room or carried), ``lying`` in the room or in a
    container, ``carried``, ``lying or carried``, among the ``people`` here, or an ``exit``.
    """

    limit: int = 120
    place: str = "here"


@dataclass(frozen=True)
class Scale(Parameter):
    """A whole number between two bounds."""

    low: int = 1
    high: int = 10

    def schema(self) -> dict[str, Any]:
        bounds = {"minimum": self.low, "maximum": self.high}
        return {"type": "integer", **bounds, **self.described()}

    def value(self, raw: object) -> int:
        """The number; texts that hold one are taken."""
        number = TypeAdapter(Annotated[int, Field(ge=self.low, le=self.high), NO_FLAG])
        try:
            return number.validate_python(raw)
        except ValidationError as error:
            raise ValueError(f"a whole number from {self.low:,} to {self.high:,}") from error


@dataclass(frozen=True)
class Numbers(Parameter):
    """Some whole numbers; a text that holds them is taken, too."""

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "integer"}, **self.described()}

    def value(self, raw: object) -> tuple[int, ...]:
        """The numbers, whatever stands between them."""
        return tuple(int(number) for number in re.findall(r"\d{1,9}", str(raw)))


def function_schema(name: str, says: str, parameters: Mapping[str, Parameter]) -> dict[str, Any]:
    """A tool in the form of the chat API's `tools`."""
    required = [key for key, parameter in parameters.items() if parameter.required]
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {key: parameter.schema() for key, parameter in parameters.items()},
    }
    if required:
        schema["required"] = required
    return {
        "type": "function",
        "function": {"name": name, "description": says, "parameters": schema},
    }


def read_arguments(raw: object, parameters: Mapping[str, Parameter]) -> dict[str, Any]:
    """The checked arguments of a tool call, from JSON text or a dict as the model sent them.

    Raises:
        ToolError: If they are no JSON object, or one is missing or of the wrong kind. The text
            tells the model what to do. Surplus ones are ignored.
    """
    arguments = _as_object(raw)
    values = {}
    for key, parameter in parameters.items():
        if arguments.get(key) is None:
            if parameter.required:
                raise ToolError(f"missing argument `{key}`: {parameter.says}".rstrip(": "))
            continue
        try:
            values[key] = parameter.value(arguments[key])
        except ValueError as error:
            raise ToolError(f"argument `{key}` must be {error}") from error
    return values


def _as_object(raw: object) -> dict[str, Any]:
    if isinstance(raw, str):
        try:
            raw = json.loads(raw) if raw.strip() else {}
        except (ValueError, RecursionError) as error:
            raise ToolError(f"the arguments are no valid JSON ({str(error)[:80]})") from error
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        raise ToolError("the arguments must be one JSON object")
    return raw
