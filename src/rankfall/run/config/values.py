"""The values of a configuration: numbers, labels that become file names, components, and entries with the fields of a type in `design.py`.

Pydantic checks an entry from YAML with a model built from the dataclass's fields (`model_of`). It is stored as the dataclass.
"""

import functools
import json
import re
from dataclasses import MISSING, fields
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetPydanticSchema,
    PlainValidator,
    WithJsonSchema,
    create_model,
)
from pydantic.json_schema import JsonSchemaValue, SkipJsonSchema
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from rankfall.design import Component, meanings

# 1e-5 arrives as text from `--config` of Snakemake and from readers of YAML 1.1, which expect a dot and a sign.
EXPONENT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+")
LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_+-]*")


def as_float(value: Any) -> Any:
    """Return integers and texts such as 1e-5 as floats, and anything else unchanged."""
    if isinstance(value, str) and EXPONENT.fullmatch(value):
        value = float(value)
    return float(value) + 0.0 if type(value) in (int, float) else value  # -0.0 becomes 0.0, which has the same key


Number = Annotated[float, BeforeValidator(as_float), Field(allow_inf_nan=False)]
Label = SkipJsonSchema[str]  # the entry's key, not written in the entry

WRITTEN = "A component as written in a configuration: `name`, or `{name: ..., option: value}`, or `{name: ..., options: {...}}`."
COMPONENT: JsonSchemaValue = {
    "anyOf": [
        {"type": "string"},
        {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
    ]
}


class Entry(BaseModel):
    """The base of all parts of a configuration, which are immutable and take no unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def read_component(value: Any) -> Component:
    """Return a value from YAML as a component."""
    if isinstance(value, Component):
        return value
    if isinstance(value, str):
        return Component.parse(value)
    if isinstance(value, dict) and isinstance(value.get("name"), str):
        if value.keys() == {"name", "options"} and isinstance(value["options"], dict):
            return Component(**value)
        return Component.parse(value)
    raise PydanticCustomError("component", "not a component")


Part = Annotated[Component, PlainValidator(read_component), WithJsonSchema(COMPONENT)]
SIGNS = {">": "gt", ">=": "ge", "<": "lt", "<=": "le"}


def pydantic_type(hint: Any, **bounds: Any) -> Any:
    """Return the type by which pydantic checks values from YAML. `bounds` (`ge`, `le`) apply to every number in the type."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Component:
        return Part
    if hint in (int, float):
        return Annotated[Number if hint is float else hint, Field(**bounds)]
    if origin is Annotated and isinstance(inner[1], str):  # a field of `design.py`, with bounds such as ">= 1"
        inner_bounds = (bound.split() for bound in inner[1:])
        return pydantic_type(inner[0], **{SIGNS[sign]: json.loads(number) for sign, number in inner_bounds})
    if origin in (Union, UnionType):
        return Union[tuple(item if item is NoneType else pydantic_type(item, **bounds) for item in inner)]  # noqa: UP007
    if origin is list:
        return list[pydantic_type(inner[0], **bounds)]  # type: ignore[misc]
    if origin is tuple:
        items: Any = tuple[tuple(pydantic_type(item, **bounds) for item in inner)]  # type: ignore[misc]
        return Annotated[items, BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)]
    return hint


@functools.cache
def model_of(design: type) -> type[Entry]:
    """Return the model that checks an entry of this type."""
    hints, means = get_type_hints(design, include_extras=True), meanings(design)
    model_fields: dict[str, Any] = {}
    for item in fields(design):
        if item.name == "name":
            model_fields["name"] = (Label, ...)
            continue
        default = ... if item.default is MISSING else item.default
        model_fields[item.name] = (pydantic_type(hints[item.name]), Field(default, description=means[item.name]))
    return create_model(f"{design.__name__}Entry", __base__=Entry, __doc__=design.__doc__, **model_fields)


def parse_entry(design: type, handler: GetCoreSchemaHandler) -> CoreSchema:
    """Return a schema that checks an entry, and turns it into the dataclass."""

    def build(entry: Entry) -> Any:
        return design(**{item.name: getattr(entry, item.name) for item in fields(design)})

    return core_schema.no_info_after_validator_function(build, handler.generate_schema(model_of(design)))


Parsed = GetPydanticSchema(parse_entry)  # in `Annotated[Architecture, Parsed]`
