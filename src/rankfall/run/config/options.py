"""Check components of a configuration: they exist and take these options with these values.

Pydantic checks an option against the annotation of its parameter and against the component's `LIMITS`, such as `{"train": (1, None)}`.
Without `LIMITS` an integer must not be negative unless its default is, and in this package it is at least 1 if its default is.
`PARTS = {"masks": "mask"}` says that an option names components of a kind. They are checked like those of an architecture. `Facts` lists
the names in capitals that Rankfall reads in a component's file, with the form of each. Any other name in capitals is the author's.
"""

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

from annotated_types import Gt, MinLen
from pydantic import ConfigDict, StrictBool, StrictFloat, StrictInt, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from rankfall import components
from rankfall.descriptions import Description, Option
from rankfall.design import UNREAD, Architecture, Component, parts
from rankfall.errors import RankfallError
from rankfall.modules import root_of
from rankfall.quantity_files import LISTS, OF_A_STUDY
from rankfall.run.config.problems import nearest, problem, show_value, translate, unknown_key
from rankfall.run.config.values import Part, pydantic_type

PART_ADAPTER = TypeAdapter(Part)
BESIDE = {"measure": ("measure", "cells"), "figure": ("figure",)}  # keys of entries that are not options
# Arguments of a block that the network passes, so that they are not options.
PASSED = ("attention", "mlp", "residual", "mlp_residual", "norm1", "norm2", "placement", "site", "sizes", "new_norm")


def resolve(kind: str, component: Component, path: str) -> Component:
    """Return the component with the values of all its options, so that writing a default in a configuration changes nothing."""
    described = description(kind, component.name, path)
    options = described.options if described else {}
    if kind == "block":
        options = {name: option for name, option in options.items() if name not in PASSED}
    for key in component.options:
        if key not in options:
            raise _unknown_option(kind, component.name, path, key, list(options))
    if described is None:
        return component
    complete = {}
    for name, option in options.items():
        where = f"{path}.{name}"
        if name in component.options:
            check_plain(component.options[name], where)
            complete[name] = _check(option.type, component.options[name], where, *limits_of(described, name))
            if name in described.facts.get("PARTS", {}):
                _check_parts(described.facts["PARTS"][name], complete[name], where)
        elif option.required:
            allowed = [] if option.type is Any else [getattr(option.type, "__name__", str(option.type))]
            raise problem(where, f"{kind} {component.name!r} needs this option", allowed=allowed)
        elif option.plain:
            complete[name] = _default(option)
    return Component(name=component.name, options=complete)


def description(kind: str, name: str, path: str) -> Description | None:
    """Describe a component like `components.describe`; errors name the path in the configuration."""
    try:
        described = components.describe(kind, name)
        # A file of these kinds may give such names another meaning.
        if described is not None and kind not in ("table", *LISTS):
            check_facts(described.location.file, described.facts)
        return described
    except RankfallError as error:
        known = components.names(kind)
        if name in known or ":" in name or ("." in name and kind in OF_A_STUDY):  # an existing file
            raise problem(path, str(error)) from None
        hint = "" if known else f"there is no file {components.KINDS[kind][0]}"
        if kind in OF_A_STUDY and not (root_of("studies/") / "studies" / "claims").is_dir():
            hint = "claims and prediction are in studies/ of a checkout of Rankfall, not in the installed package: run there"
        if own := find_own(name):
            hint = f"write a component of your own as {own}"
        raise problem(path, f"unknown {kind} {name!r}", allowed=known, name=name, hint=hint) from None


def find_own(name: str) -> str:
    """Return how a configuration names a component in the user's file of this name, `topk` or `lab.topk`; empty if there is none."""
    if not all(part.isidentifier() for part in name.split(".")):
        return ""
    file = Path(*name.split(".")).with_suffix(".py")
    files = [file] if "." in name else [file, *sorted(Path().glob(f"*/{file}"))]
    if own := next(filter(Path.is_file, files), None):
        return f"{'.'.join(own.with_suffix('').parts)}:Name"
    return ":".join(name.rsplit(".", 1)) if "." in name else ""


def limits_of(described: Description, name: str) -> tuple[Any, Any]:
    """Return the (lowest, highest) value of an option, with None for no bound."""
    if name in described.facts.get("LIMITS", {}):
        low, high = described.facts["LIMITS"][name]
        return low, high
    option = described.options[name]
    types = _leaf_types(option.type)
    if int not in types or float in types:
        return None, None
    defaults = option.default if isinstance(option.default, list | tuple) else [option.default]
    numbers = [default for default in defaults if type(default) is int]
    least = min(numbers, default=0)
    if least < 0:
        return None, None
    return min(least, int(described.location.shipped)), None


def _leaf_types(hint: Any) -> set[Any]:
    """Return the types of which a type is composed."""
    inner = () if get_origin(hint) is Literal else get_args(hint)
    return set[Any]().union(*map(_leaf_types, inner)) if inner else {hint}


def _check_parts(kind: str, value: Any, path: str) -> None:
    """Check that an option names existing components, with options that they take."""
    for index, item in enumerate(value) if isinstance(value, list) else [(None, value)]:
        where = path if index is None else f"{path}.{index}"
        try:
            part = PART_ADAPTER.validate_python(item)
        except ValidationError as error:
            raise translate(error, where) from None
        resolve(kind, part, where)


