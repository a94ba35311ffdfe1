"""What README.md tells people to type, typed."""

import ast
import builtins
import math
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from checkout import CONFIG, ROOT, Checkout, changed

README = (ROOT / "README.md").read_text()


@pytest.mark.slow
def test_the_example_component_is_a_file_and_a_name(tmp_path: Path) -> None:
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    entry = re.search(r"```yaml\n(.*?)```", README, re.DOTALL)
    place = re.search(r"`src/rankfall/(nets/normalisers/\w+\.py)`", README)
    assert code and entry and place
    checkout = Checkout.make(tmp_path / "checkout")
    checkout.source(place[1]).write_text(code[1])
    architectures = {
        name: {**fields, "heads": 2, "width": 8, "depth": 2} for name, fields in yaml.safe_load(entry[1]).items()
    }
    grid = [{"task": "sorting", "architecture": list(architectures), "training": "short", "seed": [0, 1]}]
    checkout.configure(changed(CONFIG, architectures=architectures, grid=grid))
    assert checkout.run().trained == 2
    rows = checkout.table("cells").to_pylist()
    assert {row["status"] for row in rows} == {"done"}
    assert all(row["normaliser"].startswith("square") for row in rows)


@pytest.mark.slow
def test_every_example_of_a_component_runs(tmp_path: Path) -> None:
    """Each file of docs/components.md is written where the page says, and all of them take part in one benchmark."""
    page = (ROOT / "docs/components.md").read_text()
    files = re.findall(r"`src/rankfall/([\w/]+\.py)`[^\n]*:\n\n```python\n(.*?)```", page, re.DOTALL)
    # The rule beside a normaliser, the call of `fit` and that of `check_component` are parts of files; three are of a quantity elsewhere
    # (`test_own_quantity.py`), one is of a claim (`test_own_claim.py`), and one of published numbers (`test_published_numbers.py`).
    assert len(files) == page.count("```python") - 8 == 9
    checkout = Checkout.make(tmp_path / "checkout")
    for place, code in files:
        file = checkout.source(place)
        if not file.parent.is_dir():  # of a new quantity, which says what it is
            file.parent.mkdir()
            (file.parent / "__init__.py").write_text('"""How spread attention is."""\n')
        file.write_text(code)
    written = map(yaml.safe_load, re.findall(r"```yaml\n(.*?)```", page, re.DOTALL))
    config = next(found for found in written if "architectures" in found)
    config["architectures"]["near"] |= {"heads": 2, "width": 8, "depth": 2}
    grid: list[dict[str, Any]] = [{"task": "parity", "architecture": "near", "training": "short", "seed": [0, 1]}]
    grid.append(grid[0] | {"seed": 0, "attention": "before", "position": "none"})
    config["measures"]["entropy"] = {"samples": 8, "cells": {"attention": "multihead"}}
    checkout.configure(changed(CONFIG, **config, grid=grid))
    assert checkout.run().trained == 3
    rows = pq.read_table(checkout.results / "tables/entropy.parquet").to_pylist()  # this process knows no such table
    assert {(row["seed"], row["layer"]) for row in rows} == {(0, 1), (0, 2), (1, 1), (1, 2)}
    assert all(0 < row["entropy"] <= math.log(16) and row["position"] == "distance(steepest=1.0)" for row in rows)
    assert (checkout.results / "figures/entropy.png").stat().st_size > 5000


def test_files_that_it_names_are_there() -> None:
    named = set(re.findall(r"[\w./]*(?:workflow|envs|tests|docs|src/rankfall)/[\w./-]+", README))
    missing = {name for name in named if not (ROOT / name).exists()}
    # Written by the reader: a component of their own, a profile of their own site.
    assert missing == {"src/rankfall/nets/normalisers/square.py", "workflow/profiles/mysite"}


def test_the_examples_in_python_import_what_they_use() -> None:
    """`torch` and `rankfall` were used without an import; the reader brings a model."""
    for code in re.findall(r"```python\n(.*?)```", README, re.DOTALL):
        names = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)]
        imported = {alias.asname or alias.name for node in ast.walk(ast.parse(code))
                    if isinstance(node, ast.Import | ast.ImportFrom) for alias in node.names}  # fmt: skip
        defined = {node.arg for node in ast.walk(ast.parse(code)) if isinstance(node, ast.arg)}
        defined |= {node.id for node in names if isinstance(node.ctx, ast.Store)}
        used = {node.id for node in names if isinstance(node.ctx, ast.Load)} - defined - set(dir(builtins))
        assert used - {"model"} <= imported <= used
