"""Components as a configuration names them, checked against their source text: does it exist, does it take these options, of these types.

Nothing is imported. What is checked is the annotation of the keyword-only parameter (int, float, bool, str, list[...], Literal[...],
X | None; others are left to the component) and the component's `LIMITS`, a literal such as `{"train": (1, None)}`. An integer without
limits is a size or a count, and so must not be negative. Here too: whether a component's facts have the form that they must have.
"""

import ast
import functools
import math
from collections.abc import Callable
from typing import Any

from rankfall import components
from rankfall.components import Description
from rankfall.config.bounds import NAME
from rankfall.config.problems import problem, shown, unknown_key, wrong_type
from rankfall.config.values import Component, as_float
from rankfall.errors import RankfallError

WORDS = {
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "str": "text",
    "list": "a list",
    "dict": "a mapping",
}


def _pairs(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, list | tuple) and len(item) == 2 for item in value)


def _reasons(value: Any) -> bool:
    return _pairs(value) and all(isinstance(wanted, dict) and isinstance(why, str) for wanted, why in value)


def _words(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(item, str) for item in value)


FORMS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "LIMITS": (
        lambda value: isinstance(value, dict) and _pairs(list(value.values())),
        "a mapping of options to (lowest, highest), None for no bound",
    ),
    "REFUSES": (_reasons, "a list of (filter of cells, reason)"),
    "REQUIRES": (_reasons, "a list of (filter of cells, reason)"),
    "DATA": (_words, "a list of files"),
    "READS": (
        lambda value: isinstance(value, dict) and _words([*value, *value.values()]),
        "a mapping of words to modules",
    ),
    "TABLES": (_words, "a list of tables"),
}


def resolve(kind: str, component: Component, path: str) -> Component:
    """The component with every option at its value, so that writing a default changes nothing."""
    found = description(kind, component.name, path)
    if found is None:
        for key in component.options:
            raise problem(f"{path}.{key}", f"{component.name!r} takes no options")
        return component
    for key in component.options:
        if key not in found.options:
            raise _unknown_option(kind, component.name, path, key, list(found.options))
    complete = {}
    for name, option in found.options.items():
        empty = component.options.get(name) is None and _reader(option.annotation)[1](None) is _WRONG
        if option.required and (name not in component.options or empty):
            raise problem(f"{path}.{name}", f"{kind} {component.name!r} needs this option", allowed=[option.annotation])
        if name in component.options:
            check_plain(component.options[name], f"{path}.{name}")
            limits = found.facts.get("LIMITS", {}).get(name)
            complete[name] = check(option.annotation, component.options[name], f"{path}.{name}", limits)
        elif option.literal:
            default = _reader(option.annotation)[1](option.default)  # `float = 1` is 1.0, as 1 is when it is written
            complete[name] = _plain(option.default) if default is _WRONG else default
    return Component(name=component.name, options=complete)


def description(kind: str, name: str, path: str) -> Description | None:
    """Like `components.describe`, with errors that say where in the configuration the name stands."""
    if len(name) > 2 * NAME:
        raise problem(path, f"{shown(name)} has {len(name)} letters", allowed=[f"names of at most {2 * NAME} letters"])
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
        hint = "" if known else f"the folder {components.KINDS[kind]} is empty"
        raise problem(path, f"unknown {kind} {name!r}", allowed=known, given=name, hint=hint) from None


def _check_facts(found: Description) -> None:
    for fact, (fits, wanted) in FORMS.items():
        if fact in found.facts and not fits(found.facts[fact]):
            raise RankfallError(f"{found.location.file}: {fact} must be {wanted}, not {shown(found.facts[fact])}")
    for name in found.facts.get("LIMITS", {}):
        if name not in found.options:
            raise RankfallError(f"{found.location.file}: LIMITS names {name!r}, which is no option of the component")


def check(annotation: str, value: Any, path: str, limits: tuple[Any, Any] | None = None) -> Any:
    """The value as the annotation has it (an integer for a float becomes one), or an error."""
    wanted, test = _reader(annotation)
    found = test(value)
    if found is _WRONG:
        raise wrong_type(path, value, wanted)
    hint = ""
    if limits is None:
        limits = (0 if _counts(annotation) else None, None)
        hint = "a component says otherwise by LIMITS"
    low, high = limits
    for number in found if isinstance(found, list) else [found]:
        if isinstance(number, bool) or not isinstance(number, int | float):
            continue
        if isinstance(number, float) and not math.isfinite(number):
            raise problem(path, f"{shown(number)} is not a finite number")
        if (low is not None and number < low) or (high is not None and number > high):
            sides = [f">= {low}"] * (low is not None) + [f"<= {high}"] * (high is not None)
            raise problem(path, f"{shown(number)} is out of range", allowed=[" and ".join(sides)], hint=hint)
    return found


@functools.lru_cache(maxsize=1024)
def _counts(annotation: str) -> bool:
    """Whether an option is an integer, or a list of them."""
    names = {node.id for node in ast.walk(ast.parse(annotation.strip("'\""))) if isinstance(node, ast.Name)}
    return "int" in names and "float" not in names


def check_plain(value: Any, path: str) -> None:
    """Raise unless a value means the same on every machine: YAML also has dates, bytes, infinities and keys that are no words."""
    if isinstance(value, float) and not math.isfinite(value):
        raise problem(path, f"{shown(value)} is not a finite number")
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


@functools.lru_cache(maxsize=1024)
def _reader(annotation: str) -> tuple[str, Callable[[Any], Any]]:
    """What a value must be, in words, and a function that returns it, or _WRONG."""
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
    if isinstance(node, ast.Subscript) and ast.unparse(node.value) in ("list", "Sequence", "tuple"):
        inner = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) else node.slice
        name, read = _read_node(inner)

        def every(value: Any) -> Any:
            items = [read(item) for item in value] if isinstance(value, list | tuple) else [_WRONG]
            return _WRONG if any(item is _WRONG for item in items) else items

        return f"a list, each item {name}", every
    if isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("Literal"):
        choices = (
            list(ast.literal_eval(node.slice)) if isinstance(node.slice, ast.Tuple) else [ast.literal_eval(node.slice)]
        )

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
    if not known and isinstance(key, str):
        return problem(f"{path}.{key}", f"{kind} {name!r} takes no options")
    return unknown_key(path, key, known)
