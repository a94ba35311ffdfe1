"""Guards that what README.md and docs/components/ tell people to type works as typed."""

import ast
import builtins
import math
import re
from pathlib import Path
from typing import Any

import component_pages
import pyarrow.parquet as pq
import pytest
import yaml
from checkout import CONFIG, ROOT, Checkout, changed

README = (ROOT / "README.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
SMALL = {"heads": 2, "width": 8, "depth": 2}
ELSEWHERE = ("published", "claim", "theory")  # test_published_numbers.py, test_own_claim.py, tests/rank/test_derived.py


@pytest.mark.slow
def test_the_example_component_is_a_file_and_a_name(tmp_path: Path) -> None:
    entry = re.search(r"```yaml\n(.*?)```", README, re.DOTALL)
    file = re.search(r"`src/rankfall/(nets/normalisers/\w+\.py)`", README)
    assert entry and file
    checkout = Checkout.make(tmp_path / "checkout")
    checkout.source(file[1]).write_text(EXAMPLES[0])
    architectures = {name: {**fields, **SMALL} for name, fields in yaml.safe_load(entry[1]).items()}
    grid = [{"task": "sorting", "architecture": list(architectures), "training": "short", "seed": [0, 1]}]
    checkout.configure(changed(CONFIG, architectures=architectures, grid=grid))
    assert checkout.run().trained == 2
    rows = checkout.table("cells").to_pylist()
    assert {row["status"] for row in rows} == {"done"}
    assert all(row["normaliser"].startswith("square") for row in rows)


@pytest.mark.slow
def test_every_example_of_a_component_runs(tmp_path: Path) -> None:
    """All files of docs/components/ take part in one benchmark, as the pages configure them."""
    pages = [page for page in component_pages.NAMES if page not in ELSEWHERE]
    examples = sum(component_pages.text(page).count("```python") for page in component_pages.NAMES)
    files = [name for page in component_pages.NAMES for name, _ in component_pages.blocks(page)]
    assert sum(name.endswith(".py") for name in files) == examples - 1, "the call of check_component is no file"
    checkout = Checkout.make(tmp_path / "checkout")
    component_pages.write(checkout.folder, component_pages.files(*pages))
    config = component_pages.entries(*pages)
    del config["architectures"]["mine"]  # the first lines of index.md
    names = list(config["architectures"])
    config["architectures"] = {name: SMALL | fields for name, fields in config["architectures"].items()}
    config["measures"]["scorecard"] = {}
    grid: list[dict[str, Any]] = [{"task": "parity", "architecture": names, "training": "short", "seed": 0}]
    grid.append(grid[0] | {"architecture": "capped", "training": list(config["trainings"]), "seed": [0, 1]})
    config["trainings"] |= CONFIG["trainings"]
    checkout.configure(changed(CONFIG | {"page": True}, **config, grid=grid))
    assert checkout.run().trained == len(names) + 4
    # This process knows no such table.
    rows = pq.read_table(checkout.results / "tables" / "lab.entropy.parquet").to_pylist()
    assert {row["architecture"] for row in rows} == {*names} and {row["layer"] for row in rows} == {1, 2}
    assert all(0 < row["entropy"] <= math.log(18) for row in rows), "two sentinels are tokens too"
    assert (checkout.results / "figures" / "entropy.png").stat().st_size > 5000
    assert "Who looks at most tokens?" in (checkout.results / "report" / "index.html").read_text()


def test_an_attention_a_position_a_task_and_a_measure_are_shown_without_a_fact_first() -> None:
    """What the pages of these kinds show first declares nothing in capitals."""
    for page in ("attention", "position", "task", "measure"):
        _, code = component_pages.blocks(page)[0]
        assert not re.findall(r"^[A-Z_]+ *=", code, re.MULTILINE)


def test_the_examples_in_python_import_what_they_use() -> None:
    """`torch` and `rankfall` were used without an import; the reader brings a model."""
    for code in EXAMPLES:
        nodes = list(ast.walk(ast.parse(code)))
        names = [node for node in nodes if isinstance(node, ast.Name)]
        imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
        imported = {alias.asname or alias.name for node in imports for alias in node.names}
        defined = {node.arg for node in nodes if isinstance(node, ast.arg)}
        defined |= {node.id for node in names if isinstance(node.ctx, ast.Store)}
        used = {node.id for node in names if isinstance(node.ctx, ast.Load)} - defined - set(dir(builtins))
        assert used - {"model"} <= imported <= used
