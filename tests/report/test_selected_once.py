"""Guards that which rows of a table a quantity is, is said once: no two places of the sources compare the same two columns with the same
values."""

import ast
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

from rankfall import components
from rankfall.run.config.facts import FORMS

PACKAGE = Path(components.__file__).parent
ROOMS = ("report", "commands", *components.STUDIES)
Pair = tuple[str, object]  # a column and the value that it is compared with


def column_of(node: ast.expr) -> str | None:
    """`table.place`, `table["place"]`."""
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
        return node.slice.value
    return None


def compared(node: ast.expr) -> Iterator[Pair]:
    """What a condition, joined by `&`, compares with literals."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd):
        yield from compared(node.left)
        yield from compared(node.right)
    elif (
        isinstance(node, ast.Compare)
        and isinstance(node.ops[0], ast.Eq)
        and isinstance(node.comparators[0], ast.Constant)
    ):
        column = column_of(node.left)
        if column not in (None, "status"):  # that a network is done is asked of every table
            yield str(column), node.comparators[0].value


def mapped(node: ast.Dict) -> Iterator[Pair]:
    """`{"place": "state", "centre": "mean"}`, as `select` is given."""
    for key, value in zip(node.keys, node.values):
        if isinstance(key, ast.Constant) and isinstance(value, ast.Constant) and isinstance(key.value, str):
            yield key.value, value.value


def conditions(text: str) -> Iterator[frozenset[Pair]]:
    """Those of a function as one: they may be joined under a name. Of mappings those that select: named `where`, given to `select`, or
    by themselves in a file and no fact of a component."""
    tree = ast.parse(text)
    named = [node for node in tree.body if isinstance(node, ast.Assign)]
    chosen: list[ast.AST] = [node.value for node in named if ast.unparse(node.targets[0]) not in FORMS]
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp):
            yield frozenset(compared(node))
        elif isinstance(node, ast.FunctionDef):
            yield frozenset(
                pair for inner in ast.walk(node) if isinstance(inner, ast.Compare) for pair in compared(inner)
            )
        elif isinstance(node, ast.keyword) and node.arg == "where":
            chosen.append(node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "select":
            chosen += [inner for argument in node.args for inner in ast.walk(argument)]
    yield from (frozenset(mapped(node)) for node in chosen if isinstance(node, ast.Dict))


def repeated(texts: dict[str, str]) -> list[str]:
    """Places that share two comparisons."""
    places: dict[tuple[Pair, ...], set[str]] = {}
    for place, text in texts.items():
        for condition in set(conditions(text)):
            for two in combinations(sorted(condition, key=str), 2):
                places.setdefault(two, set()).add(place)
    return [
        f"{' and '.join(sorted(where))}: {' and '.join(f'{column} == {value!r}' for column, value in two)}"
        for two, where in sorted(places.items(), key=str)
        if len(where) > 1
    ]


def test_a_condition_written_twice_would_be_found() -> None:
    both = 'rows = table[(table.place == "state") & (table["centre"] == "mean") & table.value.notna()]'
    as_data = 'WHERE = {"centre": "mean", "place": "state", "quantity": "residual"}'
    apart = (
        'def residual(table):\n    state = table.place == "state"\n    return table[state & (table.centre == "mean")]'
    )
    for other in (both, as_data, apart):
        assert repeated({"a": both, "b": other}) == ["a and b: centre == 'mean' and place == 'state'"]
    assert repeated({"a": both, "b": 'rows = table[table.place == "state"]'}) == []
    assert repeated({"a": both, "b": 'rows = table[(table.place == "state") & (table.centre == "best")]'}) == []


def test_no_condition_that_selects_rows_is_written_twice() -> None:
    files = [path for room in ROOMS for path in sorted((PACKAGE / room).rglob("*.py"))]
    assert repeated({str(path.relative_to(PACKAGE)): path.read_text() for path in files}) == []
