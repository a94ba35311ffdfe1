"""A measuring job that ends early keeps what it has measured, as of the last time it saved."""

import copy
from pathlib import Path
from typing import Any

import pytest
from helpers import config

from rankfall.commands import measure as command
from rankfall.plan import make_plan
from rankfall.store import Store


@pytest.mark.parametrize(("interval", "kept"), [(1e-9, 2), (3600.0, 0)])
def test_measured_rows_outlive_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interval: float, kept: int
) -> None:
    raw = config(
        grid={"seed": [0, 1, 2, 3]}, measures={"paths": {}}, compute={"stack": 2, "checkpoint_seconds": interval}
    )
    plan = make_plan(copy.deepcopy(raw))
    measure, store = plan.measure("paths"), Store(tmp_path / "store")
    monkeypatch.setattr(store, "find_cells", lambda keys, groups: {key: Done() for key in keys})
    calls: list[Any] = []

    def measure_stack(measure: Any, cells: Any, *rest: Any) -> dict[str, list[dict[str, Any]]]:
        calls.append(cells)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return {cell.key: [] for cell in cells}

    monkeypatch.setattr(command, "measure_stack", measure_stack)
    with pytest.raises(KeyboardInterrupt):
        command.measured(plan, measure, plan.cells, store, None, None)  # type: ignore[arg-type]
    assert [len(cells) for cells in calls] == [2, 2]
    assert len(store.find_rows("paths", [plan.measure_key("paths", cell) for cell in plan.cells])) == kept


class Done:
    status = "done"
