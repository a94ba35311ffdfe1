"""Guards what the rules are given: files and params, plain strings, that change with what a job depends on and with nothing else."""

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from plans import VALID, changed

from rankfall.plan import cost
from rankfall.schedule.wiring import Param, Wiring

CONFIG = changed(
    "compute", {"shard_minutes": 0.003}, changed("figures", {"paths": {}}, changed("grid/0/depth", "1..6"))
)


def said(params: list[Param], **wildcards: str) -> set[str]:
    """What Snakemake compares for one job."""
    values = [param(SimpleNamespace(**wildcards)) for param in params]
    assert all(type(value) is str for value in values)
    return set(values) - {""}


def train(config: Any) -> dict[tuple[str, str], set[str]]:
    wiring = Wiring(config)
    return {(task, shard): said(wiring.train_params(), task=task, shard=shard) for task, shard in wiring.plan.shards}


def test_several_shards_are_under_test() -> None:
    assert len(Wiring(CONFIG).plan.shards) > 1


def test_params_name_the_edited_file_in_the_jobs_that_use_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "wirelab.py"
    path.write_text("def sharp(scores): return scores\n")
    config = changed("architectures/full/normaliser", "wirelab:sharp", CONFIG)
    before = train(config)
    path.write_text("def sharp(scores): return -scores\n")
    after = train(config)
    assert before.keys() == after.keys()
    for place, params in after.items():
        uses = any("wirelab.py" in param for param in before[place])
        assert bool(params - before[place]) == uses
        if uses:
            assert {
                param.split()[0] for param in params - before[place] if param.endswith(".py") or ".py " in param
            } == {"wirelab.py"}
    assert any(params == before[place] for place, params in after.items()), "an edit should leave some job alone"


def test_params_count_cells_and_files() -> None:
    for (task, shard), params in train(CONFIG).items():
        counted = [param for param in params if " cells " in param]
        files = [param for param in params if ".py " in param]
        assert len(counted) + len(files) == len(params)
        assert counted[0].startswith(f"{len(Wiring(CONFIG).plan.shards[task, shard])} cells ")
        assert any(param.startswith("rankfall/train/fit.py ") for param in files)


def test_how_to_compute_changes_no_param() -> None:
    compute = {**CONFIG["compute"], "threads": 5, "stack": 2, "checkpoint_seconds": 1}
    assert train(changed("compute", compute, CONFIG)) == train(CONFIG)


def test_label_changes_params_since_rows_hold_it() -> None:
    config = changed(
        "grid/0/architecture",
        ["san", "renamed"],
        changed("architectures/renamed", VALID["architectures"]["full"], CONFIG),
    )
    before, after = train(CONFIG), train(config)
    assert before.keys() == after.keys()
    assert before != after


def test_added_cell_changes_its_own_shard_only() -> None:
    more = changed("grid/0/include", [{"architecture": "san", "depth": 1, "seed": 3}], CONFIG)
    before, after = train(CONFIG), train(more)
    (own,) = {(cell.task.name, cell.shard) for cell in Wiring(more).plan.cells if cell.seed == 3}
    assert before.keys() == after.keys()
    assert {place for place in before if before[place] != after[place]} == {own}


def test_measure_params_follow_measure_and_cells() -> None:
    wiring = Wiring(CONFIG)
    (task, shard), *_ = wiring.plan.shards
    place = {"measure": "paths", "task": task, "shard": shard}
    before = said(wiring.measure_params(), **place)
    assert any(param.startswith("rankfall/measures/paths.py ") for param in before)
    after = said(Wiring(changed("measures/paths/counts", [3], CONFIG)).measure_params(), **place)
    assert len(before ^ after) == 2, "only the digest"


def test_figure_params_follow_the_figure_alone() -> None:
    before = said(Wiring(CONFIG).figure_params(), figure="paths")
    after = said(Wiring(changed("measures/paths/counts", [3], CONFIG)).figure_params(), figure="paths")
    assert before == after
    assert any(param.startswith("rankfall/report/figures/paths.py ") for param in before)


def test_tables_and_what_they_are_made_of() -> None:
    wiring = Wiring(CONFIG)
    assert wiring.tables == ["cells", "datasets", "paths", "training"]
    assert wiring.figures == ["paths"]
    assert wiring.figure_inputs(SimpleNamespace(figure="paths")) == ["results/tables/paths.parquet"]
    shards = [shard for _, shard in wiring.plan.shards]
    assert wiring.table_inputs(SimpleNamespace(table="paths")) == [
        f"results/shards/measure/paths/sorting/{shard}.parquet" for shard in shards
    ]
    assert wiring.table_inputs(SimpleNamespace(table="cells")) == [
        f"results/shards/train/sorting/{s}.cells.parquet" for s in shards
    ]
    assert wiring.table_inputs(SimpleNamespace(table="datasets")) == ["results/shards/data/sorting.parquet"]


def test_measure_of_some_cells_has_jobs_for_their_shards_only() -> None:
    wiring = Wiring(changed("measures/paths/cells", {"architecture": "san", "depth": 2}, CONFIG))
    files = wiring.table_inputs(SimpleNamespace(table="paths"))
    chosen = {
        cell.shard for cell in wiring.plan.cells if cell.architecture.name == "san" and cell.architecture.depth == 2
    }
    assert {Path(file).stem for file in files} == chosen
    assert len(chosen) < len(wiring.plan.shards)


def test_config_is_written_once(tmp_path: Path) -> None:
    config = changed("results", str(tmp_path / "made"))
    path = Path(Wiring(config).write_config())
    assert json.loads(path.read_text()) == config
    os.utime(path, (1, 1))
    assert Wiring(config).write_config() == path.as_posix()
    assert path.stat().st_mtime == 1, "the same config must not look new"
    Wiring(changed("name", "other", config)).write_config()
    assert path.stat().st_mtime != 1
    assert [entry.name for entry in path.parent.iterdir()] == ["config.json"]


def test_limits_grow_with_the_attempt() -> None:
    wiring = Wiring(CONFIG)
    (task, shard), *_ = wiring.plan.shards
    job = SimpleNamespace(task=task, shard=shard)
    assert wiring.train_minutes(job, attempt=2) == 2 * wiring.train_minutes(job)
    assert wiring.train_memory(job) > 1000
    asked = SimpleNamespace(task=task, shard=shard, measure="paths")
    assert wiring.measure_minutes(asked) > wiring.train_minutes(job)


def test_untrained_networks_ask_for_no_memory_to_train_in() -> None:
    """Ninety-six layers, looked at: their states, not what a gradient needs; and no more members than there are seeds."""
    deep = changed(
        "grid", [{"task": "sorting", "architecture": "san", "training": ["short", "init"], "depth": 96, "seed": [0, 1]}]
    )
    deep |= {"measures": {}, "figures": {}}
    wiring = Wiring(changed("tasks/sorting/train", 10000, changed("trainings/short/batch", 256, deep)))
    memory = {}
    for name in ("short", "init"):
        cells = [cell for cell in wiring.plan.cells if cell.training.name == name]
        memory[name] = cost.member_megabytes(cells[0].task, cells[0].architecture, cells[0].training)
    assert memory["init"] * 5 < memory["short"]
    most = cost.MEGABYTES + 2 * max(memory.values())
    assert all(wiring.train_memory(SimpleNamespace(task=t, shard=s)) <= most for t, s in wiring.plan.shards)
