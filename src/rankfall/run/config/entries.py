"""Models of configuration entries, generated from the types in `design.py`: the same fields with the same defaults.

Pydantic checks values from YAML with a model built from the dataclass's fields. They are stored as the dataclass.
"""

import ast
import functools
from dataclasses import MISSING, fields
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from pydantic import AfterValidator, Field, GetCoreSchemaHandler, create_model
from pydantic_core import CoreSchema, core_schema

from rankfall.design import Component, meanings
from rankfall.run.config.values import Entry, Label, Number, Part

DROPOUT_STEPS = 2**16  # sixteen bits decide what is dropped
LARGEST_DROPOUT = "0.99998"


def _dropout(value: float) -> float:
    if value and not 1 <= round(value * DROPOUT_STEPS) < DROPOUT_STEPS:
        raise ValueError(
            f"{value!r} cannot be drawn: the nearest that can is {'0' if value < 0.5 else LARGEST_DROPOUT}"
        )
    return value


CHECKS = {"dropout": _dropout}  # checks that bounds cannot express
SIGNS = {">": "gt", ">=": "ge", "<": "lt", "<=": "le"}


@functools.cache
def model_of(design: type) -> type[Entry]:
    """Return the model that checks an entry of this type."""
    hints, means = get_type_hints(design, include_extras=True), meanings(design)
    made: dict[str, Any] = {}
    for item in fields(design):
        if item.name == "name":
            made["name"] = (Label, ...)
            continue
        default = ... if item.default is MISSING else item.default
        written = _pydantic_type(hints[item.name])
        if item.name in CHECKS:
            written = Annotated[written, AfterValidator(CHECKS[item.name])]
        made[item.name] = (written, Field(default, description=means[item.name]))
    return create_model(f"{design.__name__}Entry", __base__=Entry, __doc__=design.__doc__, **made)


class Parsed:
    """Marker in `Annotated[Architecture, Parsed]`: pydantic checks the field as an entry, and it is stored as the dataclass."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        def build(given: Entry) -> Any:
            return source(**{item.name: getattr(given, item.name) for item in fields(source)})

        return core_schema.no_info_after_validator_function(build, handler.generate_schema(model_of(source)))


def _pydantic_type(hint: Any) -> Any:
    """Return the pydantic type for a type of `design.py`."""
    if hint is Component:
        return Part
    if hint is float:
        return Number
    if get_origin(hint) is Annotated:
        plain, *bounds = get_args(hint)
        limits: dict[str, Any] = {}
        for bound in bounds:  # such as ">= 1"
            sign, number = bound.split()
            limits[SIGNS[sign]] = ast.literal_eval(number)
        return Annotated[_pydantic_type(plain), Field(**limits)]
    if get_origin(hint) in (Union, UnionType):
        return Union[tuple(item if item is NoneType else _pydantic_type(item) for item in get_args(hint))]  # noqa: UP007
    return hint
