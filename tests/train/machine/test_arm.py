"""Guards that the machine's kernels, compiled for ARM and run by an emulator (`arm.py`), give the bits there that they give here, where
other tests compare them with autograd. Functions of the C library are this processor's own there as well."""

import importlib.util
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rankfall.design import Architecture, Component
from rankfall.nets.network import Shape
from rankfall.train import recipe
from rankfall.train.members import RUNNING

pytest.importorskip("numba")
pytest.importorskip("unicorn")
import arm

from thousandfold import engine

pytestmark = pytest.mark.slow
SPEC = importlib.util.spec_from_file_location("asked_of_the_machine", Path(__file__).with_name("test_engine.py"))
assert SPEC is not None and SPEC.loader is not None
asked: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(asked)


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "workers", lambda members: 1)


def network(**parts: Any) -> Architecture:
    return asked.network(**{"depth": 2, "width": 24, "mlp": "none", **parts})  # type: ignore[no-any-return]


SORTING, TEXT = Shape("tokens", "classes", 5, 7, 7), Shape("tokens", "classes", 9, 40, 40)
POINTS = Shape("vectors", "classes", 10, 2, 2)
NETWORKS = {
    "transformer": (network(mlp="gelu", width=48, depth=1), SORTING),
    "convex hull": (network(embedding="linear", position="none", width=20), POINTS),
    "l2 and rms": (network(normaliser="l2", norm="rms", mlp="swiglu", position="rope"), SORTING),
    "linear attention": (network(attention="linear", mlp="gelu"), SORTING),
    "delta rule": (network(attention="delta", mask="causal"), SORTING),
    "gate": (network(attention="gated"), SORTING),
    "masked text": (network(mlp="gelu", depth=1), TEXT),
}
# Doubles differ in the width of vectors alone, which one network shows.
CASES = [(name, "float32") for name in NETWORKS] + [("transformer", "float64")]


def trained(architecture: Architecture, shape: Shape, dtype: str) -> list[torch.Tensor]:
    """Return what two members have after three steps, the last of them on fewer samples, and losses: of each step, and of an evaluation."""
    training = replace(asked.TRAINING, batch=11, lr=1e-3, weight_decay=0.1, clip=0.5, dtype=dtype)
    if shape is TEXT:
        training = replace(training, objective=Component("masked_tokens", {"rate": 0.4}))
    members, objective = asked.members_of(architecture, training, shape), recipe.objective(training)
    members.begin_epoch(0, 1)
    special = 3 if shape is TEXT else 0
    batches = [asked.batch_of(members, shape, count, draw=k, special=special) for k, count in enumerate((11, 11, 7))]
    losses = [members.step(objective, batch).loss for batch in batches]
    losses.append(members.grade(objective, replace(batches[0], learned=False)).loss)
    assert members.status.tolist() == [RUNNING] * 2
    return [members.weights, members.grads, *members.slots, *losses]


def bits(x: np.ndarray) -> np.ndarray:
    """Return the bits of numbers; a NaN is as good as any other."""
    return np.where(np.isnan(x), x.dtype.type(np.nan), x).view(f"i{x.itemsize}")


@pytest.mark.parametrize("processor", [arm.NEON, arm.SVE], ids=lambda processor: processor.name)
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_steps_have_the_same_bits(
    name: str, processor: arm.Processor, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = trained(*NETWORKS[name], dtype)
    runs = arm.emulate(monkeypatch, processor)
    there = trained(*NETWORKS[name], dtype)
    assert runs == [dtype] * 4
    for expected, emulated in zip(here, there, strict=True):
        np.testing.assert_array_equal(bits(emulated.detach().numpy()), bits(expected.detach().numpy()))
