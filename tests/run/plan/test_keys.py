"""Guards identity: what changes a cell's key, group and shard, or a measure's key, and above all what does not."""

import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plans import VALID, changed, planned

from rankfall.run.plan import make_plan, shard

ROOT = Path(__file__).parents[3]
BASE: dict[str, Any] = {"task": "sorting", "architecture": "san", "training": "short", "seed": 0}
RICH: dict[str, Any] = changed(
    "grid",
    [
        BASE | {"architecture": ["san", "full"], "training": ["short", "init"], "depth": [2, 4], "seed": [0, 1]},
        BASE | {"architecture": "full", "width": [24], "seed": "0..3", "exclude": [{"seed": 2}]},
    ],
)


def identities(config: Any) -> dict[str, tuple[str, str, str]]:
    """Return key -> everything else that identifies a cell."""
    return {cell.key: (cell.spec, cell.group, cell.shard) for cell in make_plan(config).cells}


def shuffle(value: Any, random: random.Random) -> Any:
    """Write the same mapping in another order, all the way down; lists of axes too."""
    if not isinstance(value, dict | list):
        return value
    items = list(value.items() if isinstance(value, dict) else value)
    random.shuffle(items)
    if isinstance(value, dict):
        return {key: shuffle(item, random) for key, item in items}
    return [shuffle(item, random) for item in items]


@pytest.mark.long
@settings(max_examples=6, deadline=None)
@given(st.randoms(use_true_random=False))
def test_order_of_writing_changes_nothing(random: random.Random) -> None:
    expected, shuffled = identities(RICH), identities(shuffle(RICH, random))
    assert shuffled == expected and list(shuffled) == list(expected)


@settings(max_examples=6, deadline=None)
@given(st.sets(st.integers(0, 2**40), min_size=1, max_size=6), st.integers(0, 2**40))
def test_added_seed_changes_no_other_cell(seeds: set[int], more: int) -> None:
    before = identities(changed("grid/0/seed", sorted(seeds)))
    after = identities(changed("grid/0/seed", sorted(seeds | {more})))
    assert before.items() <= after.items()


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


@pytest.mark.parametrize("name", [*SAME_KEY, *OTHER_KEY])
def test_a_key_is_the_same_where_the_meaning_is(name: str) -> None:
    path, value = (SAME_KEY | OTHER_KEY)[name]
    (before,), (after,) = (make_plan(changed("grid", [BASE], config)).cells for config in (VALID, changed(path, value)))
    assert (before.key == after.key) is (name in SAME_KEY)


STACKED = {"training.lr": True, "training.weight_decay": True, "training.clip": True, "training.stop_loss": True,
           "heads": False, "training.batch": False, "task.length": False}  # fmt: skip


@pytest.mark.parametrize("axis", STACKED)
def test_what_shapes_depend_on_is_part_of_the_group_and_what_a_stack_holds_by_member_is_not(axis: str) -> None:
    cells = planned(f"grid/0/{axis}", [0.5, 0.25] if STACKED[axis] else [2, 4]).cells
    assert len({(cell.group, cell.seed) for cell in cells}) == len(cells) // (2 if STACKED[axis] else 1)
    assert len({cell.key for cell in cells}) == len(cells)


def test_untrained_cells_do_not_depend_on_how_they_would_be_trained() -> None:
    config = changed("grid/0/training", "init")
    other = changed("trainings/init", {"epochs": 0, "lr": 0.5, "batch": 7, "optimizer": "sgd"}, config)
    assert identities(config) == identities(other)
    for cell in make_plan(config).cells:
        assert not any("optimizers/adam" in file for file in cell.code)


def test_edit_of_a_task_makes_its_data_again(lab: Path) -> None:
    """Data are kept by key: one that stood still would feed what the old code drew to cells of the new."""
    text = 'INPUTS = "tokens"\nTARGETS = "classes"\n\n\ndef coins(rng, *, train: int = 60):\n    return rng.random(train)\n'
    (lab / "tasklab.py").write_text(text)
    config = changed("tasks/coins", {"task": "tasklab:coins"}, changed("measures", {}))
    config["grid"] = [BASE | {"task": ["sorting", "coins"]}]
    before = {cell.task.name: cell for cell in make_plan(config).cells}
    (lab / "tasklab.py").write_text(text.replace("rng.random(train)", "rng.random(train) + 1"))
    for cell in make_plan(config).cells:
        edited = cell.task.name == "coins"
        assert (cell.key != before[cell.task.name].key) is edited
        assert (cell.data_key != before[cell.task.name].data_key) is edited


