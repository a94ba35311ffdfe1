"""Random edits of arithmetic that a test can see: by more than a tolerance, and of what a number depends on."""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from mutants import set_field, sites

REVERSED: dict[type, type] = {
    ast.Lt: ast.Gt, ast.LtE: ast.Gt, ast.Gt: ast.Lt, ast.GtE: ast.Lt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
}  # fmt: skip
OTHER_NAME = {
    "amax": "amin", "amin": "amax", "max": "min", "min": "max", "mean": "sum", "sum": "mean", "sqrt": "square",
    "square": "sqrt", "minimum": "maximum", "maximum": "minimum", "log10": "log", "cumsum": "cumprod",
}  # fmt: skip
REVERSES = tuple(f"-> {kind.__name__}" for kind in (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq))

EITHER_WAY = {"transpose", "maximum", "minimum", "max", "min", "equal"}  # calls whose two arguments may change places
DECLARED = {"LIMITS", "COST", "REQUIRES", "T"}  # of a measure, for the plan: numbers that no result depends on


@dataclass(frozen=True)
class Edit:
    """One edit: `file` relative to the package, the function it lies in, and what was done to which statement."""

    file: str
    function: str
    line: int
    what: str  # with a number from the second on, where a statement has several of the kind
    statement: str  # as it was
    text: str  # of the whole file, edited

    @property
    def name(self) -> str:
        """The same for as long as the statement is."""
        return f"{self.file}, {self.function}: {self.what}: {self.statement}"


def draw_edit(file: str, source: str, rng: random.Random) -> Edit | None:
    """A random edit of one place of a function's arithmetic, or of a number that a module sets; None where there is none."""
    tree = ast.parse(source)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    places = [(function, *site) for function in functions for site in arithmetic_sites(function)]
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and not DECLARED.intersection(
            ast.unparse(part) for part in statement.targets
        ):
            places += [(None, *site) for site in own_sites(statement)]
    if not places:
        return None
    function, node, what, change = rng.choice(places)
    statement = statement_of(function or tree, node)
    alike = [one for of, one, done, _ in places if of is function and done == what]
    alike = sorted((one for one in alike if statement_of(function or tree, one) is statement), key=place_of)
    nth = next(number for number, one in enumerate(alike, 1) if one is node)
    before = " ".join(ast.unparse(statement).split())[:160]
    name = function.name if function is not None else "module"
    change()
    text = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    return Edit(file, name, node.lineno, what if nth == 1 else f"{what} ({nth})", before, text)


def arithmetic_sites(function: ast.FunctionDef) -> Iterator[tuple[Any, str, Callable[[], None]]]:
    """The places of a function's body whose edit changes a number: no annotations, defaults, errors or names of columns."""
    for statement in function.body:
        if isinstance(statement, ast.FunctionDef | ast.Raise | ast.Assert):
            continue
        skipped = {id(inner) for part in ast.walk(statement) if isinstance(part, ast.Raise | ast.JoinedStr | ast.FunctionDef)
                   for inner in ast.walk(part)}  # fmt: skip
        for node, what, change in (*own_sites(statement), *sites(statement)):
            plain = isinstance(node, ast.Constant | ast.Compare)  # edited below, by more than a test's tolerance
            if (
                id(node) not in skipped
                and not is_same(node, what)
                and not (plain and what.endswith(("a little", *REVERSES)))
            ):
                yield node, what, change


def is_same(node: ast.AST, what: str) -> bool:
    """Whether an edit can change no number: `option or [what is meant without it]`, and two arguments that may change places."""
    if isinstance(node, ast.BoolOp):
        return isinstance(node.values[-1], ast.Dict | ast.List | ast.Tuple)
    name = getattr(node.func, "attr", getattr(node.func, "id", "")) if isinstance(node, ast.Call) else ""
    return what == "arguments swapped" and name in EITHER_WAY


def own_sites(tree: ast.AST) -> Iterator[tuple[Any, str, Callable[[], None]]]:
    """Numbers changed by more than any tolerance, comparisons turned round, and reductions exchanged."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and type(node.value) is int:
            more = node.value + 1 if node.value < 5 else 2 * node.value
            yield node, f"{node.value} is {more}", lambda n=node, o=more: set_field(n, "value", o)
        elif isinstance(node, ast.Constant) and type(node.value) is float and node.value:
            other = node.value * (1e6 if abs(node.value) < 1e-3 else 0.9)
            yield node, f"{node.value} is {other:g}", lambda n=node, o=other: set_field(n, "value", o)
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in REVERSED:
            other = REVERSED[type(node.ops[0])]
            done = f"{type(node.ops[0]).__name__} turned round"
            yield node, done, lambda n=node, o=other: n.ops.__setitem__(0, o())
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in OTHER_NAME:
            other = OTHER_NAME[node.func.attr]
            yield node, f"{node.func.attr} is {other}", lambda n=node, o=other: set_field(n.func, "attr", o)


def statement_of(holder: ast.AST, node: ast.AST) -> ast.stmt:
    """The innermost statement that holds a node."""
    holding = [
        part
        for part in ast.walk(holder)
        if isinstance(part, ast.stmt) and any(inner is node for inner in ast.walk(part))
    ]
    return min(holding, key=lambda part: sum(1 for _ in ast.walk(part)))


def place_of(node: Any) -> tuple[int, ...]:
    """Where a node stands in its file."""
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset
