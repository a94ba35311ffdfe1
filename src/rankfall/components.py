"""Components: each part of the benchmark is a file, located by its name and loaded only when a cell names it.

`nets/normalisers/l2.py` is the normaliser `l2`: it defines the function `l2`, or the class `L2Normaliser` or `L2`. A quantity has a folder
in its study: `rank/law/` holds the measure, the table and the figure `law`, as `measure.py`, `columns.py` and `figure.py`, and its texts
for the scorecard and the page. A claim has a folder in `studies/claims/` of the checkout, with `experiment.py` and `rule.py`. A component
outside the package is named by dotted path, `mylab.attn:Sharp`, and a quantity by its module, `mylab.entropy`: a folder with the same
files, or one file. There is no registry: adding a component is adding a file.

Everything but `load` reads source text and imports nothing, so planning ten thousand cells never starts torch. What a user's component does
not declare is learned by calling it once, in a process of its own (`learned.py`):

- options are the keyword-only parameters of the function (or of the class's `__init__`), with their defaults and annotations;
- facts are module-level literals in capitals, such as `INPUTS = "tokens"` (`run/config/rules.py` and `run/plan/build.py` list those that
  the plan reads).
"""

import ast
import functools
import importlib
import inspect
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rankfall.design import Architecture, Task, Training, field_declarations, with_default
from rankfall.errors import RankfallError, suggest
from rankfall.learned import LEARNED, learn
from rankfall.modules import find_module, local_folders, root_of

AUTO = "auto"  # selects the component that fits the task, for kinds that depend on its inputs and targets
AUTO_KINDS = with_default(Architecture, AUTO) | with_default(Training, AUTO)
STUDIES = ("rank", "position", "identity", "use", "overview", "studies/prediction")
OF_A_STUDY = {
    "measure": "measure.py", "table": "columns.py", "figure": "figure.py",
    "headline": "headline.py", "chart": "chart.py", "sentence": "sentence.py", "claim": "rule.py", "published": "published.py",
}  # fmt: skip
EXPERIMENT, OF_AN_EXPERIMENT = "experiment.py", {"TABLE": "evidence", "NEEDS": "nothing"}  # the measure of a claim
LISTS = {  # kinds that a component can find, and the name that each of their files defines: a list, or the rule of a claim
    "headline": "HEADLINES", "chart": "CHARTS", "sentence": "SENTENCES", "claim": "decide", "published": "PUBLISHED",
}  # fmt: skip
KINDS: Mapping[str, tuple[str, ...]] = {  # kind -> patterns of its files, with * for the name
    **{kind: (f"{about['folder']}/*.py",) for kind, about in field_declarations(Task, Architecture, Training).items()},
    **{kind: tuple(f"{study}/*/{file}" for study in STUDIES) for kind, file in OF_A_STUDY.items()},
    "measure": (*(f"{study}/*/measure.py" for study in STUDIES), f"studies/claims/*/{EXPERIMENT}"),
    "claim": ("studies/claims/*/rule.py",),
}


@dataclass(frozen=True)
class Location:
    """The module and file of a component: enough to import it, or to read it without importing."""

    module: str
    file: Path
    attributes: tuple[str, ...]  # candidates, in order of preference


@dataclass(frozen=True)
class Option:
    """One keyword-only parameter of a component."""

    annotation: str  # source text, "" when there is none
    required: bool
    literal: bool  # the default is a literal, known without running code
    default: Any = None


@dataclass(frozen=True)
class Description:
    """The properties of a component that its source text declares."""

    location: Location
    options: Mapping[str, Option]
    facts: Mapping[str, Any]
    computed: tuple[str, ...] = ()  # names in capitals whose values are not literals
    is_class: bool = False
    in_file: frozenset[str] = frozenset()  # options of all functions and classes of the file
    unknown: str = ""  # why nothing was learned by calling it


def names(kind: str) -> list[str]:
    """Return the names of a kind's components, sorted; `auto` is included for kinds that support it."""
    found = {AUTO} if kind in AUTO_KINDS else set()
    for place in KINDS[kind]:
        before, _, after = place.partition("*")
        folder = root_of(place) / before
        found |= {str(path.relative_to(folder)).removesuffix(after) for path in folder.glob(f"*{after}")}
    return sorted(name for name in found if not name.startswith("_"))


