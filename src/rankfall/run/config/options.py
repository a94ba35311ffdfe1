"""Components of a configuration, checked against their source text: that they exist and take these options with these types.

Nothing is imported. The check reads the annotation of the keyword-only parameter (int, float, bool, str, list[...], Literal[...],
tuple[...], X | None; the component checks others) and the component's `LIMITS`, a literal such as `{"train": (1, None)}`. Without `LIMITS`
the defaults of `least.py` apply. `PARTS = {"masks": "mask"}` says that an option names components of a kind. They are checked like those of
an architecture.
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
from rankfall.modules import root_of
from rankfall.run.config.bounds import NAME
from rankfall.run.config.facts import FORMS, READ_ALONE, READ_ALONE_OF
from rankfall.run.config.least import BESIDE, check_entries, check_heads, explain_limits, is_own, limits_of
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
        empty = component.options.get(name) is None and _reader(option.annotation)[1](None) is _WRONG
        if option.required and (name not in component.options or empty):
            wanted = [option.annotation] if option.annotation else []
            raise problem(f"{path}.{name}", f"{kind} {component.name!r} needs this option", allowed=wanted)
        if name in component.options:
            check_plain(component.options[name], f"{path}.{name}")
            limits, hint = limits_of(kind, found, name), explain_limits(found, name)
            complete[name] = check(option.annotation, component.options[name], f"{path}.{name}", limits, hint)
            check_entries(kind, found, name, complete[name], f"{path}.{name}")
            if name in found.facts.get("PARTS", {}):
                _check_parts(found.facts["PARTS"][name], complete[name], f"{path}.{name}")
        elif option.literal:
            default = _reader(option.annotation)[1](option.default)  # `float = 1` becomes 1.0, like a written 1
            complete[name] = _plain(option.default) if default is _WRONG else default
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
        if name in known or ":" in name or ("." in name and kind in components.OF_A_STUDY):  # an existing file
            raise problem(path, str(error)) from None
        hint = "" if known else f"there is no file {components.KINDS[kind][0]}"
        if kind in components.OF_A_STUDY and not (root_of("studies/") / "studies" / "claims").is_dir():
            hint = "claims and prediction are in studies/ of a checkout of Rankfall, not in the installed package: run there"
        if "." in name:
            hint = f"write a component outside of this package as {':'.join(name.rsplit('.', 1))}"
        raise problem(path, f"unknown {kind} {name!r}", allowed=known, given=name, hint=hint) from None


def _check_facts(kind: str, found: Description) -> None:
    for fact in found.computed:
        if fact in READ_ALONE or fact in READ_ALONE_OF.get(kind, ()):
            raise RankfallError(
                f"{found.location.file}: {fact} is computed, and a plan runs nothing: write literals, such as 6 and not FEWEST"
            )
    for fact, (fits, wanted) in FORMS.items():
        if fact in found.facts and not fits(found.facts[fact]):
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


def check(annotation: str, value: Any, path: str, limits: tuple[Any, Any] = (None, None), hint: str = "") -> Any:
    """Return the value in the annotated type (an integer for a float becomes a float), or raise. `hint` is for values beyond the limits."""
    wanted, test = _reader(annotation)
    found = test(value)
    if found is _WRONG:
        raise _mismatch(annotation, wanted, value, path)
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


_WRONG = object()


def _mismatch(annotation: str, wanted: str, value: Any, path: str) -> RankfallError:
    """Return the error for a value. For a list it names the first wrong item, for a choice the nearest allowed value."""
    node = ast.parse(annotation.strip("'\""), mode="eval").body
    inner = _items(node, value)
    for place, (one, item) in enumerate(zip(inner, value)) if inner else ():
        told, read = _read_node(one)
        if read(item) is _WRONG:
            return _mismatch(ast.unparse(one), told, item, f"{path}.{place}")
    choices = _choices(node)
    if choices and isinstance(value, str):
        return problem(path, f"{show_value(value)} is not possible", allowed=list(map(str, choices)), given=value)
    return wrong_type(path, value, wanted)


def _items(node: ast.expr, value: Any) -> list[ast.expr] | None:
    """Return the annotation of each item of a list, or None if the value is not a list of the annotated length."""
    if isinstance(node, ast.BinOp):
        return _items(node.left, value) or _items(node.right, value)
    if not isinstance(value, list | tuple) or not isinstance(node, ast.Subscript):
        return None
    inner = node.slice
    if ast.unparse(node.value) in ("list", "Sequence"):
        return [inner] * len(value)
    if ast.unparse(node.value) != "tuple":
        return None
    parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
    if len(parts) == 2 and ast.unparse(parts[1]) == "...":
        return [parts[0]] * len(value)
    return parts if len(parts) == len(value) else None


def choices(annotation: str) -> list[Any]:
    """Return the values of a Literal, alone or in a union with None."""
    node = ast.parse(annotation.strip("'\""), mode="eval").body if annotation else ast.Constant(None)
    parts = [node.left, node.right] if isinstance(node, ast.BinOp) else [node]
    return [choice for part in parts for choice in _choices(part)]


def _choices(node: ast.expr) -> list[Any]:
    """Return the values of a Literal."""
    if not (isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("Literal")):
        return []
    return list(ast.literal_eval(node.slice)) if isinstance(node.slice, ast.Tuple) else [ast.literal_eval(node.slice)]


@functools.lru_cache(maxsize=1024)
def _reader(annotation: str) -> tuple[str, Callable[[Any], Any]]:
    """Return a description of the allowed values, and a function that returns the value or _WRONG."""
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

        def every(value: Any) -> Any:
            inner = _items(node, value)
            items = [_WRONG] if inner is None else [_read_node(one)[1](item) for one, item in zip(inner, value)]
            return _WRONG if any(item is _WRONG for item in items) else items

        return _name_list(node), every
    if isinstance(node, ast.Subscript) and ast.unparse(node.value) in ("dict", "Mapping"):
        return WORDS["dict"], functools.partial(_simple, "dict")
    choices = _choices(node)
    if choices:

        def chosen(value: Any) -> Any:  # True is not 1
            return value if any(type(value) is type(choice) and value == choice for choice in choices) else _WRONG

        return "one of " + ", ".join(map(str, choices)), chosen
    return ast.unparse(node), _plain


def _name_list(node: ast.Subscript) -> str:
    """Describe the items of a list in words."""
    inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    names = [_read_node(one)[0] for one in inner if ast.unparse(one) != "..."]
    if ast.unparse(node.value) != "tuple" or len(names) < len(inner):
        return f"a list, each item {names[0]}"
    return f"a list of {len(names)}: {', '.join(names)}"


def _simple(kind: str, value: Any) -> Any:
    if kind == "float":
        value = as_float(value)
    expected = {"int": int, "float": float, "bool": bool, "str": str, "list": list, "dict": dict}[kind]
    return value if type(value) is expected else _WRONG


def _plain(value: Any) -> Any:
    """Return a value with tuples as lists, as a configuration has them."""
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _unknown_option(kind: str, name: str, path: str, key: Any, known: list[str]) -> RankfallError:
    beside = BESIDE.get(kind, ())
    if not known and isinstance(key, str) and not nearest(key, beside):
        return problem(f"{path}.{key}", f"{kind} {name!r} takes no options")
    return unknown_key(path, key, [*known, *beside])
