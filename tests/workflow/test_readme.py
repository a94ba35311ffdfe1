"""What README.md tells people to type, typed."""

import re
from pathlib import Path

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


def test_files_that_it_names_are_there() -> None:
    named = set(re.findall(r"[\w./]*(?:workflow|envs|tests|docs|src/rankfall)/[\w./-]+", README))
    missing = {name for name in named if not (ROOT / name).exists()}
    # Written by the reader: a component of their own, a profile of their own site.
    assert missing == {"src/rankfall/nets/normalisers/square.py", "workflow/profiles/mysite"}