def locate(kind: str, name: str) -> Location | None:
    """Locate a component's file without importing it; return None for `auto`, which has no file."""
    if ":" in name:
        return _locate_external(name)
    if "." in name and kind in OF_A_STUDY:
        return _locate_in_quantity(kind, name)
    places = [] if name.startswith("_") else _own_locations(kind, name, os.getcwd())
    for place in places:
        if os.path.isfile(place.file):  # not cached: the file may vanish
            if place is not places[0]:  # tried first next time: a plan locates components a hundred thousand times
                places.remove(place)
                places.insert(0, place)
            return place
    if name in names(kind):
        return None
    raise RankfallError(f"unknown {kind} {name!r}")


def describe(kind: str, name: str) -> Description | None:
    """Return the options and facts of a component, read from its syntax tree and, for a user's, learned by calling it; None for `auto`."""
    location = locate(kind, name)
    if location is None:
        return None
    stat = location.file.stat()
    if location.module.startswith(f"{__name__.partition('.')[0]}."):
        return _describe_file(location, stat.st_mtime_ns, stat.st_size)
    return _describe_external(kind, name, location, stat.st_mtime_ns, stat.st_size)


def describe_columns(table: str) -> Description | None:
    """Describe the declaration of a table; None for a user's quantity that has none, whose columns are those of its rows."""
    try:
        return describe("table", table)
    except RankfallError:
        if "." not in table:
            raise
        locate("measure", table)
        return None


def facts_of(kind: str, name: str) -> Mapping[str, Any]:
    """Return the facts of a component; empty for `auto` and for an empty name."""
    found = describe(kind, name) if name else None
    return found.facts if found else {}


def facts(location: Location) -> dict[str, Any]:
    """Return the facts of a file, which need not define a component."""
    return _facts(ast.parse(location.file.read_bytes()))


def load(kind: str, name: str) -> Any:
    """Import a component and return its function or class. No other code imports components."""
    location = locate(kind, name)
    if location is None:
        raise RankfallError(f"{kind} {name!r} stands for no component, so there is nothing to load")
    # For components of users and what they import; last, so that a file lying around cannot shadow an installed package.
    sys.path += [folder for folder in local_folders() if folder not in sys.path]
    before = sys.dont_write_bytecode
    # Python trusts a compiled file whose source has the recorded size and time, and an archive or `touch -r` can give these to an edited
    # source. So no compiled file is written.
    sys.dont_write_bytecode = True
    try:
        module = importlib.import_module(location.module)
    finally:
        sys.dont_write_bytecode = before
    for attribute in location.attributes:
        if hasattr(module, attribute):
            return getattr(module, attribute)
    raise _lacking(location, vars(module))


def bound(kind: str, component: Any) -> Any:
    """Load a component and bind its options: return an instance of a class, or a partial function."""
    found = load(kind, component.name)
    return found(**component.options) if inspect.isclass(found) else functools.partial(found, **component.options)


@functools.lru_cache(maxsize=4096)
def _own_locations(kind: str, name: str, working_directory: str) -> list[Location]:
    """Return the possible locations of a component. `locate` moves the last match to the front of this cached list."""
    attributes = (LISTS[kind],) if kind in LISTS else (name, _camel(name) + _camel(kind), _camel(name))
    found = []
    for place in KINDS[kind]:
        file = place.replace("*", name)
        module = ("" if place.startswith("studies/") else "rankfall.") + file.removesuffix(".py").replace("/", ".")
        found.append(Location(module, root_of(place) / file, attributes))
    return found


def _camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def _locate_external(name: str) -> Location:
    module, _, attribute = name.partition(":")
    if not attribute.isidentifier() or not all(part.isidentifier() for part in module.split(".")):
        raise RankfallError(f"{name!r} is not a dotted path: write package.module:Attribute")
    spec = find_module(module)
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        raise RankfallError(f"{name!r}: no Python module {module!r} is installed or lies in the working directory")
    return Location(module, Path(spec.origin), (attribute,))


