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
from rankfall.train.machine.engine import EVALUATED, Machined, add_up
from rankfall.train.objectives._base import Graded, Samples

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
    x = torch.stack([torch.from_numpy(rng.integers(shape.size_in, size=(count, shape.length))) for rng in rows])
    y = (x % shape.size_out).masked_fill(x == 3, -1)  # some places are not asked
    y[:, : min(EVALUATED, count - 3)] = -1  # nor are whole parts
    return Samples(x, y, members.seeds, ("test", 0), shape.size_in, constant=2)


@pytest.mark.parametrize("count", [5, EVALUATED, 3 * EVALUATED, 2 * EVALUATED + 7])
@pytest.mark.parametrize(("network", "shape", "objective"), [(NETWORK, TOKENS, "classes"), (POINTS, VECTORS, "values")])
def test_an_evaluation_is_that_of_pytorch(network: Architecture, shape: Shape, objective: str, count: int) -> None:
    training = Training(
        "t", objective=Component(objective), epochs=1, batch=6, dropout=0.3
    )  # of which nothing is dropped
    members = members_of(network, shape, training)
    batch, function = samples_of(members, shape, count), recipe.objective(training)
    before = members.weights.clone()
    found, wanted = members.grade(function, batch), function(members.module, batch)
    assert torch.equal(found.asked, wanted.asked) and torch.equal(members.weights, before)
    torch.testing.assert_close(found.loss, wanted.loss.detach(), rtol=2e-6, atol=0)
    for name, asked in wanted.asked_of.items():
        assert torch.equal(found.asked_of[name], asked)
    for name, value in wanted.sums.items():
        torch.testing.assert_close(found.sums[name].double(), value.detach().double(), rtol=2e-6, atol=0)
    alone = members_of(network, shape, training, (1,))
    assert torch.equal(alone.grade(function, samples_of(alone, shape, count)).loss, found.loss[1:])


def test_means_of_parts_are_weighed_by_what_they_ask() -> None:
    def part(loss: float, asked: int, right: int) -> Graded:
        return Graded(torch.tensor([loss]), torch.tensor([asked]), {"right": torch.tensor([right])})

    found = add_up([part(1.0, 3, 2), part(float("nan"), 0, 0), part(5.0, 1, 1)])
    assert float(found.loss) == 2.0 and int(found.asked) == 4 and int(found.sums["right"]) == 3


def test_masked_tokens_are_hidden_as_pytorch_hides_them() -> None:
    training = Training("t", objective=Component("masked_tokens"), epochs=1, batch=6)
    shape = Shape("tokens", "classes", 5, 9, 9)
    members = members_of(NETWORK, shape, training)
    x = torch.stack([torch.from_numpy(stream(s, "b").integers(4, 9, size=(41, 5))) for s in members.seeds])
    batch = Samples(x, x, members.seeds, ("test", 0), 9, special=4)
    found, wanted = (grade(recipe.objective(training), batch) for grade in (members.grade, by_pytorch(members)))
    torch.testing.assert_close(found.loss, wanted.loss.detach(), rtol=2e-6, atol=0)
    assert torch.equal(found.asked, wanted.asked) and int(found.asked.sum()) > 0
    assert torch.equal(found.sums["accuracy"], wanted.sums["accuracy"])
    assert (
        isinstance(members.engine, Machined) and len(members.engine.engine.memories) == 2
    )  # its programs: of 32 samples and of 9


def by_pytorch(members: Members):  # type: ignore[no-untyped-def]
    return lambda objective, batch: objective(members.module, batch)
