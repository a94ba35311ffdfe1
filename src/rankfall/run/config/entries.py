"""Models of configuration entries, generated from the types in `design.py`: the same fields with the same defaults.

Pydantic checks values from YAML with a model built from the dataclass's fields. They are stored as the dataclass.
"""

import functools
from dataclasses import MISSING, fields
from typing import Annotated, Any, get_type_hints

from pydantic import AfterValidator, Field, GetCoreSchemaHandler, create_model
from pydantic_core import CoreSchema, core_schema

from rankfall.design import meanings
from rankfall.run.config.values import Entry, Label, pydantic_type

DROPOUT_STEPS = 2**16  # sixteen bits decide what is dropped
LARGEST_DROPOUT = "0.99998"


def _dropout(value: float) -> float:
    if value and not 1 <= round(value * DROPOUT_STEPS) < DROPOUT_STEPS:
        raise ValueError(
            f"{value!r} cannot be drawn: the nearest that can is {'0' if value < 0.5 else LARGEST_DROPOUT}"
        )
    return value


CHECKS = {"dropout": _dropout}  # checks that bounds cannot express


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
        written = pydantic_type(hints[item.name])
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