def test_measure_key_follows_cell_options_and_code() -> None:
    plan, other = make_plan(VALID), planned("measures/paths/counts", [3])
    cell = plan.cells[0]
    assert plan.measure_key("paths", cell) != plan.measure_key("paths", plan.cells[1])
    assert plan.measure_key("paths", cell) != other.measure_key("paths", cell)
    renamed = changed("measures", {"again": {"measure": "paths", "counts": [2]}})
    assert make_plan(renamed).measure_key("again", cell) == plan.measure_key("paths", cell)


@pytest.mark.long
def test_the_key_of_a_measure_that_builds_networks_has_the_components_that_it_builds() -> None:
    """`law` has the cell's own in the cell's key. `orders` measures them all."""
    measures = make_plan(ROOT / "config.yaml").measures
    in_key = {
        name: set(re.findall(r"normalisers/([a-z]\w+)\.py", " ".join(measures[name].code)))
        for name in ("influence", "bert_law", "law", "orders")
    }
    assert (in_key["influence"], in_key["bert_law"], in_key["law"]) == ({"softmax"}, {"softmax"}, set())
    assert {"l2", "urpe", "softmax"} <= in_key["orders"]


def test_a_measure_that_builds_networks_depends_on_every_part_they_may_have(lab: Path) -> None:
    """It names components as data, so no import shows them; a part from outside the package counts too."""
    (lab / "orderlab.py").write_text("def sharp(logits):\n    return logits\n")
    plan = planned("measures", {"orders": {"normalisers": ["softmax", "orderlab:sharp"]}, "paths": {}})
    parts = ("positions/rope", "masks/causal", "residuals/add", "sentinels/bos", "mlps/gelu", "inits/published")
    assert {"orderlab.py", *(f"rankfall/nets/{part}.py" for part in parts)} <= set(plan.measures["orders"].code)
    # A measure of cells leaves the parts to the cells' keys.
    assert "rankfall/nets/positions/rope.py" not in plan.measures["paths"].code


# Shards


PACKS = st.dictionaries(st.integers(0, 41 * 2**32 - 1), st.floats(0.01, 1e4))


def packs_by_shard(seconds: dict[int, float], minutes: float) -> dict[str, set[int]]:
    packs: dict[str, set[int]] = {}
    for pack, name in shard.shards(seconds, minutes).items():
        packs.setdefault(name, set()).add(pack)
    return packs


@given(PACKS.filter(bool), st.floats(50, 500))
def test_a_shard_is_as_long_as_it_may_be_or_cannot_be_cut(seconds: dict[int, float], minutes: float) -> None:
    cut = packs_by_shard(seconds, minutes)
    assert sorted(pack for packs in cut.values() for pack in packs) == sorted(seconds)
    for name, packs in cut.items():
        assert re.fullmatch(r"0|\d+-\d+(\.[01]+)?", name)
        assert len(packs) == 1 or sum(seconds[pack] for pack in packs) <= 60 * minutes * (1 + 1e-9)


@given(PACKS.filter(bool), PACKS, st.floats(50, 500))
def test_a_grown_grid_cuts_shards_that_grew_and_leaves_the_others(
    few: dict[int, float], more: dict[int, float], minutes: float
) -> None:
    before, after = packs_by_shard(few, minutes), packs_by_shard(more | few, minutes)
    for packs in after.values():
        assert sum(bool(old & packs) for old in before.values()) <= 1, "cells met that were apart"
    for name, packs in before.items():
        assert any(would_hold(name, pack) for pack in more.keys() - few.keys()) or after[name] == packs


def would_hold(name: str, pack: int) -> bool:
    """Return whether a shard of this name would have this pack."""
    if name == shard.WHOLE:
        return True
    seeds, _, bits = name.partition(".")
    first, last = map(int, seeds.split("-"))
    block, address = divmod(pack, 2**32)
    return first <= 32 * block <= last and f"{address:032b}".startswith(bits)


COMPUTE = [
    ({"engine": "machine"}, 1),
    ({"engine": "machine", "threads": 2}, 3),
    ({"engine": "plain"}, 3),
    ({"engine": "auto", "device": "cuda"}, 3),
]


@pytest.mark.parametrize(("compute", "together"), COMPUTE)
def test_networks_of_minutes_are_jobs_of_their_own_where_a_stack_spares_nothing(
    compute: dict[str, Any], together: int
) -> None:
    """And short ones stay in their stack, however short a job should be."""
    short = changed("compute", {**compute, "shard_minutes": 0.001})
    long = changed("trainings/short/epochs", 1_000_000, short)
    assert {len(cells) for cells in make_plan(long).shards.values()} == {together}
    assert {len(cells) for cells in make_plan(short).shards.values()} == {3}
