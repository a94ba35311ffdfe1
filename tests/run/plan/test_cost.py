"""Guards the estimate of a cell's time and memory: what grows with what."""

from pathlib import Path
from typing import Any

import pytest

from rankfall.commands.plan import advise_gpu
from rankfall.design import Architecture, Component, Task, Training
from rankfall.run.plan import make_plan
from rankfall.run.plan.cost import cell_seconds, member_megabytes


def estimates(attention: str, length: int, **given: Any) -> tuple[float, int]:
    task = Task("t", Component("sorting", {"train": 256, "length": length}))
    architecture = Architecture(name="a", attention=Component(attention), depth=4, heads=4, width=32, **given)
    training = Training(name="t", epochs=10, batch=64)
    return cell_seconds(task, architecture, training), member_megabytes(task, architecture, training)


def growth(attention: str) -> tuple[float, float]:
    """By how much more than length itself seconds and megabytes grow from 512 to 2,048 tokens."""
    short, long = estimates(attention, 512), estimates(attention, 2048)
    return long[0] / short[0] / 4, long[1] / short[1] / 4


@pytest.mark.parametrize(("attention", "squared"), [("multihead", True), ("gau", True), ("linear", False)])
def test_an_attention_without_scores_grows_with_length_and_not_with_its_square(attention: str, squared: bool) -> None:
    seconds, megabytes = growth(attention)
    if squared:
        assert seconds > 2 and megabytes > 2
    else:
        assert 0.9 < seconds < 1.02 and 0.9 < megabytes < 1.02


PRESETS = Path(__file__).parents[3] / "workflow" / "presets"


def test_a_plan_advises_a_gpu_where_one_network_takes_a_core_many_hours() -> None:
    (line,) = advise_gpu(make_plan(PRESETS / "urpe.yaml"))
    assert line.startswith("the longest network takes 1590 h of one core, 3.4e+17 operations") and "GPU" in line
    assert advise_gpu(make_plan(PRESETS / "smoke.yaml")) == []
