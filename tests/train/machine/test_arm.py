"""Guards that the machine's kernels, compiled for ARM and run by an emulator (`arm.py`), give the bits there that they give here, where
other tests compare them with autograd. Functions of the C library are this processor's own there as well."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rankfall.design import Architecture, Component, Training
from rankfall.nets.network import Shape
from rankfall.random_streams import stream
from rankfall.train import recipe
from rankfall.train.members import RUNNING
from rankfall.train.objectives._base import Samples

pytest.importorskip("numba")
pytest.importorskip("unicorn")
import arm

from rankfall.train.machine.engine import Machined
from thousandfold import engine

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent
PROCESSORS = (arm.NEON, arm.SVE)


def bits(x: np.ndarray) -> np.ndarray:
    """Of numbers; a NaN is as good as any other."""
    return np.where(np.isnan(x), x.dtype.type(np.nan), x).view(f"i{x.itemsize}")


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(HERE))
    monkeypatch.setattr(engine, "workers", lambda members: 1)


SMALL = {"depth": 2, "heads": 2, "width": 24, "embedding": Component("token"), "head": Component("classifier")}
SORTING, TEXT = Shape("tokens", "classes", 5, 7, 7), Shape("tokens", "classes", 9, 40, 40)
POINTS = Shape("vectors", "classes", 10, 2, 2)
TRAINING = Training("t", objective=Component("classes"), epochs=1, batch=11, dropout=0.1, weight_decay=0.1, clip=0.5)


def network(**parts: Any) -> Architecture:
    named = {kind: Component(one) if isinstance(one, str) else one for kind, one in parts.items()}
    return Architecture("a", **{**SMALL, **named})


NETWORKS = {
    "transformer": (network(mlp="gelu", width=48, depth=1), SORTING),
    "convex hull": (network(embedding="linear", position="none", width=20), POINTS),
    "l2 and rms": (network(normaliser="l2", norm="rms", mlp="swiglu", position="rope"), SORTING),
    "linear attention": (network(attention="linear", mlp="gelu"), SORTING),
    "delta rule": (network(attention="delta", mask="causal"), SORTING),
    "a user's delta rule": (network(attention="own:Delta"), SORTING),
    "masked text": (network(mlp="gelu", depth=1), TEXT),
}


def training_of(shape: Shape, **more: Any) -> Training:
    objective = Component("masked_tokens", {"rate": 0.4}) if shape is TEXT else TRAINING.objective
    return replace(TRAINING, objective=objective, **more)


def batch_of(shape: Shape, draw: int, samples: int, dtype: str = "float32") -> Samples:
    rng, sizes = stream(draw, "arm"), (2, samples, shape.length)
    special = 3 if shape is TEXT else 0
    if shape.inputs == "vectors":
        inputs = torch.from_numpy(rng.normal(size=(*sizes, shape.size_in)).astype(dtype))
    else:
        inputs = torch.from_numpy(rng.integers(special, shape.size_in, size=sizes))
    targets = torch.from_numpy(rng.integers(special, shape.size_out, size=sizes))
    return Samples(inputs, targets, (0, 1), ("train", draw), shape.size_in, special, learned=True)


def trained(architecture: Architecture, shape: Shape, dtype: str) -> list[torch.Tensor]:
    """What two members have after three steps, the last of them on fewer samples, and losses: of each step, and of an evaluation."""
    training = training_of(shape, dtype=dtype)
    members = recipe.initial(architecture, shape, (0, 1), [training] * 2, torch.device("cpu"))
    members.engine = Machined(members, architecture, shape, training)
    objective = recipe.objective(training)
    members.begin_epoch(0, 1)
    batches = [batch_of(shape, draw, samples, dtype) for draw, samples in enumerate((11, 11, 7))]
    losses = [members.step(objective, batch).loss for batch in batches]
    losses.append(members.grade(objective, replace(batches[0], learned=False)).loss)
    assert members.status.tolist() == [RUNNING] * 2
    return [members.weights, members.grads, *members.slots, *losses]


# Doubles differ in the width of vectors alone, which one network shows.
CASES = [(name, "float32") for name in NETWORKS] + [("transformer", "float64")]


@pytest.mark.parametrize("processor", PROCESSORS, ids=lambda one: one.name)
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_steps_have_the_same_bits(
    name: str, processor: arm.Processor, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = trained(*NETWORKS[name], dtype)
    runs = arm.emulate(monkeypatch, processor)
    there = trained(*NETWORKS[name], dtype)
    assert runs == [dtype] * 4
    for one, other in zip(here, there, strict=True):
        np.testing.assert_array_equal(bits(other.detach().numpy()), bits(one.detach().numpy()))