def _check(hint: Any, value: Any, path: str, low: Any, high: Any) -> Any:
    """Return the value in its annotated type: an integer for a float becomes a float."""
    try:
        return _plain(_adapter(hint, low, high).validate_python(value))
    except ValidationError as error:
        raise translate(error, path) from None


@functools.lru_cache(maxsize=1024)
def _adapter(hint: Any, low: Any, high: Any) -> TypeAdapter[Any]:
    return TypeAdapter(pydantic_type(hint, ge=low, le=high), config=ConfigDict(strict=True))


def _default(option: Option) -> Any:
    """Return a default as if a configuration held it: 1 for a float becomes 1.0. A default may violate its type or the limits."""
    try:
        return _plain(_adapter(option.type, None, None).validate_python(_plain(option.default)))
    except ValidationError:
        return _plain(option.default)


def check_plain(value: Any, path: str) -> None:
    """Raise if a value is no plain data: YAML also has infinities, dates and bytes."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        raise problem(path, f"{show_value(value)} is not a finite number, a word, a list or a mapping") from None


def _plain(value: Any) -> Any:
    """Return a value with lists for tuples, since a configuration holds lists."""
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _unknown_option(kind: str, name: str, path: str, key: Any, known: list[str]) -> RankfallError:
    """Return the error for an option that a component does not take."""
    beside = BESIDE.get(kind, ())
    if not known and isinstance(key, str) and not nearest(key, beside):
        return problem(f"{path}.{key}", f"{kind} {name!r} takes no options")
    return unknown_key(path, key, [*known, *beside])


# Types with values from tables, which type checkers cannot know.
_LIST: Any = Literal[tuple(LISTS)]
_KIND: Any = Literal[tuple(components.KINDS)]
_PART: Any = Literal[tuple(sorted(set(parts(Architecture).values())))]  # kinds of components that make up a network
_UNREAD: Any = Literal[tuple(field for fields in UNREAD.values() for field in fields)]
Names = list[str]
SomeNames = Annotated[list[str], MinLen(1)]
Bound = StrictInt | StrictFloat | None
Reasons = list[tuple[dict[str, Any], str]]  # a filter of cells, and a reason


class Facts(TypedDict, total=False):
    """What a component's file declares."""

    LIMITS: dict[str, tuple[Bound, Bound]]  # option -> lowest and highest value
    REFUSES: Reasons  # it cannot be combined with cells that match a filter
    REQUIRES: Reasons  # it can only be combined with cells that match every filter
    NEEDS: Literal["cells", "nothing", "tables"]  # of a measure
    DATA: SomeNames  # files
    READS: Annotated[dict[str, str], MinLen(1)]  # word -> module
    FILES: dict[str, Names]  # option that is a path -> words that stand for no file
    TABLES: SomeNames
    FINDS: Annotated[list[_LIST], MinLen(1)]  # declarations of quantities
    PROVIDES: Names  # parts that measures can use, such as weights
    BREAKS: Names  # parts that are incomplete in a network with this component, such as values
    USES: list[str | SomeNames]  # parts that a measure needs; an inner list holds alternatives
    OFFERS: (
        Names  # points where an attention lets a position or normaliser act: queries, products, scores, values, lengths
    )
    TOUCHES: Names  # points where it acts: states, or a point that an attention offers
    IGNORES: list[_UNREAD]  # fields of an architecture
    SEQUENCES: Literal["equal tokens", "different sequences"]
    SEEDED: StrictBool
    OVERLAP: Annotated[str, MinLen(1)]  # why test samples may be training samples
    TRACED: StrictBool
    TOKENWISE: StrictBool
    SYMMETRIC: StrictBool
    LENGTH_VARIES: StrictBool
    COST: dict[Literal["seconds", "megabytes"], Annotated[StrictInt | StrictFloat, Gt(0)]]  # of a cell
    TOKENS: Annotated[StrictInt, Gt(0)]  # of a sequence, if no option holds the length
    LENGTHS: Names  # options that hold lengths
    ROWS: Literal["one", "zero", "constant", "free", "normaliser"]
    EQUAL_ROWS: Literal["one"]
    SHIFT: Literal["cancels", "counts"]
    MIXES: Literal["scores", "features", "states"]
    GATED: StrictBool
    WEIGHTS: str  # a normaliser
    SEES: Literal["nothing", "distances", "offsets", "places"]
    ADMITS: Literal["any", "trained"]
    PARTS: dict[str, _KIND]  # option -> kind of components
    CHOOSES: Names  # options that choose the items to measure and change no item's rows
    BUILDS: dict[_PART, SomeNames]  # kind of components -> names


ADAPTER = TypeAdapter(Facts)


def check_facts(file: Path, facts: Mapping[str, Any]) -> None:
    """Raise if a fact does not have its form."""
    try:
        ADAPTER.validate_python({name: facts[name] for name in Facts.__annotations__.keys() & facts.keys()})
    except ValidationError as error:
        raise RankfallError(f"{file}: {translate(error)}") from None
