"""Components named in a configuration, checked against their source text: whether they exist, and take these options with these types.

Nothing is imported. What is checked is the annotation of the keyword-only parameter (int, float, bool, str, list[...], Literal[...],
X | None; others are left to the component) and the component's `LIMITS`, a literal such as `{"train": (1, None)}`. An integer without
limits is a size or a count, and so must not be negative; of measures and figures what is in LEAST has a bound by its name, and a list whose
default has entries must have one. `PARTS = {"masks": "mask"}` says that an option names components of a kind, which
are checked like those of an architecture.
"""

import ast
import functools
import math
from collections.abc import Callable
from typing import Any

from pydantic import TypeAdapter, ValidationError

from rankfall import components
from rankfall.components import Description
from rankfall.design import Component
from rankfall.errors import RankfallError
from rankfall.run.config.bounds import NAME
from rankfall.run.config.facts import FORMS, READ_ALONE
from rankfall.run.config.least import LEAST, check_heads
from rankfall.run.config.problems import nearest, problem, show_value, translate, unknown_key, wrong_type
from rankfall.run.config.values import Part, as_float

WRITTEN = TypeAdapter(Part)
WORDS = {
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "str": "text",
    "list": "a list",
    "dict": "a mapping",
}
# Keys of entries that are not options; and the arguments of a block that are not options, because the network passes them.
BESIDE = {"measure": ("measure", "cells"), "figure": ("figure",)}
GIVEN = {
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
    """The component with the values of all its options, so that writing a default in a configuration changes nothing."""
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
        empty = component.options.get(name) is None and _reader(option.annotation)[1](None) is _WRONG
        if option.required and (name not in component.options or empty):
            wanted = [option.annotation] if option.annotation else []
            raise problem(f"{path}.{name}", f"{kind} {component.name!r} needs this option", allowed=wanted)
        if name in component.options:
            check_plain(component.options[name], f"{path}.{name}")
            limits = found.facts.get("LIMITS", {}).get(name)
            least = LEAST.get(name) if kind in BESIDE else None
            complete[name] = check(option.annotation, component.options[name], f"{path}.{name}", limits, least)
            if complete[name] == [] and kind in BESIDE and option.default:
                raise problem(
                    f"{path}.{name}", "[] has no entries", hint="name some, or leave the key out for its default"
                )
            if name in found.facts.get("PARTS", {}):
                _check_parts(found.facts["PARTS"][name], complete[name], f"{path}.{name}")
        elif option.literal:
            default = _reader(option.annotation)[1](option.default)  # `float = 1` is 1.0, as 1 is when it is written
            complete[name] = _plain(option.default) if default is _WRONG else default
    if kind == "measure" and "." not in component.name and ":" not in component.name:
        check_heads(complete, component.options, path)
    return Component(name=component.name, options=complete)


def description(kind: str, name: str, path: str) -> Description | None:
    """Like `components.describe`, with errors that say where in the configuration the name stands."""
    if len(name) > 2 * NAME:
        raise problem(
            path, f"{show_value(name)} has {len(name)} letters", allowed=[f"names of at most {2 * NAME} letters"]
        )
    try:
        found = components.describe(kind, name)
        if found is not None:
            _check_facts(found)
        return found
    except RankfallError as error:
        if ":" in name:
            raise problem(path, str(error)) from None
        known = components.names(kind)
        if name in known:
            raise problem(path, str(error)) from None
        hint = "" if known else f"there is no file {components.KINDS[kind][0]}"
        raise problem(path, f"unknown {kind} {name!r}", allowed=known, given=name, hint=hint) from None


def _check_facts(found: Description) -> None:
    for fact in found.computed:
        if fact in READ_ALONE:
            raise RankfallError(
                f"{found.location.file}: {fact} is computed, and a plan runs nothing: write literals, such as 6 and not FEWEST"
            )
    for fact, (fits, wanted) in FORMS.items():
        if fact in found.facts and not fits(found.facts[fact]):
            raise RankfallError(f"{found.location.file}: {fact} must be {wanted}, not {show_value(found.facts[fact])}")
    for fact in ("LIMITS", "FILES", "PARTS", "CHOOSES"):
        for name in found.facts.get(fact, {}):
            if name not in found.options:
                raise RankfallError(
                    f"{found.location.file}: {fact} names {name!r}, which is no option of the component"
                )


def _check_parts(kind: str, value: Any, path: str) -> None:
    """That an option names components that there are, with options that they take."""
    for place, item in enumerate(value) if isinstance(value, list) else [(None, value)]:
        where = path if place is None else f"{path}.{place}"
        try:
            part = WRITTEN.validate_python(item)
        except ValidationError as error:
            raise translate(error, where) from None
        resolve(kind, part, where)


def check(
    annotation: str, value: Any, path: str, limits: tuple[Any, Any] | None = None, least: int | None = None
) -> Any:
    """The value as the annotation has it (an integer for a float becomes one), or an error. `least`: where there are no `limits`."""
    wanted, test = _reader(annotation)
    found = test(value)
    if found is _WRONG:
        raise _mismatch(annotation, wanted, value, path)
    hint = ""
    if limits is None:
        limits = (least if least is not None else 0 if _counts(annotation) else None, None)
        hint = "a component says otherwise by LIMITS"
    low, high = limits
    for number in found if isinstance(found, list) else [found]:
        if isinstance(number, bool) or not isinstance(number, int | float):
            continue
        if isinstance(number, float) and not math.isfinite(number):
            raise problem(path, f"{show_value(number)} is not a finite number")
        if (low is not None and number < low) or (high is not None and number > high):
            sides = [f">= {low}"] * (low is not None) + [f"<= {high}"] * (high is not None)
            raise problem(path, f"{show_value(number)} is out of range", allowed=[" and ".join(sides)], hint=hint)
    return found


@functools.lru_cache(maxsize=1024)
def _counts(annotation: str) -> bool:
    """Whether an option is an integer, or a list of them."""
    names = {node.id for node in ast.walk(ast.parse(annotation.strip("'\""))) if isinstance(node, ast.Name)}
    return "int" in names and "float" not in names


def check_plain(value: Any, path: str) -> None:
    """Raise unless a value means the same on every machine: YAML also has dates, bytes, infinities and keys that are no words."""
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


_WRONG = object()


def _mismatch(annotation: str, wanted: str, value: Any, path: str) -> RankfallError:
    """What is wrong with a value; for a list, with its first wrong item; for a choice, with the nearest allowed one."""
    node = ast.parse(annotation.strip("'\""), mode="eval").body
    inner = _item(node)
    if inner is not None and isinstance(value, list | tuple):
        told, read = _read_node(inner)
        place, item = next((place, item) for place, item in enumerate(value) if read(item) is _WRONG)
        return _mismatch(ast.unparse(inner), told, item, f"{path}.{place}")
    choices = _choices(node)
    if choices and isinstance(value, str):
        return problem(path, f"{show_value(value)} is not possible", allowed=list(map(str, choices)), given=value)
    return wrong_type(path, value, wanted)


def _item(node: ast.expr) -> ast.expr | None:
    """The annotation of a list's items, None for what is no list."""
    if isinstance(node, ast.BinOp):
        return _item(node.left) or _item(node.right)
    if isinstance(node, ast.Subscript) and ast.unparse(node.value) in ("list", "Sequence", "tuple"):
        return node.slice.elts[0] if isinstance(node.slice, ast.Tuple) else node.slice
    return None


def choices(annotation: str) -> list[Any]:
    """The words of a Literal, alone or beside None."""
    node = ast.parse(annotation.strip("'\""), mode="eval").body if annotation else ast.Constant(None)
    parts = [node.left, node.right] if isinstance(node, ast.BinOp) else [node]
    return [choice for part in parts for choice in _choices(part)]


def _choices(node: ast.expr) -> list[Any]:
    """The values of a Literal."""
    if not (isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("Literal")):
        return []
    return list(ast.literal_eval(node.slice)) if isinstance(node.slice, ast.Tuple) else [ast.literal_eval(node.slice)]


@functools.lru_cache(maxsize=1024)
def _reader(annotation: str) -> tuple[str, Callable[[Any], Any]]:
    """A description of the allowed values, and a function that returns the value, or _WRONG."""
    if not annotation:
        return "anything", _plain
    return _read_node(ast.parse(annotation.strip("'\""), mode="eval").body)


def _read_node(node: ast.expr) -> tuple[str, Callable[[Any], Any]]:
    if isinstance(node, ast.Constant) and node.value is None:
        return "null", lambda value: value if value is None else _WRONG
    if isinstance(node, ast.Name) and node.id in WORDS:
        return WORDS[node.id], functools.partial(_simple, node.id)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        (left, read_left), (right, read_right) = _read_node(node.left), _read_node(node.right)

        def either(value: Any) -> Any:
            found = read_left(value)
            return read_right(value) if found is _WRONG else found

        return f"{left} or {right}", either
    inner = None if isinstance(node, ast.BinOp) else _item(node)
    if inner is not None:
        name, read = _read_node(inner)

        def every(value: Any) -> Any:
            items = [read(item) for item in value] if isinstance(value, list | tuple) else [_WRONG]
            return _WRONG if any(item is _WRONG for item in items) else items

        return f"a list, each item {name}", every
    choices = _choices(node)
    if choices:

        def chosen(value: Any) -> Any:  # true is no 1
            return value if any(type(value) is type(choice) and value == choice for choice in choices) else _WRONG

        return "one of " + ", ".join(map(str, choices)), chosen
    return ast.unparse(node), _plain


def _simple(kind: str, value: Any) -> Any:
    if kind == "float":
        value = as_float(value)
    expected = {"int": int, "float": float, "bool": bool, "str": str, "list": list, "dict": dict}[kind]
    return value if type(value) is expected else _WRONG


def _plain(value: Any) -> Any:
    """Tuples are lists in a configuration."""
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _unknown_option(kind: str, name: str, path: str, key: Any, known: list[str]) -> RankfallError:
    beside = BESIDE.get(kind, ())
    if not known and isinstance(key, str) and not nearest(key, beside):
        return problem(f"{path}.{key}", f"{kind} {name!r} takes no options")
    return unknown_key(path, key, [*known, *beside])
