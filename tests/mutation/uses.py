"""Which functions of a package use a constant of a module: in its own file, and where it or its module is imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from mutants import package_files


def uses(package: Path, file: str, names: frozenset[str]) -> set[str]:
    """These functions as `rank/bounds.py:12`, by every line on which they may begin. What a module makes of a constant for itself may
    count for all of its functions.
    """
    found: set[str] = set()
    for other in package_files(package):
        text = (package / other).read_text()
        if not any(name in text for name in names):
            continue
        tree = ast.parse(text)
        if other != file and not imports(tree, Path(file).stem, names):
            continue
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        using = [function for function in functions if mentions(function, names)]
        if any(mentions(statement, names) for statement in made_at_import(tree)):
            using = functions
        found |= {f"{other}:{line}" for function in using for line in beginnings(function)}
    return found


def imports(tree: ast.Module, stem: str, names: frozenset[str]) -> bool:
    """Whether a file imports one of the names, or a module that is called so."""
    asked = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    return any(alias.name.rpartition(".")[2] in names | {stem} for node in asked for alias in node.names)


def made_at_import(tree: ast.Module) -> Iterator[ast.AST]:
    """What a module computes when it is imported, but for the values that it sets to the names themselves."""
    for statement in tree.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            if statement.value is not None:
                yield statement.value
        elif not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.Import | ast.ImportFrom):
            yield statement


def mentions(tree: ast.AST, names: frozenset[str]) -> bool:
    return any(
        getattr(node, "id", None) in names or (isinstance(node, ast.Attribute) and node.attr in names)
        for node in ast.walk(tree)
    )


def beginnings(function: ast.FunctionDef | ast.AsyncFunctionDef) -> range:
    """The lines on which Python may say that a function begins: its decorators come first."""
    return range(min([function.lineno, *(part.lineno for part in function.decorator_list)]), function.lineno + 1)
