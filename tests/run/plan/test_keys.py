"""Guards identity: what changes a cell's key, group and shard, and above all what does not."""

import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plans import VALID, changed, planned

from rankfall.run.plan import Cell, Plan, make_plan, shard

RICH: dict[str, Any] = changed(
    "grid",
    [
        {
            "task": "sorting",
            "architecture": ["san", "full"],
            "training": ["short", "init"],
            "depth": [2, 4],
            "seed": [0, 1],
        },
        {
            "task": "sorting",
            "architecture": "full",
            "training": "short",
            "width": [24],
            "seed": "0..3",
            "exclude": [{"seed": 2}],
        },
    ],
)


def keys(config: Any) -> dict[str, tuple[str, str, str]]:
    """Key -> everything else that identifies."""
    return {cell.key: (cell.spec, cell.group, cell.shard) for cell in make_plan(config).cells}


def shuffled(value: Any, random: random.Random) -> Any:
    """The same mapping written in another order, all the way down; lists of axes too."""
    if isinstance(value, dict):
        items = list(value.items())
        random.shuffle(items)
        return {key: shuffled(item, random) for key, item in items}
    if isinstance(value, list):
        items = [shuffled(item, random) for item in value]
        random.shuffle(items)
        return items
    return value


@pytest.mark.long
@settings(max_examples=6, deadline=None)
@given(st.randoms(use_true_random=False))
def test_order_of_writing_changes_nothing(random: random.Random) -> None:
    again = shuffled(RICH, random)
    assert keys(again) == keys(RICH)
    plan, other = make_plan(RICH), make_plan(again)
    assert [cell.key for cell in plan.cells] == [cell.key for cell in other.cells]


@settings(max_examples=6, deadline=None)
@given(st.sets(st.integers(0, 2**40), min_size=1, max_size=6), st.integers(0, 2**40))
def test_added_seed_changes_no_other_cell(seeds: set[int], more: int) -> None:
    before = keys(changed("grid/0/seed", sorted(seeds)))
    after = keys(changed("grid/0/seed", sorted(seeds | {more})))
    assert before.items() <= after.items()


def only(config: Any) -> Cell:
    (cell,) = make_plan(
        changed("grid", [{"task": "sorting", "architecture": "san", "training": "short", "seed": 0}], config)
    ).cells
    return cell


SAME_KEY = {
    "default written out": ("architectures/san/heads", 2),
    "width of a head written out": ("architectures/san/head_width", 24),
    "embedding written out": ("architectures/san/embedding", "token"),
    "component as mapping": ("architectures/san/mask", {"name": "none"}),
    "learning rate as text": ("trainings/short/lr", "1e-3"),
    "how to compute": ("compute", {"threads": 7, "stack": 3, "checkpoint_seconds": 5}),
    "name": ("name", "another"),
    "a measure": ("measures", {}),
    "another architecture": ("architectures/more", {"depth": 9}),
}
OTHER_KEY = {
    "task option": ("tasks/sorting/length", 6),
    "architecture": ("architectures/san/depth", 5),
    "component": ("architectures/san/normaliser", "l2"),
    "training": ("trainings/short/lr", 2e-3),
    "schedule": ("trainings/short/schedule", "cosine"),
    "dtype": ("trainings/short/dtype", "float64"),
    "precision": ("trainings/short/precision", "bf16"),
}


@pytest.mark.parametrize("name", SAME_KEY)
def test_same_meaning_has_the_same_key(name: str) -> None:
    assert only(changed(*SAME_KEY[name])).key == only(VALID).key


@pytest.mark.parametrize("name", OTHER_KEY)
def test_other_meaning_has_another_key(name: str) -> None:
    assert only(changed(*OTHER_KEY[name])).key != only(VALID).key


def test_writing_a_default_changes_nothing_however_it_is_spelt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "deflab.py").write_text("def sharp(scores, *, scale: float = 1, both: list[float] = (1, 2)): ...\n")
    written = {"name": "deflab:sharp", "scale": 1.0, "both": [1, 2]}
    plain, spelt = (only(changed("architectures/san/normaliser", one)) for one in ("deflab:sharp", written))
    assert plain.key == spelt.key


@pytest.mark.parametrize("field", ["lr", "weight_decay", "clip", "stop_loss"])
def test_what_a_stack_holds_by_member_is_no_part_of_the_group(field: str) -> None:
    cells = planned(f"grid/0/training.{field}", [0.5, 0.25]).cells
    assert len({(cell.group, cell.seed) for cell in cells}) == len(cells) // 2
    assert len({cell.key for cell in cells}) == len(cells)


@pytest.mark.parametrize(("axis", "values"), [("heads", [2, 4]), ("training.batch", [5, 6]), ("task.length", [5, 6])])
def test_what_shapes_depend_on_is_part_of_the_group(axis: str, values: list[int]) -> None:
    cells = planned(f"grid/0/{axis}", values).cells
    assert len({(cell.group, cell.seed) for cell in cells}) == len(cells)


def test_untrained_cells_do_not_depend_on_how_they_would_be_trained() -> None:
    config = changed("grid/0/training", "init")
    assert keys(config) == keys(
        changed("trainings/init", {"epochs": 0, "lr": 0.5, "batch": 7, "optimizer": "sgd"}, config)
    )
    for cell in make_plan(config).cells:
        assert not any("optimizers/adam" in file for file in cell.code)


