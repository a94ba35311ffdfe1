"""The imports of a module, read from its syntax tree: every form of import that Python has, or an error if the source text does not
determine it.

The collected names are candidates: `from a import b` names `a` and, in case it is a module, `a.b`. The caller knows the files and decides.

Every job builds a plan, and reading the syntax trees of a few hundred files takes most of that time. So analyses of modules (their digests
and imports) are cached in the user's cache folder, by the content of the file and the name of the module. The cache file is named by the
text of the analysing modules and the version of Python, which determines syntax trees. It is replaced atomically by the known and the new
entries. If two processes write at the same time, one's entries are lost, and those files are analysed again.
"""

import ast
import functools
import hashlib
import pickle
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from rankfall.caches import use
from rankfall.disk import StoreError, atomic, cache_home

CHECKING = "TYPE_CHECKING"
STATEMENTS = ("body", "orelse", "finalbody", "handlers", "cases")  # fields that hold lists of statements
BY_NAME = frozenset({"importlib.import_module", "importlib.__import__", "__import__"})
# Ways to run code that no import statement names. find_spec and similar functions run nothing and are allowed.
LOADERS = BY_NAME | {
    "importlib.reload",
    "importlib.util.spec_from_file_location",
    "importlib.util.module_from_spec",
    "runpy.run_module",
    "runpy.run_path",
    "exec",
    "eval",
}


@dataclass
class Imports:
    """The imports of a module. `sure` must exist if they belong to this package. `maybe` are modules or attributes of modules."""

    sure: dict[str, int] = field(default_factory=dict)  # module -> line
    maybe: set[str] = field(default_factory=set)
    starred: set[str] = field(default_factory=set)  # star-imported modules, whose __all__ may list modules
    listed: list[str] = field(default_factory=list)  # a literal __all__
    dynamic: list[tuple[int, str]] = field(default_factory=list)  # line, source of a use whose target is unknown


def imports_of(tree: ast.Module, module: str, is_package: bool) -> Imports:
    """Return the imports of `tree`, which has no type-checking blocks. `module` is its full name, to resolve relative imports."""
    package = module if is_package else module.rpartition(".")[0]
    imports, aliases, nodes = Imports(), dict[str, str](), list(ast.walk(tree))
    for node in nodes:  # names first: a function may use imports from further down in the module
        if isinstance(node, ast.Import):
            for alias in node.names:
                imports.sure.setdefault(alias.name, node.lineno)
                top = alias.name.partition(".")[0]
                aliases[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, package)
            imports.sure.setdefault(base, node.lineno)
            for alias in node.names:
                if alias.name == "*":
                    imports.starred.add(base)
                else:
                    imports.maybe.add(f"{base}.{alias.name}")
                    aliases[alias.asname or alias.name] = f"{base}.{alias.name}"
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__all__":
            listed = [item.value for item in ast.walk(statement.value) if isinstance(item, ast.Constant)]
            imports.listed = [name for name in listed if isinstance(name, str)]
    followed = set[ast.expr]()  # loaders that are called with a literal name
    for node in nodes:  # a call comes before its function
        if isinstance(node, ast.Call) and _full_name(node.func, aliases) in BY_NAME:
            match node.args:
                case [ast.Constant(value=str(name))] if not name.startswith("."):
                    imports.sure.setdefault(name, node.lineno)
                    followed.add(node.func)
        elif isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load):
            target = _full_name(node, aliases)
            if target in LOADERS and node not in followed:
                imports.dynamic.append((node.lineno, ast.unparse(node)))
            elif target and isinstance(node, ast.Attribute) and "." in target:  # `package.module` by an imported name
                imports.maybe.add(target)
    return imports


def _absolute(node: ast.ImportFrom, package: str) -> str:
    """Return the module from which a statement imports."""
    if node.level == 0:
        return node.module or ""
    parts = package.split(".")
    base = ".".join(parts[: len(parts) - node.level + 1])
    return f"{base}.{node.module}" if node.module else base