def _locate_in_quantity(kind: str, quantity: str) -> Location:
    """Locate a component of a user's quantity: the file of the kind in its folder, or its single file, where functions are named by their
    kind: `measure`, `columns`, `figure`."""
    word, last = OF_A_STUDY[kind].removesuffix(".py"), quantity.rpartition(".")[2]
    in_file = (LISTS.get(kind, word),)
    in_folder = in_file if kind in LISTS else (last, _camel(last) + _camel(kind), _camel(last), word)
    spec = find_module(quantity) if all(part.isidentifier() for part in quantity.split(".")) else None
    folders = list(spec.submodule_search_locations or ()) if spec else []
    if spec is None or not (folders or (spec.origin or "").endswith(".py")):
        raise RankfallError(
            f"{quantity!r}: no Python module {quantity!r} is installed or lies in the working directory"
        )
    if not folders:
        return Location(quantity, Path(str(spec.origin)), in_file)
    files = [f"{word}.py", *[EXPERIMENT] * (kind == "measure")]
    file = next((path for folder in folders for name in files if (path := Path(folder) / name).is_file()), None)
    if file is None:
        raise RankfallError(f"{quantity!r} has no {kind}: there is no {' or '.join(files)} in {folders[0]}")
    return Location(f"{quantity}.{file.stem}", file, in_folder)


@functools.lru_cache(maxsize=4096)
def _describe_file(location: Location, mtime: int, size: int) -> Description:
    """Describe a component. Time and size of its file are part of the cache's key, so a long-lived process sees an edit."""
    return _describe(location, location.file.read_bytes())


@functools.lru_cache(maxsize=4096)
def _describe_external(kind: str, name: str, location: Location, mtime: int, size: int) -> Description:
    """Describe a user's component, with what is learned by calling it in place of what it does not declare."""
    declared = _describe_file(location, mtime, size)
    if kind in ("measure", "figure") and ":" not in name:  # a quantity's table is named by its module
        by_default: dict[str, Any] = {"TABLE": name} if kind == "measure" else {"TABLES": [name]}
        by_default = OF_AN_EXPERIMENT if location.file.name == EXPERIMENT else by_default
        return replace(declared, facts={**by_default, **declared.facts})
    wanted = LEARNED.get(kind, ())
    if kind in ("normaliser", "residual") and not declared.is_class:
        wanted = ()  # a function has no methods, and asks for nothing more
    if all(fact in declared.facts or fact in declared.computed for fact in wanted):
        return declared
    known = learn(kind, name, location.file)
    return replace(declared, facts={**known.facts, **declared.facts}, unknown=known.reason)


@functools.lru_cache(maxsize=4096)
def _describe(location: Location, content: bytes) -> Description:
    try:
        tree = ast.parse(content, filename=str(location.file))
    except SyntaxError as error:
        raise RankfallError(f"{location.file}, line {error.lineno}: {error.msg}") from None
    bodies = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    node = next((bodies[name] for name in location.attributes if name in bodies), None)
    if node is None:
        raise _lacking(location, bodies)
    computed = tuple(name for name, value in _capitals(tree) if not _literal(value)[0])
    in_file = frozenset(option for body in bodies.values() for option in _options(body))
    return Description(location, _options(node), _facts(tree), computed, isinstance(node, ast.ClassDef), in_file)


def _lacking(location: Location, defined: Iterable[str]) -> RankfallError:
    """Return the error of a file that does not define the function or class that it is named for."""
    names = [name for name in defined if not name.startswith("_")]
    hint = suggest(location.attributes[0], names)
    wanted = " or ".join(map(repr, dict.fromkeys(location.attributes)))
    return RankfallError(f"{location.file} defines no function or class {wanted}{hint}")


def _options(node: ast.FunctionDef | ast.ClassDef) -> dict[str, Option]:
    if isinstance(node, ast.ClassDef):
        inner = [item for item in node.body if isinstance(item, ast.FunctionDef) and item.name == "__init__"]
        if not inner:
            return {}
        node = inner[0]
    options = {}
    for argument, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
        annotation = "" if argument.annotation is None else ast.unparse(argument.annotation)
        literal, value = _literal(default)
        options[argument.arg] = Option(annotation, default is None, literal, value)
    return options


def _facts(tree: ast.Module) -> dict[str, Any]:
    return {name: value for name, node in _capitals(tree) for literal, value in [_literal(node)] if literal}


def _capitals(tree: ast.Module) -> Iterator[tuple[str, ast.expr | None]]:
    """Yield the names in capitals that a module assigns, and their values."""
    for node in (node for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)):
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if isinstance(target, ast.Name) and target.id.isupper():
            yield target.id, node.value


def _literal(node: ast.expr | None) -> tuple[bool, Any]:
    if node is None:
        return False, None
    try:
        return True, ast.literal_eval(node)
    except ValueError:
        return False, None
