"""Describe components by importing them: `python -m rankfall.trial.describe REQUESTS ANSWERS`, which `descriptions.py` starts.

- Options are the keyword-only parameters of the function, or of the class's `__init__`, with their defaults and annotations.
- Facts are the names in capitals of the module, such as `INPUTS = "tokens"`, whose values are plain data.
- What a user's component does not declare is learned by calling it (`learn.py`).
"""

import ast
import inspect
import pickle
import sys
import sysconfig
import traceback
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import FunctionType, NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from rankfall import components
from rankfall.descriptions import PACKAGE, Answer, ComponentRequest, Description, Option
from rankfall.errors import RankfallError, describe_error

PATHS = sysconfig.get_paths()
INSTALLED = (*(f"{PATHS[name]}/" for name in ("stdlib", "platstdlib", "purelib", "platlib")), f"{PACKAGE}/", "<")
SEQUENCES, MAPPINGS = (list, Sequence, Iterable, Collection), (dict, Mapping)
LEARNED: Mapping[str, tuple[str, ...]] = {  # kind -> facts that can be learned by calling a component
    "task": ("INPUTS", "TARGETS"),
    "attention": ("PROVIDES", "OFFERS", "IGNORES", "BREAKS"),
    "position": ("TOUCHES", "ADMITS", "PROVIDES", "BREAKS"),
    "normaliser": ("TOUCHES", "PROVIDES"),
    "sentinels": ("COUNT",),
    "block": ("BREAKS", "TOKENWISE"),
    "residual": ("BREAKS",),
}


def describe(request: ComponentRequest) -> Description:
    """Import a component and return its description. Only names that its own file assigns are facts."""
    kind, _, location = request
    module, component = components.import_component(location)
    assigned = {
        node.id
        for node in ast.walk(ast.parse(location.file.read_bytes()))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    capitals = {name: value for name, value in vars(module).items() if name.isupper() and name in assigned}
    facts = {name: value for name, value in capitals.items() if is_plain(value)}
    learned: dict[str, Any] = {}
    unknown = ""
    learnable = LEARNED.get(kind, ())
    if kind in ("normaliser", "residual") and not inspect.isclass(component):
        learnable = ()  # a function has no methods, and asks for nothing more
    if not location.shipped and any(fact not in capitals for fact in learnable):
        learned, unknown = learn(kind, component, location.file)
    return Description(
        location,
        options_of(component),
        {**learned, **facts},
        (document(component) if callable(component) else "", document(module)),
        unknown,
        component() if kind == "table" and "headline" not in facts.get("FINDS", ()) else None,
    )


def document(item: Any) -> str:
    """Return the docstring of a module or component without its indentation."""
    return inspect.cleandoc(item.__doc__ or "")


def learn(kind: str, component: Any, file: Path) -> tuple[dict[str, Any], str]:
    """Return the facts that a call with default options shows, and an error with the last line of the component's file, if any."""
    from rankfall.trial.learn import LEARN  # imports torch

    try:
        return LEARN[kind](component, {}), ""
    except Exception as error:  # whatever somebody's file may raise; its trial says more
        lines = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
        where = f" in line {lines[-1].lineno} of {file.name}: {lines[-1].line}" if lines else ""
        return {}, describe_error(error) + where


def options_of(component: Any) -> dict[str, Option]:
    """Return the options of a function or class by name."""
    function = inspect.unwrap(component.__init__ if inspect.isclass(component) else component)
    if not isinstance(function, FunctionType):  # an object's `__init__` in C, or the list of a file of lists
        return {}
    parameters = (p for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY)
    return {p.name: option_of(p, function.__globals__) for p in parameters}


def option_of(parameter: inspect.Parameter, names: dict[str, Any]) -> Option:
    """Return a parameter as an option; `names` are the globals in which its annotation is evaluated."""
    hint, default = parameter.annotation, parameter.default
    if isinstance(hint, str):  # in quotes, or by `from __future__ import annotations`
        try:
            hint = eval(hint, names)
        except Exception:  # a name for type checkers alone
            hint = Any
    required, plain = default is parameter.empty, is_plain(default)
    return Option(plain_type(hint), required, plain, default if plain else None)


def plain_type(hint: Any) -> Any:
    """Return the part of a type that plain data can have. Any other type becomes Any, and the component checks the value."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint in (int, float, bool, str, list, dict, None, NoneType) or origin is Literal:
        return hint
    if origin is Annotated and all(
        type(item).__module__.startswith(("pydantic", "annotated_types")) for item in hint.__metadata__
    ):
        return Annotated[plain_type(inner[0]), *hint.__metadata__]
    if origin in (Union, UnionType):
        parts = [plain_type(part) for part in inner]
        return Any if Any in parts else Union[tuple(parts)]  # noqa: UP007
    if origin is tuple and inner and inner[-1] is not ...:
        return tuple[tuple(map(plain_type, inner))]  # type: ignore[misc]
    if origin in SEQUENCES or origin is tuple:
        return list[plain_type(inner[0])]  # type: ignore[misc]
    return dict if origin in MAPPINGS else Any


def is_plain(value: Any) -> bool:
    """Return whether YAML can write a value: numbers, text, and lists and mappings of them."""
    if isinstance(value, list | tuple):
        return type(value) in (list, tuple) and all(map(is_plain, value))
    if type(value) is dict:
        return all(map(is_plain, [*value, *value.values()]))
    return value is None or type(value) in (int, float, bool, str)


def is_local(file: str) -> bool:
    """Return whether a user wrote a file: it is neither installed, nor Python's, nor this package's."""
    return file != "" and not file.startswith(INSTALLED)


def answer(request: ComponentRequest) -> Answer:
    """Return the description of a component or the error that prevents it, and whether the answer may be cached."""
    result: Description | RankfallError
    try:
        result = describe(request)
        learned = not request.location.shipped and request.kind in LEARNED
        lasting = not (result.unknown or (learned and "DATA" in result.facts))
    except RankfallError as error:
        result, lasting = error, True
    except BaseException as error:  # importing somebody's file may raise anything, and end the process
        result, lasting = RankfallError(describe_failure(error, request)), False
    return Answer(result, lasting)


def describe_failure(error: BaseException, request: ComponentRequest) -> str:
    """Return an import's error with the last file and line that belong to a user or to the component."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}, line {error.lineno}: {error.msg}: {(error.text or '').strip()}"
    frames = traceback.extract_tb(error.__traceback__)
    near = [frame for frame in frames if is_local(frame.filename) or frame.filename == str(request.location.file)]
    where = f"{near[-1].filename}, line {near[-1].lineno}" if near else str(request.location.file)
    return f"{where}: cannot be imported: {describe_error(error)}"


def main(requests: str, answers: str) -> None:
    """Write an answer for each pickled request; flush each, since importing the next component may end the process."""
    with open(answers, "wb") as file:
        for request in pickle.loads(Path(requests).read_bytes()):
            pickle.dump((request, answer(request)), file)
            file.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
