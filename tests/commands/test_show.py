"""Guards `rankfall show`: the start of a key finds one cell or says why not, and what is shown is that cell's."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import yaml
from helpers import config

from rankfall import cli
from rankfall.run.plan import make_plan
from rankfall.run.store import Store

PLAN = make_plan(config(grid={"seed": "0..7"}, training={"epochs": 2}))
CELL = PLAN.cells[3]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Write the results of a run of eight cells: a table, a shard and a log."""
    store = Store(tmp_path / "store")
    machine = {"host": "here", "processor": "a processor", "device": "cpu", "dtype": "float32", "threads": 1}
    machine["versions"] = {"torch": "2.13"}
    ended = {"status": "done", "reason": "", "steps": 14, "seconds": 0.5, "final": {"test": {"loss": 1.25}}}
    code = {"code": {**CELL.code, "installed:lab": "1.0"}, "commit": "abc-dirty"}
    records = [PLAN.origin(cell) | machine | ended | code for cell in PLAN.cells]
    keys = [cell.key for cell in PLAN.cells]
    store.save_stack(CELL.group, keys, {"w": torch.zeros(8)}, records)
    for path, rows in {
        "tables/orders.parquet": [{"key": CELL.key}, {"key": CELL.key}, {"key": keys[0]}],
        "tables/law.parquet": [{"layer": 1}],
        "work/train/sorting/0/cd.cells.parquet": [{"key": key} for key in keys[:2]],
        f"work/train/sorting/{CELL.shard}/ab.cells.parquet": [{"key": key} for key in keys],
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / path)
    log = tmp_path / "logs" / "train" / "sorting" / CELL.shard / "ab.log"
    log.parent.mkdir(parents=True)
    log.write_text("8 cells: 0 in store, 8 to train\n")
    return tmp_path


def show(results: Path, *words: str) -> int:
    return cli.main(["show", *words, "--results", str(results)])


def test_a_cell_is_shown_by_the_start_of_its_key(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert show(results, CELL.key[:8], "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["key"], facts["seed"], facts["host"], facts["commit"]) == (CELL.key, 3, "here", "abc-dirty")
    assert facts["code"] == dict(CELL.code) and facts["installed"] == {"lab": "1.0"}
    assert facts["rows"] == {"orders": 2}
    assert facts["log"] == "8 cells: 0 in store, 8 to train"
    assert facts["final"] == {"test": {"loss": 1.25}}
    assert show(results, CELL.key) == 0
    assert "\ninstalled lab 1.0\n" in capsys.readouterr().out


def test_the_snippet_is_a_configuration_of_this_cell(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert show(results, CELL.key, "--snippet") == 0
    plan = make_plan(yaml.safe_load(capsys.readouterr().out))
    assert [cell.key for cell in plan.cells] == [CELL.key]


@pytest.mark.parametrize(
    ("start", "message"),
    [("", "key '': 8 cells have keys that start with it"), ("xyz", "key 'xyz': no cell of "), ("*", "no cell of")],
)
def test_a_start_that_fits_none_or_several_is_refused(
    results: Path, capsys: pytest.CaptureFixture[str], start: str, message: str
) -> None:
    assert show(results, start) == 2
    error = capsys.readouterr().err
    assert message in error and len(error.splitlines()) <= 2
