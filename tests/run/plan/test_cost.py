"""Guards the estimate of a cell's time and memory: what grows with what, and costs that were measured, which reach shards and requests only
through the file that the configuration names."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from plans import VALID, changed

from rankfall.commands.plan import advise_gpu
from rankfall.design import Architecture, Component, Task, Training
from rankfall.run.plan import make_plan
from rankfall.run.plan.cost import cell_seconds, member_megabytes
from rankfall.run.plan.history import measure_history

PRESETS = Path(__file__).parents[3] / "workflow" / "presets"


@pytest.mark.parametrize(("attention", "squared"), [("multihead", True), ("gau", True), ("linear", False)])
def test_an_attention_without_scores_grows_with_length_and_not_with_its_square(attention: str, squared: bool) -> None:
    """By how much more than length itself, from 512 to 2,048 tokens."""
    architecture = Architecture(name="a", attention=Component(attention), depth=4, heads=4, width=32)
    training = Training(name="t", epochs=10, batch=64)
    short, long = (Task("t", Component("sorting", {"train": 256, "length": length})) for length in (512, 2048))
    for estimate in (cell_seconds, member_megabytes):
        growth = estimate(long, architecture, training) / estimate(short, architecture, training) / 4
        assert growth > 2 if squared else 0.9 < growth < 1.02


def test_a_plan_advises_a_gpu_where_one_network_takes_a_core_many_hours() -> None:
    (line,) = advise_gpu(make_plan(PRESETS / "urpe.yaml"))
    assert line.startswith("the longest network takes 1590 h of one core, 3.4e+17 operations") and "GPU" in line
    assert advise_gpu(make_plan(PRESETS / "smoke.yaml")) == []


def record(cell: Any, seconds: float, **more: Any) -> Any:
    return SimpleNamespace(record={"spec": cell.spec, "status": "done", "seconds": seconds, **more})


def test_measured_group_has_its_own_cost_and_others_the_scaled_model(tmp_path: Path) -> None:
    plan, path = make_plan(VALID), tmp_path / "costs.json"
    measured = plan.cells[0]
    alike = [cell for cell in plan.cells if cell.group == measured.group]
    other = next(cell for cell in plan.cells if cell.group != measured.group)
    records = [record(cell, 10 * measured.cost.seconds, megabytes=700 + i) for i, cell in enumerate(alike)]
    path.write_text(json.dumps(measure_history(plan.cells, records)))
    costs = {cell.key: cell.cost for cell in make_plan(changed("compute", {"costs": str(path)})).cells}
    assert costs[measured.key].seconds == pytest.approx(10 * measured.cost.seconds, rel=0.01)
    assert costs[measured.key].megabytes == 700 + len(alike) - 1
    assert costs[other.key].seconds == pytest.approx(10 * other.cost.seconds, rel=0.02)
    assert costs[other.key].megabytes is None


def test_costs_change_the_number_of_shards_and_no_key(tmp_path: Path) -> None:
    plan, path = make_plan(changed("compute", {"shard_minutes": 1})), tmp_path / "costs.json"
    path.write_text(json.dumps(measure_history(plan.cells, [record(cell, 3600.0) for cell in plan.cells])))
    slow = make_plan(changed("compute", {"shard_minutes": 1, "costs": str(path)}))
    assert len(slow.shards) > len(plan.shards)
    assert [cell.key for cell in slow.cells] == [cell.key for cell in plan.cells]
