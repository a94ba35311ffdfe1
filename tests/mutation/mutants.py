"""Draw random edits of source files, by seed.

An edit changes the syntax tree, so that every mutant is valid Python. Whether it means anything is left to chance, as with real edits.
One in ten changes only a docstring, which must change no key.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

SWAPPED: dict[type, type] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """An edit. `file`: relative to the package; `what`: a description; `text`: the edited file."""

    file: str
    line: int
    what: str
    text: str


def mutate(file: str, source: str, rng: random.Random) -> Mutant | None:
    """Return a random edit of a file, or None if there is nothing to edit."""
    tree = ast.parse(source)
    if rng.random() < 0.1:
        return _docstring(file, tree)
    edits = list(sites(tree))
    if not edits:
        return None
    node, what, change = rng.choice(edits)
    change()
    return Mutant(file, getattr(node, "lineno", 0), what, ast.unparse(ast.fix_missing_locations(tree)) + "\n")


def sites(tree: ast.AST) -> Iterator[tuple[ast.AST, str, Callable[[], None]]]:
    """Yield each node that can be edited, a description of the edit, and a function that applies it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            yield node, f"{node.value!r} + a little", lambda node=node: set_field(node, "value", _more(node.value))
        elif isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in SWAPPED:
            other = SWAPPED[type(node.op)]
            yield node, f"{type(node.op).__name__} -> {other.__name__}", lambda n=node, o=other: set_field(n, "op", o())
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPPED:
            other = SWAPPED[type(node.ops[0])]
            done = f"{type(node.ops[0]).__name__} -> {other.__name__}"
            yield node, done, lambda n=node, o=other: n.ops.__setitem__(0, o())
        elif (
            isinstance(node, ast.UnaryOp)
            and isinstance(node.op, ast.USub)
            and not isinstance(node.operand, ast.Constant)
        ):
            yield node, "minus gone", lambda node=node: set_field(node, "op", ast.UAdd())
        elif isinstance(node, ast.Call) and len(node.args) == 2 and ast.dump(node.args[0]) != ast.dump(node.args[1]):
            if any(isinstance(argument, ast.Starred) for argument in node.args):
                continue
            yield node, "arguments swapped", lambda node=node: node.args.reverse()
        elif isinstance(node, ast.FunctionDef) and len(node.body) > 2:
            for index, statement in enumerate(node.body[1:-1], 1):
                if isinstance(statement, ast.Expr | ast.AugAssign):
                    yield statement, "statement gone", lambda n=node, i=index: n.body.__setitem__(i, ast.Pass())


def set_field(node: ast.AST, name: str, value: object) -> None:
    setattr(node, name, value)


def _more(value: float) -> float:
    return value + 1 if isinstance(value, int) else value * 1.01 + 1e-9


def _docstring(file: str, tree: ast.Module) -> Mutant:
    first = tree.body[0] if tree.body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        first.value = ast.Constant(f"{first.value.value} Reworded.")
    return Mutant(file, 1, "docstring", ast.unparse(tree) + "\n# a comment\n")
