"""What is said of a program's instructions: all of them, and as many operations as the products have."""

import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # benchmarks are not installed

from benchmarks import machine  # noqa: E402
from thousandfold.profile import Spent, profile, report  # noqa: E402

DEPTH, WIDTH, ROWS = 2, 16, machine.TRAINING.batch * 8


@pytest.fixture(scope="module")
def profiled() -> list[Spent]:
    torch.set_num_threads(1)
    parts = {"residual": "add", "depth": DEPTH, "width": WIDTH}
    members, _, batch = machine.stack_of(machine.Case(parts), "machine", 1)
    found, whole = profile(members.engine.engine, members, members.engine.work(batch))
    launch = members.engine.engine.launch(members, members.engine.work(batch), 0)
    assert len(found) == launch.program.program.count + launch.descent.count
    assert whole > 0 and len(list(report("step", found, whole, 1e11))) > 4
    return found


def test_products_with_weights_are_those_of_the_network(profiled: list[Spent]) -> None:
    """Four maps a layer and the head: each once forward, once for its weights and once for what it reads."""
    maps = DEPTH * 4 * WIDTH * WIDTH + WIDTH * 10
    for kind, times in (("LIN", 2), ("WGRAD", 1)):
        assert sum(one.operations for one in profiled if one.kind == kind) == times * 2 * ROWS * maps


def test_products_for_each_sequence_are_those_of_the_heads(profiled: list[Spent]) -> None:
    """Scores and mixing, of two heads of 8 dimensions over 8 tokens; backward each is two."""
    products = DEPTH * 2 * machine.TRAINING.batch * 2 * 8 * 8 * 8
    assert sum(one.operations for one in profiled if one.kind == "BMM") == 3 * 2 * products
