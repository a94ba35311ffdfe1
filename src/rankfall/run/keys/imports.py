"""The imports of a module, read from its syntax tree: every form of import that Python has, or an error if the source text does not
determine it.

The collected names are candidates: `from a import b` names `a` and, in case it is a module, `a.b`. The caller knows the files and decides.
"""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

# Ways to run code that no import statement names. find_spec and similar functions run nothing and are allowed.
LOADERS = frozenset(
    {
        "importlib.import_module",
        "importlib.__import__",
        "importlib.reload",
        "importlib.util.spec_from_file_location",
        "importlib.util.spec_from_loader",
        "importlib.util.module_from_spec",
        "importlib.util.LazyLoader",
        "importlib.machinery.SourceFileLoader",
        "runpy.run_module",
        "runpy.run_path",
        "pkgutil.resolve_name",
        "pkgutil.walk_packages",
        "builtins.__import__",
        "builtins.exec",
        "builtins.eval",
        "__import__",
        "exec",
        "eval",
    }
)
BY_NAME = frozenset({"importlib.import_module", "importlib.__import__", "builtins.__import__", "__import__"})


@dataclass
class Imports:
    """The imports of a module. `sure` must exist if they belong to this package. `maybe` are modules or attributes of modules."""

    sure: dict[str, int] = field(default_factory=dict)  # module -> line
    maybe: set[str] = field(default_factory=set)
    starred: set[str] = field(default_factory=set)  # star-imported modules, whose __all__ may list modules
    listed: list[str] = field(default_factory=list)  # a literal __all__
    dynamic: list[tuple[int, str]] = field(default_factory=list)  # line, source of a call whose target is unknown
    needed: dict[str, int] = field(default_factory=dict)  # imported unconditionally, out of `sure` and `maybe`


def without_type_checking(tree: ast.Module) -> ast.Module:
    """Remove what only type checkers see: statements under `TYPE_CHECKING` of typing."""
    names = _type_checking(tree)
    for node in holders(tree) if names else ():
        for name in STATEMENTS:
            part = getattr(node, name, None)
            if isinstance(part, list):
                setattr(node, name, [left for item in part for left in _prune(item, names)])
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


def imports_of(tree: ast.Module, module: str, is_package: bool) -> Imports:
    """Return the imports of `tree`, which has no type-checking blocks. `module` is its full name, to resolve relative imports."""
    return _Reader(module, is_package).read(tree)


CHECKING = "TYPE_CHECKING"
STATEMENTS = ("body", "orelse", "finalbody", "handlers", "cases")  # fields that hold lists of statements


def holders(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the tree and all nodes that may hold statements, children first. They are a tenth of all nodes."""
    for name in STATEMENTS:
        part = getattr(tree, name, None)
        for item in part if isinstance(part, list) else ():
            yield from holders(item)
    yield tree


def _prune(item: ast.AST, names: set[str]) -> list[ast.AST]:
    """Return what remains of a statement whose own statements are pruned."""
    if not isinstance(item, ast.If):
        return [item]
    negated = isinstance(item.test, ast.UnaryOp) and isinstance(item.test.op, ast.Not)
    test = item.test.operand if isinstance(item.test, ast.UnaryOp) and negated else item.test
    if not isinstance(test, ast.Name | ast.Attribute) or ast.unparse(test) not in names:
        return [item]
    return [*(item.body if negated else item.orelse)]


class _Reader(ast.NodeVisitor):
    def __init__(self, module: str, is_package: bool) -> None:
        self.package = module if is_package else module.rpartition(".")[0]
        self.found = Imports()
        self.aliases: dict[str, str] = {}  # local name -> its full name
        self.settled: set[ast.expr] = set()  # loaders that are called with a literal name

    def read(self, tree: ast.Module) -> Imports:
        # Names first: a function may use imports from further down in the module.
        nodes = list(ast.walk(tree))
        for node in nodes:
            if isinstance(node, ast.Import):
                self.add_import(node)
            elif isinstance(node, ast.ImportFrom):
                self.add_from(node)
        for node in tree.body:
            self.add_needed(node)
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                named = [item.value for item in ast.walk(node.value) if isinstance(item, ast.Constant)]
                self.found.listed = [name for name in named if isinstance(name, str)]
        for node in nodes:
            if isinstance(node, ast.Call):
                self.add_call(node)
        for node in nodes:
            if isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load):
                self.add_use(node)
        return self.found

    def add_import(self, node: ast.Import) -> None:
        for alias in node.names:
            self.found.sure.setdefault(alias.name, node.lineno)
            top = alias.name.partition(".")[0]
            self.aliases[alias.asname or top] = alias.name if alias.asname else top

    def add_from(self, node: ast.ImportFrom) -> None:
        base = self.absolute(node.module or "", node.level)
        self.found.sure.setdefault(base, node.lineno)
        for alias in node.names:
            if alias.name == "*":
                self.found.starred.add(base)
            else:
                self.found.maybe.add(f"{base}.{alias.name}")
                self.aliases[alias.asname or alias.name] = f"{base}.{alias.name}"

    def add_needed(self, node: ast.stmt) -> None:
        """Add imports outside of any `try`, `if`, `with` or function: if they fail, the module fails."""
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = self.absolute(node.module or "", node.level)
            names = [base, *(f"{base}.{alias.name}" for alias in node.names)]
        else:
            return
        for name in names:
            self.found.needed.setdefault(name, node.lineno)

    def add_call(self, node: ast.Call) -> None:
        target = self.name_of(node.func)
        if target in BY_NAME and node.args and isinstance(node.args[0], ast.Constant):
            name = str(node.args[0].value)
            level = len(name) - len(name.lstrip("."))
            anchored = [ast.unparse(item) for item in [*node.args[1:], *(k.value for k in node.keywords)]]
            if level == 0 or anchored in (["__package__"], ["__name__"]):
                self.found.sure.setdefault(self.absolute(name[level:], level), node.lineno)
                self.settled.add(node.func)
        elif target == "getattr" and node.args and self.name_of(node.args[0]) in ("importlib", "builtins", "runpy"):
            self.found.dynamic.append((node.lineno, ast.unparse(node)))

    def add_use(self, node: ast.Attribute | ast.Name) -> None:
        """Add a loader that is not called with a literal name, or `package.module` reached through an imported name."""
        target = self.name_of(node)
        if target in LOADERS and node not in self.settled:
            self.found.dynamic.append((node.lineno, ast.unparse(node)))
        elif target and isinstance(node, ast.Attribute) and "." in target:
            self.found.maybe.add(target)

    def absolute(self, module: str, level: int) -> str:
        if level == 0:
            return module
        parts: Sequence[str] = self.package.split(".")
        base = ".".join(parts[: len(parts) - level + 1])
        return f"{base}.{module}" if module else base

    def name_of(self, node: ast.expr) -> str | None:
        """Return the dotted name that an expression stands for, from imports. A plain name may be a builtin."""
        if isinstance(node, ast.Name):
            return self.aliases.get(node.id, node.id if node.id in LOADERS or node.id == "getattr" else None)
        if isinstance(node, ast.Attribute):
            base = self.name_of(node.value)
            return f"{base}.{node.attr}" if base else None
        match node:
            case ast.Call(args=[ast.Constant(value=str(name)), *_]) if self.name_of(node.func) in BY_NAME:
                return name
        return None


def ancestors(module: str) -> Iterator[str]:
    """Yield a, a.b, a.b.c: importing the last one runs them all."""
    parts = module.split(".")
    for count in range(1, len(parts) + 1):
        yield ".".join(parts[:count])