def _full_name(node: ast.expr, aliases: dict[str, str]) -> str | None:
    """Return the dotted name that an expression stands for, from imports. A plain name may be a builtin."""
    if isinstance(node, ast.Name):
        return aliases.get(node.id, node.id if node.id in LOADERS else None)
    base = _full_name(node.value, aliases) if isinstance(node, ast.Attribute) else None
    return f"{base}.{node.attr}" if base and isinstance(node, ast.Attribute) else None


def without_type_checking(tree: ast.Module) -> ast.Module:
    """Remove what only type checkers see: statements under `TYPE_CHECKING` of typing."""
    names = _type_checking(tree)
    for node in holders(tree) if names else ():
        for name in STATEMENTS:
            part = getattr(node, name, None)
            if isinstance(part, list):
                setattr(node, name, [kept for item in part for kept in _prune(item, names)])
    return tree


def _type_checking(tree: ast.Module) -> set[str]:
    """Return this module's names of `typing.TYPE_CHECKING`."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {f"{alias.asname or alias.name}.{CHECKING}" for alias in node.names if alias.name == "typing"}
        elif isinstance(node, ast.ImportFrom) and (node.module, node.level) == ("typing", 0):
            names |= {alias.asname or alias.name for alias in node.names if alias.name == CHECKING}
    return names


def holders(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the tree and all nodes that may hold statements, children first. They are a tenth of all nodes."""
    for name in STATEMENTS:
        part = getattr(tree, name, None)
        for item in part if isinstance(part, list) else ():
            yield from holders(item)
    yield tree


def _prune(item: ast.AST, names: set[str]) -> list[ast.AST]:
    """Return a statement without what it runs for type checkers only. The statements that it holds are pruned already."""
    if not isinstance(item, ast.If):
        return [item]
    negated = isinstance(item.test, ast.UnaryOp) and isinstance(item.test.op, ast.Not)
    test = item.test.operand if isinstance(item.test, ast.UnaryOp) and negated else item.test
    if not isinstance(test, ast.Name | ast.Attribute) or ast.unparse(test) not in names:
        return [item]
    return [*(item.body if negated else item.orelse)]


def ancestors(module: str) -> Iterator[str]:
    """Yield a, a.b, a.b.c: importing the last one runs them all."""
    parts = module.split(".")
    for count in range(1, len(parts) + 1):
        yield ".".join(parts[:count])


ANALYSES = ("rankfall.sources.fingerprint", __name__)
MOST = 5000  # the most entries of a cache file; the latest stay
Analysis = tuple[str, Imports]  # the digest, and the imports
_NEW: dict[str, Analysis] = {}  # analyses that are not stored yet


def analysis(text: bytes, module: str, is_package: bool, analyse: Callable[[], Analysis]) -> Analysis:
    """Return an analysis from the cache. If it is missing, compute it."""
    digest, analyses = hashlib.sha256(f"{module} {is_package}\n".encode() + text).hexdigest(), _load_analyses()
    if digest not in analyses:
        analyses[digest] = _NEW[digest] = analyse()
    return analyses[digest]


def keep() -> None:
    """Store the new analyses for other processes."""
    if (path := _path()) is not None and _NEW:
        with suppress(StoreError), atomic(path) as file:
            file.write(pickle.dumps(dict([*_read(path).items(), *_NEW.items()][-MOST:])))
        _NEW.clear()


@functools.cache
def _load_analyses() -> dict[str, Analysis]:
    """Return all analyses that this process knows. Callers add to them."""
    path = _path()
    if path is None:
        return {}
    use(path)
    return _read(path)


@functools.cache
def _path() -> Path | None:
    """Return the cache file, or None if there is no home folder."""
    home = cache_home()
    if home is None:
        return None
    texts = [Path(sys.modules[name].__file__ or "").read_bytes() for name in ANALYSES]
    return home / "analyses" / hashlib.sha256(repr((sys.version, texts)).encode()).hexdigest()[:24]


def _read(path: Path) -> dict[str, Analysis]:
    """Return the entries of a cache file. A file that is missing or incomplete has none."""
    try:
        return dict(pickle.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError, EOFError, pickle.UnpicklingError):
        return {}
