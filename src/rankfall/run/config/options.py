"""Components of a configuration: that they exist and take these options with these values.

Pydantic checks an option against the annotation of its parameter and against the component's `LIMITS`, such as `{"train": (1, None)}`.
Without `LIMITS` the defaults of `least.py` apply. `PARTS = {"masks": "mask"}` says that an option names components of a kind. They are
checked like those of an architecture.
"""

import functools
import math
from types import NoneType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from rankfall import components
from rankfall.descriptions import Description, Option
from rankfall.design import Component
from rankfall.errors import RankfallError
from rankfall.modules import root_of
from rankfall.quantity_files import OF_A_STUDY
from rankfall.run.config.bounds import NAME
from rankfall.run.config.facts import FORMS, fits_form
from rankfall.run.config.least import BESIDE, check_entries, check_heads, explain_limits, is_own, limits_of
from rankfall.run.config.problems import WANTED, nearest, problem, show_value, translate, unknown_key, wrong_type
from rankfall.run.config.values import Part, pydantic_type

WRITTEN = TypeAdapter(Part)
WORDS: dict[Any, str] = {
    int: "an integer",
    float: "a number",
    bool: "true or false",
    str: "text",
    list: "a list",
    dict: "a mapping",
    NoneType: "null",
}
GIVEN = {  # arguments that are not options, because the network passes them
    "block": (
        "attention",
        "mlp",
        "residual",
        "mlp_residual",
        "norm1",
        "norm2",
        "placement",
        "site",
        "sizes",
        "new_norm",
    )
}


def resolve(kind: str, component: Component, path: str) -> Component:
    """Return the component with the values of all its options, so that writing a default in a configuration changes nothing."""
    found = description(kind, component.name, path)
    if found is None:
        for key in component.options:
            raise problem(f"{path}.{key}", f"{component.name!r} takes no options")
        return component
    options = {name: option for name, option in found.options.items() if name not in GIVEN.get(kind, ())}
    for key in component.options:
        if key not in options:
            raise _unknown_option(kind, component.name, path, key, list(options))
    complete = {}
    for name, option in options.items():
        where = f"{path}.{name}"
        if name in component.options:
            check_plain(component.options[name], where)
            limits, hint = limits_of(kind, found, name), explain_limits(found, name)
            complete[name] = check(option.type, component.options[name], where, limits, hint)
            check_entries(kind, found, name, complete[name], where)
            if name in found.facts.get("PARTS", {}):
                _check_parts(found.facts["PARTS"][name], complete[name], where)
        elif option.required:
            wanted = [] if option.type is Any else [getattr(option.type, "__name__", str(option.type))]
            raise problem(where, f"{kind} {component.name!r} needs this option", allowed=wanted)
        elif option.plain:
            complete[name] = _default(option)
    if kind == "measure" and is_own(found):
        check_heads(complete, component.options, path)
    return Component(name=component.name, options=complete)


def description(kind: str, name: str, path: str) -> Description | None:
    """Describe a component like `components.describe`, with errors that say where in the configuration the name stands."""
    if len(name) > 2 * NAME:
        raise problem(
            path, f"{show_value(name)} has {len(name)} letters", allowed=[f"names of at most {2 * NAME} letters"]
        )
    try:
        found = components.describe(kind, name)
        if found is not None:
            _check_facts(kind, found)
        return found
    except RankfallError as error:
        known = components.names(kind)
        if name in known or ":" in name or ("." in name and kind in OF_A_STUDY):  # an existing file
            raise problem(path, str(error)) from None
        hint = "" if known else f"there is no file {components.KINDS[kind][0]}"
        if kind in OF_A_STUDY and not (root_of("studies/") / "studies" / "claims").is_dir():
            hint = "claims and prediction are in studies/ of a checkout of Rankfall, not in the installed package: run there"
        if "." in name:
            hint = f"write a component outside of this package as {':'.join(name.rsplit('.', 1))}"
        raise problem(path, f"unknown {kind} {name!r}", allowed=known, given=name, hint=hint) from None


def _check_facts(kind: str, found: Description) -> None:
    for fact, (_, wanted) in FORMS.items():
        if fact in found.opaque and kind != "table":  # whose columns may have such names
            raise RankfallError(f"{found.location.file}: {fact} must be {wanted}, of numbers and text")
        if fact in found.facts and not fits_form(fact, found.facts[fact]):
            raise RankfallError(f"{found.location.file}: {fact} must be {wanted}, not {show_value(found.facts[fact])}")
    for fact in ("LIMITS", "FILES", "PARTS", "CHOOSES"):
        for name in found.facts.get(fact, {}):
            if name not in found.in_file:  # a file may hold several components
                raise RankfallError(
                    f"{found.location.file}: {fact} names {name!r}, which is not an option of a component of the file"
                )


