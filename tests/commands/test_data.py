"""Guards the job of data sets: one that cannot be made stops no other."""

from argparse import Namespace
from types import SimpleNamespace
from typing import Any

import pytest
from plans import VALID

from rankfall.commands.data import make_data
from rankfall.report import tables
from rankfall.run.jobs import cells as jobs
from rankfall.run.plan import make_plan


def test_a_data_set_that_cannot_be_made_has_no_rows(
    tmp_path: Any, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole run had no table of cells and no page."""
    make = jobs.dataset_of

    def fail_once(cell: Any, store: Any) -> Any:
        if cell.data_seed == 1:
            raise ValueError("the server does not answer")
        return make(cell, store)

    monkeypatch.setattr(jobs, "dataset_of", fail_once)
    plan = make_plan(VALID)
    cells = {cell.data_key: cell for cell in plan.cells}
    out = tmp_path / "datasets.parquet"
    own: Any = SimpleNamespace(plan=plan, results=tmp_path)
    make_data(Namespace(task="sorting", out=out), own, cells)
    assert set(tables.read_frame(out, "datasets").seed) == {0, 2}
    assert "sorting, seed 1 has no data set: ValueError: the server does not answer" in capsys.readouterr().out
