"""Guards what `rankfall plan` warns of, and the job of data sets: one that cannot be made stops no other."""

import json
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from plans import VALID, changed

from rankfall import cli
from rankfall.commands.data import make_data
from rankfall.report import tables
from rankfall.run.jobs import cells as jobs
from rankfall.run.plan import make_plan


def test_a_mask_that_hides_what_answers_need_is_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The best accuracy of a causal network on sorting was said to be 1."""
    near = {"mask": {"name": "local", "window": 4}}  # of five tokens: all
    path = tmp_path / "c.json"
    for mask, count in ("causal", 1), ("none", 0):
        path.write_text(json.dumps(changed("architectures", {"san": {"mask": mask}, "full": near})))
        assert cli.main(["plan", "--config", str(path), "--results", str(tmp_path)]) == 0
        warnings = [line for line in capsys.readouterr().out.splitlines() if line.startswith("warning: ")]
        assert len(warnings) == count
        for line in warnings:
            assert "the mask causal" in line and "on sorting" in line and line.endswith(": san, depth 2, 4")
    assert cli.main(["plan", "--config", str(path), "--results", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ceilings"] == []


def test_a_data_set_that_cannot_be_made_has_no_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole run had no table of cells and no page."""
    make = jobs.dataset_of

    def fail_for_seed_1(cell: Any, store: Any) -> Any:
        if cell.data_seed == 1:
            raise ValueError("the server does not answer")
        return make(cell, store)

    monkeypatch.setattr(jobs, "dataset_of", fail_for_seed_1)
    plan, out = make_plan(VALID), tmp_path / "datasets.parquet"
    planned: Any = SimpleNamespace(plan=plan, results=tmp_path)
    make_data(Namespace(task="sorting", out=out), planned, {cell.data_key: cell for cell in plan.cells})
    assert set(tables.read_frame(out, "datasets").seed) == {0, 2}
    assert "sorting, seed 1 has no data set: ValueError: the server does not answer" in capsys.readouterr().out
