"""Fingerprints: the code that a result depends on, as a hash of exactly the modules that running it would import.

Starting from root modules, every import is followed: within this package and its engine, wherever they are installed, into packages of
components, and into helpers beside the Snakefile or on PYTHONPATH. The standard library and installed packages are left out. Installed
packages that a user's file imports count by name and version (`modules.py`). Each file counts by its syntax tree, so comments,
docstrings, formatting and type-checking imports make nothing stale. Left out on purpose:

- `rankfall/components.py`, the only place that imports by computed name: a cell's spec names what it loads, and that becomes a root;
- `rankfall/errors.py`, which only ends runs;
- the text of `rankfall/__init__.py` and `thousandfold/__init__.py`: the version, and public names. Those of this package are followed to
  their definitions; of the engine it imports modules.

An import that cannot be resolved from the source text is an error in this package. In another package it makes every file of that package
count.
"""

import ast
import functools
import hashlib
import importlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path

from rankfall import PUBLIC
from rankfall.errors import RankfallError
from rankfall.modules import find_inside, find_module, versions_of
from rankfall.sources.imports import Analysis, Imports, analysis, ancestors, holders, imports_of, without_type_checking

OWN = __name__.partition(".")[0]
OURS = (OWN, "thousandfold")  # this package and its engine (`engine/`)
INSTALLED = frozenset({"site-packages", "dist-packages", "lib-dynload"})  # folders of installed packages
LEFT_OUT = frozenset({"rankfall.components", "rankfall.errors"})
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
SHORT = 12  # hex digits of a file's digest


@dataclass(frozen=True)
class Source:
    """A module: its place, its digest and its imports."""

    module: str
    file: str  # relative to the folder of its top-level package, and so the same on every machine
    digest: str
    imports: Imports


class Sources:
    """Modules, each read once. An instance represents one state of the files."""

    def __init__(self) -> None:
        importlib.invalidate_caches()
        self.spec, self.source = functools.cache(self._spec), functools.cache(self._source)
        self.is_local = functools.cache(self._is_local)
        self.closures: dict[frozenset[str], dict[str, str]] = {}
        self.hashes: dict[frozenset[str], str] = {}
        self.needs: dict[tuple[str, str], list[str]] = {}

    def code_files(self, roots: Iterable[str]) -> dict[str, str]:
        """Return file -> short digest, sorted by file, of all code that importing `roots` runs in the packages they belong to."""
        key = frozenset(roots)
        if key not in self.closures:
            self.closures[key] = self._closure(key)
        return self.closures[key]

    def fingerprint(self, roots: Iterable[str]) -> str:
        """Return one hash of `code_files`."""
        key = frozenset(roots)
        if key not in self.hashes:
            text = "\n".join(f"{file} {short}" for file, short in self.code_files(key).items())
            self.hashes[key] = hashlib.sha256(text.encode()).hexdigest()
        return self.hashes[key]

    def _closure(self, roots: frozenset[str]) -> dict[str, str]:
        """Return `code_files` of some roots, computed."""
        if len(roots) > 1:  # the union of what each root needs, so that ten thousand cells share the walks
            files = {file: digest for root in roots for file, digest in self.code_files([root]).items()}
            return dict(sorted(files.items()))
        (root,) = roots
        if self.source(root) is None:
            raise RankfallError(f"module {root}: no source file was found for it")
        top = root.partition(".")[0]

        def counts(module: str) -> bool:
            """Return whether a module is in the closure: of this package, of the root's package, or local."""
            name = module.partition(".")[0]
            return name in (*OURS, top) or self.is_local(name)

        seen: dict[str, Source] = {}
        waiting = list(ancestors(root))
        while waiting:
            module = waiting.pop()
            source = self.source(module)
            if module in seen or module in LEFT_OUT or source is None or not counts(module):
                continue
            seen[module] = source
            key = module, "" if top in OURS else top  # roots of one package follow the same imports
            if key not in self.needs:
                self.needs[key] = list(self._needs(source, counts))
            waiting.extend(self.needs[key])
        files = {source.file: source.digest for source in seen.values()}
        users = [source for source in seen.values() if source.file.partition("/")[0] not in OURS]
        files |= versions_of(name for source in users for name in source.imports.sure if not counts(name))
        return dict(sorted(files.items()))

    def _is_local(self, top: str) -> bool:
        """Return whether a top-level package or module is local: neither installed nor in the standard library."""
        spec = None if top in sys.stdlib_module_names else self.spec(top)
        if spec is None:
            return False
        folders = [*(spec.submodule_search_locations or ()), spec.origin or ""]
        return not INSTALLED.intersection(Path(folders[0]).parts)

    def _needs(self, source: Source, counts: Callable[[str], bool]) -> Iterator[str]:
        """Yield the modules that a module imports, of the packages that count."""
        imports, top = source.imports, source.module.partition(".")[0]
        for line, text in imports.dynamic:
            if top in OURS:
                raise RankfallError(
                    f"{source.file}, line {line}: `{text}` runs code that the fingerprint cannot follow; "
                    f"import it by name, or make it a component"
                )
            yield from self._package_files(top)
        for module, line in imports.sure.items():
            if not counts(module):
                continue
            if self.spec(module) is None:
                if top in OURS and module.partition(".")[0] in OURS:
                    raise RankfallError(
                        f"{source.file}, line {line}: imports {module}, which does not exist; the engine is in "
                        "`pip install 'rankfall[fast]'`, or `compute: {engine: plain}` does without it"
                    )
                continue
            yield from ancestors(module)
        for module in imports.starred:
            listed = self.source(module)
            if listed is not None and counts(module):
                yield from (f"{module}.{name}" for name in listed.imports.listed)
        named = (PUBLIC.get(module.removeprefix(f"{OWN}."), module).partition(":")[0] for module in imports.maybe)
        yield from (name for module in named if counts(module) for name in ancestors(module))

    def _package_files(self, top: str) -> Iterator[str]:
        """Yield all modules of a package."""
        spec = find_module(top)
        for folder in (spec.submodule_search_locations or []) if spec else []:
            for path in sorted(Path(folder).rglob("*.py")):
                parts = path.relative_to(folder).with_suffix("").parts
                yield ".".join([top, *(parts[:-1] if parts[-1] == "__init__" else parts)])

    def _source(self, module: str) -> Source | None:
        """Return a module's source, or None if there is no such module with source text."""
        spec = self.spec(module)
        if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
            return None
        path, is_package = Path(spec.origin), spec.submodule_search_locations is not None
        levels = module.count(".") + is_package
        file = path.relative_to(path.parents[levels]).as_posix()
        return Source(module, file, *_analyse(path.read_bytes(), module, is_package, file))

    def _spec(self, module: str) -> ModuleSpec | None:
        """Return the spec of a module. None if there is none, as for `a.b.c` where `a.b` is not a package, so that c is an attribute."""
        parent = module.rpartition(".")[0]
        if not parent:
            return find_module(module)
        folder = self.spec(parent)
        places = folder.submodule_search_locations if folder else None
        return find_inside(module, list(places)) if places is not None else None


