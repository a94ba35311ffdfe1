"""Values as they stand in a configuration: numbers as YAML 1.1 reads them, labels that become file names, and components."""

import json
import re
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue, SkipJsonSchema
from pydantic_core import CoreSchema, PydanticCustomError

# YAML 1.1 wants a dot and a sign in an exponent, so 1e-5 arrives as text.
DIGITS = 400  # no number is written longer
EXPONENT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+")
LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_+-]*")


def as_float(value: Any) -> Any:
    """1e-5 and 1 as the floats they mean; anything else as it is."""
    if isinstance(value, str) and len(value) <= DIGITS and EXPONENT.fullmatch(value):
        value = float(value)
    return (
        float(value) + 0.0 if type(value) in (int, float) else value
    )  # -0.0 means 0.0, and must not have a key of its own


Number = Annotated[float, BeforeValidator(as_float), Field(allow_inf_nan=False)]
Label = SkipJsonSchema[str]  # not written in the entry: it is the entry's key


class Spec(BaseModel):
    """What all parts of a configuration have in common: they cannot be changed, and no key goes unread."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Component(Spec):
    """A component by name, with options. In a configuration: `name`, or `{name: ..., option: value}`, or `{name: ..., options: {...}}`."""

    name: str
    options: dict[str, Any] = {}

    @model_validator(mode="before")
    @classmethod
    def _shorthand(cls, value: Any) -> Any:
        if isinstance(value, Component):
            return value
        if isinstance(value, str):
            return {"name": value}
        if isinstance(value, dict) and isinstance(value.get("name"), str):
            if value.keys() == {"name", "options"} and isinstance(value["options"], dict):
                return value
            return {"name": value["name"], "options": {key: item for key, item in value.items() if key != "name"}}
        raise PydanticCustomError("component", "not a component")

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        long = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        return {"title": "Component", "description": cls.__doc__, "anyOf": [{"type": "string"}, long]}

    def __hash__(self) -> int:
        return hash((self.name, canonical(self.options)))


def canonical(value: Any) -> str:
    """JSON with one spelling for one meaning; what keys are hashes of."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
