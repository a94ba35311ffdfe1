"""Guards that the machine evaluates as PyTorch does, in whatever parts, and each member as if it were alone."""

from dataclasses import replace

import pytest
import torch

from rankfall.design import Architecture, Component, Training
from rankfall.nets.network import Shape
from rankfall.random_streams import stream
from rankfall.train import recipe
from rankfall.train.members import Members

pytest.importorskip("numba")
from rankfall.train.machine.engine import EVALUATED, Machined
from rankfall.train.objectives._base import Samples

ENDS = {"embedding": Component("token"), "head": Component("classifier"), "depth": 2, "heads": 2, "width": 8}
NETWORK = Architecture("a", normaliser=Component("l2"), mlp=Component("gelu"), norm=Component("rms"), **ENDS)
POINTS = replace(NETWORK, embedding=Component("linear"), head=Component("regression"), mask=Component("causal"))
TOKENS, VECTORS = Shape("tokens", "classes", 5, 7, 6), Shape("vectors", "values", 5, 3, 2)


def members_of(network: Architecture, shape: Shape, training: Training, seeds: tuple[int, ...] = (0, 1)) -> Members:
    members = recipe.initial(network, shape, seeds, [training] * len(seeds), torch.device("cpu"))
    members.engine = Machined(members, network, shape, training)
    return members


def samples_of(members: Members, shape: Shape, count: int) -> Samples:
    rows = [stream(seed, "batch") for seed in members.seeds]
    if shape.inputs == "vectors":
        x, y = (
            torch.stack([torch.from_numpy(rng.normal(size=(count, shape.length, n))).float() for rng in rows])
            for n in (shape.size_in, shape.size_out)
        )
        return Samples(x, y, members.seeds, ("test", 0))
    if shape is WORDS:
        x = torch.stack([torch.from_numpy(rng.integers(4, 9, size=(count, shape.length))) for rng in rows])
        return Samples(x, x, members.seeds, ("test", 0), 9, special=4)
    x = torch.stack([torch.from_numpy(rng.integers(shape.size_in, size=(count, shape.length))) for rng in rows])
    y = (x % shape.size_out).masked_fill(x == 3, -1)  # some places are not asked
    y[:, : min(EVALUATED, count - 3)] = -1  # nor are whole parts
    return Samples(x, y, members.seeds, ("test", 0), shape.size_in, constant=2)


WORDS = Shape("tokens", "classes", 5, 9, 9)


@pytest.mark.parametrize("count", [5, EVALUATED, 3 * EVALUATED, 2 * EVALUATED + 7])
@pytest.mark.parametrize(
    ("network", "shape", "objective"),
    [(NETWORK, TOKENS, "classes"), (POINTS, VECTORS, "values"), (NETWORK, WORDS, "masked_tokens")],
    ids=lambda case: case if isinstance(case, str) else "",
)
def test_an_evaluation_is_that_of_pytorch(network: Architecture, shape: Shape, objective: str, count: int) -> None:
    """Nothing is dropped; of masked tokens the same ones are hidden."""
    training = Training("t", objective=Component(objective), epochs=1, batch=6, dropout=0.3)
    members = members_of(network, shape, training)
    batch, function = samples_of(members, shape, count), recipe.objective(training)
    before = members.weights.clone()
    graded, expected = members.grade(function, batch), function(members.module, batch)
    assert torch.equal(graded.asked, expected.asked) and torch.equal(members.weights, before)
    assert int(graded.asked.sum()) > 0
    torch.testing.assert_close(graded.loss, expected.loss.detach(), rtol=2e-6, atol=0)
    for name, asked in expected.asked_of.items():
        assert torch.equal(graded.asked_of[name], asked)
    for name, value in expected.sums.items():
        torch.testing.assert_close(graded.sums[name].double(), value.detach().double(), rtol=2e-6, atol=0)
    alone = members_of(network, shape, training, (1,))
    assert torch.equal(alone.grade(function, samples_of(alone, shape, count)).loss, graded.loss[1:])
    assert isinstance(members.engine, Machined)  # one program for whole parts, and one for the rest
    assert len(members.engine.engine.memories) == (count >= EVALUATED) + (count % EVALUATED > 0)