def module_of(name: str) -> str:
    """Return the module of a source file as it is named in keys."""
    return name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def find_source(name: str) -> Path | None:
    """Return the source file with this name in keys, or None if the name is not that of a module's file."""
    return _find_source(name, os.getcwd(), tuple(sys.path)) if name.endswith(".py") else None


@functools.lru_cache(maxsize=4096)
def _find_source(name: str, folder: str, path: tuple[str, ...]) -> Path | None:
    """Find a source file, once for each working directory and module path."""
    spec = find_module(module_of(name))
    origin = Path(spec.origin) if spec is not None and spec.origin else None
    return origin if origin is not None and origin.as_posix().endswith(f"/{name}") else None


def digest_of(module: str, file: str, content: bytes) -> str:
    """Return the digest that a module's file would have with this content, by its syntax."""
    return _analyse(content, module, file.endswith("/__init__.py"), file)[0]


def _analyse(text: bytes, module: str, is_package: bool, file: str) -> Analysis:
    """Analyse a file. The analysis is cached by content."""
    text = b"" if module in OURS else text

    def analyse() -> Analysis:
        try:
            tree = without_type_checking(ast.parse(text))
        except (SyntaxError, ValueError) as error:
            line = (getattr(error, "text", None) or "").strip()
            fault = f"{getattr(error, 'msg', error)}{f': {line}' if line else ''}"
            raise RankfallError(f"{file}, line {getattr(error, 'lineno', 1)}: {fault}") from None
        imports = imports_of(tree, module, is_package)
        return hashlib.sha256(_spell(_bare(tree)).encode(errors="surrogatepass")).hexdigest()[:SHORT], imports

    return analysis(text, module, is_package, analyse)


def _bare(tree: ast.Module) -> ast.Module:
    """Return the tree without docstrings, including those of a class's fields, and without the version."""
    for node in holders(tree):
        if isinstance(node, DOCUMENTED):
            node.body = [item for item in node.body if not _is_text(item)]
    versions = [
        node for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__version__"
    ]
    tree.body = [node for node in tree.body if node not in versions]
    return tree


def _is_text(node: ast.stmt) -> bool:
    """Return whether a statement is a text alone, such as a docstring."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _spell(node: object) -> str:
    """Return text like `ast.dump`, but equal for all versions of Python: without positions and without empty fields, which newer versions
    add."""
    if isinstance(node, ast.AST):
        parts = []  # a loop, since this takes most of a plan's time
        for name in node._fields:
            if name not in ("ctx", "kind"):
                value = getattr(node, name, None)
                if value is not None and value != []:
                    parts.append(f"{name}={_spell(value)}")
        # A constant None has no value left. No other node looks like that.
        return f"{type(node).__name__}({','.join(parts)})"
    if isinstance(node, list):
        return f"[{','.join(map(_spell, node))}]"
    return repr(node)