def edited(plan: Plan, other: Plan) -> set[str]:
    """Labels of the cells whose keys differ."""
    before = {cell.spec: cell for cell in plan.cells}
    return {cell.architecture.name for cell in other.cells if before[cell.spec].key != cell.key}


def test_edit_of_a_component_touches_only_the_cells_that_use_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "keylab.py"
    path.write_text("def sharp(scores, *, power: int = 2):\n    return scores ** power\n")
    config = changed("architectures/full/normaliser", {"name": "keylab:sharp", "power": 3})
    plan = make_plan(config)
    path.write_text('def sharp(scores, *, power: int = 2):\n    """Says more."""\n    return scores ** power  # how\n')
    assert edited(plan, make_plan(config)) == set()
    path.write_text("def sharp(scores, *, power: int = 2):\n    return -(scores ** power)\n")
    assert edited(plan, make_plan(config)) == {"full"}


def test_edit_of_a_task_makes_its_data_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Data are kept by key: one that stood still would feed what the old code drew to cells of the new."""
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "tasklab.py"
    text = 'INPUTS = "tokens"\nTARGETS = "classes"\n\n\ndef coins(rng, *, train: int = 60):\n    return rng.random(train)\n'
    path.write_text(text)
    entry = {"task": ["sorting", "coins"], "architecture": "san", "training": "short", "seed": 0}
    config = changed("grid", [entry], changed("tasks/coins", {"task": "tasklab:coins"}))
    config["measures"] = {}
    plan = make_plan(config)
    path.write_text(text.replace("rng.random(train)", "rng.random(train) + 1"))
    again = make_plan(config)
    assert {cell.task.name for cell in set(plan.cells) - set(again.cells)} == {"coins"}
    data = {cell.task.name: cell.data_key for cell in plan.cells}
    assert {cell.task.name for cell in again.cells if data[cell.task.name] != cell.data_key} == {"coins"}


def test_measure_key_follows_cell_options_and_code() -> None:
    plan, other = make_plan(VALID), planned("measures/paths/counts", [3])
    cell = plan.cells[0]
    assert plan.measure_key("paths", cell) != plan.measure_key("paths", plan.cells[1])
    assert plan.measure_key("paths", cell) != other.measure_key("paths", cell)
    renamed = changed("measures", {"again": {"measure": "paths", "counts": [2]}})
    assert make_plan(renamed).measure_key("again", cell) == plan.measure_key("paths", cell)


# Shards


PACKS = st.dictionaries(st.builds(shard.Pack, st.integers(0, 40), st.integers(0, 2**32 - 1)), st.floats(0.01, 1e4))


def members(cut: dict[shard.Pack, str]) -> dict[str, set[shard.Pack]]:
    found: dict[str, set[shard.Pack]] = {}
    for one, name in cut.items():
        found.setdefault(name, set()).add(one)
    return found


@given(PACKS.filter(bool), st.floats(50, 500))
def test_a_shard_is_as_long_as_it_may_be_or_cannot_be_cut(seconds: dict[shard.Pack, float], minutes: float) -> None:
    cut = shard.shards(seconds, minutes)
    assert cut.keys() == seconds.keys()
    for name, packs in members(cut).items():
        assert re.fullmatch(r"0|\d+-\d+(\.[01]+)?", name)
        assert len(packs) == 1 or sum(seconds[one] for one in packs) <= 60 * minutes * (1 + 1e-9)


@given(PACKS.filter(bool), PACKS, st.floats(50, 500))
def test_a_grown_grid_cuts_shards_that_grew_and_leaves_the_others(
    few: dict[shard.Pack, float], more: dict[shard.Pack, float], minutes: float
) -> None:
    before, after = members(shard.shards(few, minutes)), members(shard.shards(more | few, minutes))
    for packs in after.values():
        assert sum(bool(own & packs) for own in before.values()) <= 1, "cells met that were apart"
    new = more.keys() - few.keys()
    for name, packs in before.items():
        assert any(within(name, one) for one in new) or after[name] == packs


def within(name: str, one: shard.Pack) -> bool:
    """Whether a shard of this name would have this pack."""
    if name == shard.WHOLE:
        return True
    seeds, _, bits = name.partition(".")
    first, last = map(int, seeds.split("-"))
    return first <= 32 * one.block <= last and f"{one.address:032b}".startswith(bits)


@pytest.mark.parametrize(
    ("how", "together"),
    [
        ({"engine": "machine"}, 1),
        ({"engine": "machine", "threads": 2}, 3),
        ({"engine": "plain"}, 3),
        ({"engine": "auto", "device": "cuda"}, 3),
    ],
)
def test_networks_of_minutes_are_jobs_of_their_own_where_a_stack_spares_nothing(
    how: dict[str, Any], together: int
) -> None:
    """And short ones stay in their stack, however short a job should be."""
    compute = {**how, "shard_minutes": 0.001}
    plan = make_plan(changed("compute", compute, changed("trainings/short/epochs", 1_000_000)))
    assert {len(cells) for cells in plan.shards.values()} == {together}
    assert {len(cells) for cells in make_plan(changed("compute", compute)).shards.values()} == {3}
