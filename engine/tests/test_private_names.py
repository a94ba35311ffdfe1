"""Guards that the private names of torch and numba that the engine uses are there, and says which of them moved."""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numba")
SOURCE = Path(__file__).parents[1] / "src" / "thousandfold"


def is_private(name: str) -> bool:
    parts = name.split(".")
    return name.startswith(("numba.core", "llvmlite.binding")) or (
        parts[0] == "torch" and any(part.startswith("_") and not part.endswith("__") for part in parts)
    )


def dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        before = dotted(node.value)
        return f"{before}.{node.attr}" if before else ""
    return node.id if isinstance(node, ast.Name) else ""


def names_of(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{one.name}" for one in node.names)
        elif isinstance(node, ast.Attribute):
            yield dotted(node)


def find(name: str) -> Any:
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ImportError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        return found
    raise ImportError(name)


USED = {name for path in SOURCE.rglob("*.py") for name in names_of(ast.parse(path.read_text())) if is_private(name)}


@pytest.mark.parametrize("name", sorted(USED))
def test_it_is_where_it_was(name: str) -> None:
    find(name)
