"""Guards what `rankfall plan` says: fresh, stale or new, and through which file or key."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from plans import VALID, changed

from rankfall.run.plan import Cell, Plan, make_plan
from rankfall.run.snakemake.run_plan import RunPlan
from rankfall.run.snakemake.status import Status
from rankfall.run.snakemake.status import status as status_of_run
from rankfall.run.store import Store


def keep(plan: Plan, results: Path, cells: list[Cell] | None = None, **record: Any) -> None:
    """Put results of these cells into the store, as a job would."""
    store = Store(results / "store")
    for cell in plan.cells if cells is None else cells:
        about = {"status": "done", "seconds": 1.0, **plan.origin(cell), **record}
        store.save_stack(cell.group, [cell.key], {"w": torch.zeros(1, 2)}, [about], {})


def status(plan: Plan, results: Path, measures: bool = False) -> Status:
    return status_of_run(plan, RunPlan.make(plan, {}, results), measures)


def counts(found: Status) -> tuple[int, int, int]:
    return tuple(sum(getattr(line, state) for line in found.lines) for state in ("fresh", "stale", "new"))  # type: ignore[return-value]


def test_added_seed_is_new(tmp_path: Path) -> None:
    keep(make_plan(VALID), tmp_path)
    found = status(make_plan(changed("grid/0/seed", "0..3")), tmp_path)
    assert counts(found) == (12, 0, 4)
    assert set(found.reasons) == {("new", "not computed before")}


def test_changed_field_is_named(tmp_path: Path) -> None:
    keep(make_plan(VALID), tmp_path)
    found = status(make_plan(changed("trainings/short/lr", 0.5)), tmp_path)
    assert counts(found) == (0, 0, 12)
    assert found.reasons == {("new", "training.lr: 0.001 -> 0.5"): 12}


def test_changed_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "statuslab.py"
    path.write_text("def sharp(scores): return scores\n")
    config = changed("architectures/full/normaliser", "statuslab:sharp")
    keep(make_plan(config), tmp_path)
    path.write_text("def sharp(scores): return -scores\n")
    found = status(make_plan(config), tmp_path)
    assert counts(found) == (6, 6, 0)
    assert found.reasons == {("stale", "statuslab.py changed"): 6}


def test_failed_cell_is_not_fresh(tmp_path: Path) -> None:
    plan = make_plan(VALID)
    keep(plan, tmp_path, plan.cells[1:])
    keep(plan, tmp_path, plan.cells[:1], status="failed", reason="no luck")
    found = status(plan, tmp_path)
    assert counts(found) == (11, 1, 0)
    assert found.reasons == {("stale", "failed before: no luck"): 1}


def write(config: Any, folder: Path) -> Path:
    path = folder / "c.yaml"
    path.write_text(yaml.safe_dump(config))
    return path


@pytest.mark.long
def test_ten_thousand_cells_without_torch(tmp_path: Path) -> None:
    config = changed("grid/0/seed", "0..2499")
    program = (
        "import sys, time; from rankfall.cli import main; "
        f"main(['plan', '--config', {str(write(config, tmp_path))!r}, '--results', {str(tmp_path)!r}]); "
        "print(time.process_time(), sorted({'torch', 'pandas', 'pyarrow', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "10000 cells" in done.stdout
    *seconds, heavy = done.stdout.splitlines()[-1].split(maxsplit=1)
    assert heavy == "[]"
    assert float(seconds[0]) < 10, "several times what it takes: something has become slow"