def _check_parts(kind: str, value: Any, path: str) -> None:
    """Check that an option names existing components, with options that they take."""
    for place, item in enumerate(value) if isinstance(value, list) else [(None, value)]:
        where = path if place is None else f"{path}.{place}"
        try:
            part = WRITTEN.validate_python(item)
        except ValidationError as error:
            raise translate(error, where) from None
        resolve(kind, part, where)


def check(hint: Any, value: Any, path: str, limits: tuple[Any, Any] = (None, None), advice: str = "") -> Any:
    """Return the value in the annotated type, in which an integer for a float becomes a float, or raise. `advice` is for values beyond the
    limits."""
    try:
        return _plain(_adapter(hint, *limits).validate_python(value))
    except ValidationError as error:
        raise _mismatch(hint, value, path, error, limits, advice) from None


@functools.lru_cache(maxsize=1024)
def _adapter(hint: Any, low: Any, high: Any) -> TypeAdapter[Any]:
    return TypeAdapter(pydantic_type(hint, ge=low, le=high), config=ConfigDict(strict=True))


def _default(option: Option) -> Any:
    """Return a default as if it were written: 1 for a float is 1.0. It is possible even where its type or the limits forbid it."""
    try:
        return _plain(_adapter(option.type, None, None).validate_python(_plain(option.default)))
    except ValidationError:
        return _plain(option.default)


def check_plain(value: Any, path: str) -> None:
    """Raise unless a value means the same on every machine. YAML also has dates, bytes, infinities and keys that are not text."""
    if isinstance(value, float) and not math.isfinite(value):
        raise problem(path, f"{show_value(value)} is not a finite number")
    if isinstance(value, list | tuple):
        for item in value:
            check_plain(item, path)
    elif isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise unknown_key(path, key, ())
            check_plain(item, f"{path}.{key}")
    elif not isinstance(value, bool | int | float | str | None):
        raise wrong_type(path, value, "a number, a word, a list or a mapping")


def _mismatch(
    hint: Any, value: Any, path: str, error: ValidationError, limits: tuple[Any, Any], advice: str
) -> RankfallError:
    """Return the error for a value. For a list it names the first wrong item, for a choice the nearest allowed value."""
    steps, found = max(
        ((_steps(one), one) for one in error.errors()), key=lambda both: (len(both[0]), _is_of_type(both[1]))
    )
    where, item = ".".join([path, *map(str, steps)]), found["input"] if steps else value
    if found["type"] in ("greater_than_equal", "less_than_equal"):
        sides = [f"{sign} {limit}" for sign, limit in zip((">=", "<="), limits) if limit is not None]
        what = f"{show_value(found['input'])} is out of range"
        return problem(where, what, allowed=[" and ".join(sides)] if sides else [], hint=advice)
    if found["type"] == "literal_error" and isinstance(item, str):
        return problem(where, f"{show_value(item)} is not possible", allowed=map(str, choices(hint)), given=item)
    if found["type"] in ("missing", "too_long", "literal_error", *WANTED):
        return wrong_type(where, item, (steps and WANTED.get(found["type"])) or say_type(hint))
    return translate(error, path)


def _steps(detail: ErrorDetails) -> list[int]:
    """Return the places in lists at which an error is."""
    steps = [part for part in detail["loc"] if isinstance(part, int)]
    return steps[:-1] if detail["type"] == "missing" else steps  # a list that is too short


def _is_of_type(detail: ErrorDetails) -> bool:
    """Return whether a value has a type of a union, and is wrong for another reason."""
    return detail["type"].endswith(("_equal", "finite_number"))


def choices(hint: Any) -> list[Any]:
    """Return the values of every Literal in a type."""
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    return [choice for part in get_args(hint) for choice in choices(part)]


def say_type(hint: Any) -> str:
    """Describe the values of a type in words."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return say_type(inner[0])
    if origin is Literal:
        return "one of " + ", ".join(map(str, inner))
    if origin is Union:
        return " or ".join(map(say_type, inner))
    if origin is list:
        return f"a list, each item {say_type(inner[0])}"
    if origin is tuple:
        return f"a list of {len(inner)}: {', '.join(map(say_type, inner))}"
    return WORDS.get(hint, "anything")


def _plain(value: Any) -> Any:
    """Return a value with tuples as lists, as a configuration has them."""
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _unknown_option(kind: str, name: str, path: str, key: Any, known: list[str]) -> RankfallError:
    beside = BESIDE.get(kind, ())
    if not known and isinstance(key, str) and not nearest(key, beside):
        return problem(f"{path}.{key}", f"{kind} {name!r} takes no options")
    return unknown_key(path, key, [*known, *beside])
