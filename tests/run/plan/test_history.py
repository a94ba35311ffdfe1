"""Guards measured costs: they reach shards and requests only through the file that the configuration names."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from plans import VALID, changed

from rankfall.run.plan import make_plan
from rankfall.run.plan.history import measure_history, write_history


def record(cell: Any, seconds: float, **more: Any) -> Any:
    return SimpleNamespace(record={"spec": cell.spec, "status": "done", "seconds": seconds, **more})


@pytest.fixture
def plan() -> Any:
    return make_plan(VALID)


def with_costs(path: Path) -> dict[str, Any]:
    return changed("compute", {"shard_minutes": 1, "costs": str(path)})


def test_measured_group_has_its_own_cost_and_others_the_scaled_model(plan: Any, tmp_path: Path) -> None:
    some = plan.cells[0]
    alike = [cell for cell in plan.cells if cell.group == some.group]
    other = next(cell for cell in plan.cells if cell.group != some.group)
    records = [record(cell, 10 * some.cost.seconds, megabytes=700 + i) for i, cell in enumerate(alike)]
    write_history(tmp_path / "costs.json", measure_history(plan.cells, records))
    after = {cell.key: cell for cell in make_plan(with_costs(tmp_path / "costs.json")).cells}
    assert after[some.key].cost.seconds == pytest.approx(10 * some.cost.seconds, rel=0.01)
    assert after[some.key].cost.megabytes == 700 + len(alike) - 1
    assert after[other.key].cost.seconds == pytest.approx(10 * other.cost.seconds, rel=0.02)
    assert after[other.key].cost.megabytes is None


def test_costs_change_the_number_of_shards_and_no_key(plan: Any, tmp_path: Path) -> None:
    path = tmp_path / "costs.json"
    write_history(path, measure_history(plan.cells, [record(cell, 3600.0) for cell in plan.cells]))
    slow = make_plan(with_costs(path))
    quick = make_plan(changed("compute", {"shard_minutes": 1}))
    assert len(slow.shards) > len(quick.shards)
    assert [cell.key for cell in slow.cells] == [cell.key for cell in quick.cells]
