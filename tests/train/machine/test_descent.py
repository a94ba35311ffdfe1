"""Guards that the machine's step down a gradient is the optimiser's, whatever operations it is made of."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from rankfall.design import Architecture, Component, Training
from rankfall.nets.network import Shape
from rankfall.random_streams import stream
from rankfall.train import recipe
from rankfall.train.members import Members
from rankfall.train.objectives._base import Samples

pytest.importorskip("numba")
from rankfall.train.machine import agreement
from rankfall.train.machine.engine import Machined
from thousandfold import descent

SHAPE = Shape("tokens", "classes", 4, 6, 6)
ENDS = {"embedding": Component("token"), "head": Component("classifier"), "depth": 1, "heads": 2, "width": 8}
NETWORK = Architecture("a", normaliser=Component("l2"), **ENDS)
TRAINING = Training(
    "t", objective=Component("classes"), epochs=4, batch=5, lr=3e-2, schedule=Component("cosine"), dtype="float64"
)


@pytest.fixture(autouse=True)
def own_components(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


def members_of(name: str, machine: bool, seeds: tuple[int, ...] = (0, 1, 2), **training: Any) -> Members:
    """The members differ in learning rate, decay and clip."""
    t = replace(TRAINING, optimizer=Component(name), **training)
    each = [
        replace(t, lr=t.lr * (1 + seed), weight_decay=t.weight_decay * seed, clip=t.clip and t.clip + seed)
        for seed in seeds
    ]
    members = recipe.initial(NETWORK, SHAPE, seeds, each, torch.device("cpu"))
    if machine:
        members.engine = Machined(members, NETWORK, SHAPE, t)
    return members


def batch_of(members: Members, draw: int, samples: int = 5) -> Samples:
    drawn = [torch.from_numpy(stream(seed, "batch", draw).integers(6, size=(samples, 4))) for seed in members.seeds]
    inputs = torch.stack(drawn)
    return Samples(inputs, inputs.sort(-1).values, members.seeds, ("train", draw), 6, learned=True)


def trained(members: Members, at_once: int = 1, epochs: int = 4) -> Members:
    """Three steps an epoch, the last of them on fewer samples."""
    objective = recipe.objective(TRAINING)
    for epoch in range(epochs):
        members.begin_epoch(epoch, epochs)
        batches = [batch_of(members, 3 * epoch + i, 5 - (i == 2)) for i in range(3)]
        for first in range(0, 3, at_once):
            members.steps(objective, batches[first : first + at_once])
    return members


def check_same(one: Members, other: Members) -> None:
    """But for rounding in float64, and for biases of keys, whose gradients are nothing but rounding: it is the same for all keys."""
    sizes = [value[0].numel() for value in one.parameters]
    for mine, others in zip((one.weights, *one.slots), (other.weights, *other.slots), strict=True):
        parts = zip(one.layout, mine.split(sizes, 1), others.split(sizes, 1))
        assert all((a - b).abs().max() <= 1e-9 for name, a, b in parts if not name.endswith("key.bias"))
    assert one.last_step.tolist() == other.last_step.tolist() and one.status.tolist() == other.status.tolist()
    assert one.step_count == other.step_count


TRACED = ("adam", "adamw", "sgd", "own:Trusting")
REFUSED = ("own:Halved", "own:Deciding")


@pytest.mark.parametrize("name", [*TRACED, *REFUSED])
@pytest.mark.parametrize("more", [{}, {"weight_decay": 0.1, "clip": 0.2}])
def test_steps_are_the_optimisers(name: str, more: dict[str, Any]) -> None:
    plain, machine = (members_of(name, engine, **more) for engine in (False, True))
    assert isinstance(machine.engine, Machined)
    assert (machine.engine.engine.descent is not None) == (name in TRACED)
    check_same(trained(machine), trained(plain))


@pytest.mark.parametrize("name", [pytest.param("adamw", marks=pytest.mark.slow), "own:Trusting", "own:Halved"])
def test_steps_at_once_and_threads_change_no_bit(name: str) -> None:
    """Five members on two threads: of one each thread takes a part of the steps."""
    seeds, more = (0, 1, 2, 3, 4), {"weight_decay": 0.1, "clip": 0.5, "dtype": "float32", "dropout": 0.1}
    alone = trained(members_of(name, True, seeds, **more))
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        together = trained(members_of(name, True, seeds, **more), at_once=3)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(alone.weights, together.weights)
    assert all(torch.equal(one, other) for one, other in zip(alone.slots, together.slots))
    for seed in (0, 3):
        assert torch.equal(trained(members_of(name, True, (seed,), **more), at_once=2).weights[0], alone.weights[seed])


@pytest.mark.long
def test_the_norm_of_many_numbers_is_theirs() -> None:
    """That of 2.4 million, added one after another in float32, was 2e-4 off, and with it what a clip leaves of a step."""
    wide = replace(NETWORK, width=384, mlp_width=1536, depth=4)
    t = replace(TRAINING, optimizer=Component("adam"), dtype="float32", clip=1e-3)
    members = recipe.initial(wide, SHAPE, (0, 1), [t, t], torch.device("cpu"))
    assert members.weights.shape[1] > 1e6
    batch, objective = batch_of(members, 0), recipe.objective(t)
    members.engine = engine = Machined(members, wide, SHAPE, t)
    members.steps(objective, [batch])
    torch.testing.assert_close(
        engine.engine.norms[:, 0].double(), members.grads.double().norm(dim=1), rtol=2e-6, atol=0
    )
    assert agreement.disagreement(wide, SHAPE, t, [batch]) == ""


def disagreement(name: str) -> str:
    t = replace(TRAINING, optimizer=Component(name), dtype="float32", weight_decay=0.1, clip=0.1)
    return agreement.disagreement(NETWORK, SHAPE, t, [batch_of(members_of(name, False, (0, 1)), 0)])


@pytest.mark.parametrize("name", [pytest.param("adam", marks=pytest.mark.slow), "own:Trusting", "own:Halved"])
def test_a_job_finds_that_optimisers_agree(name: str) -> None:
    assert disagreement(name) == ""


def test_a_job_finds_an_optimiser_that_counts_its_steps() -> None:
    assert "after step 1 of the optimiser Counting" in disagreement("own:Counting")


def test_a_job_finds_a_wrong_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clip by another norm; a correction that does not change."""
    with monkeypatch.context() as patched:
        patched.setattr(descent, "NORM_EPS", 1e-3)
        assert "optimiser Adam" in disagreement("adam")
    at = descent.Descent.at
    monkeypatch.setattr(descent.Descent, "at", lambda self, t: at(self, 1))
    assert "after step 2 of the optimiser Adam" in disagreement("adam")
