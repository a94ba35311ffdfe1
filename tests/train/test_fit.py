"""`fit` without cells: any module whose parameters have a leading member axis."""

from typing import Any

import pytest
import torch
from stacks import fit_stack
from torch import Tensor, nn

from rankfall.nets.primitives import Linear, Sizes
from rankfall.random_streams import stream
from rankfall.tasks._dataset import Split
from rankfall.train.data import Data
from rankfall.train.loop import Course, fit, means
from rankfall.train.members import Hyperparameters, Members
from rankfall.train.objectives.values import values
from rankfall.train.optimizers.adam import Adam
from rankfall.train.optimizers.sgd import Sgd


def linear(members: int, size_in: int, size_out: int) -> nn.Module:
    sizes = Sizes(members, 1, 1, 1, 1, 1, 1, size_in, size_out)
    module = Linear(sizes, size_in, size_out, "probe").double()
    for value in module.parameters():
        value.data.zero_()
    return module


def states(members: int) -> tuple[Tensor, Tensor]:
    """One set of states for all, one linear map a member to find: (K, N, D) and (K, N, C)."""
    x = torch.from_numpy(stream(0, "x").normal(size=(60, 5)))
    maps = torch.from_numpy(stream(0, "maps").normal(size=(members, 5, 2)))
    return x.expand(members, -1, -1), x @ maps + 0.5


@pytest.mark.long
def test_a_thousand_probes_find_their_own_least_squares() -> None:
    x, y = states(1000)
    members = Members(linear(1000, 5, 2), range(1000), Adam(), [Hyperparameters(lr=0.05)] * 1000)
    assert x.stride()[0] == 0  # the states are there once
    history = fit(members, Data({"train": Split(x, y)}), values, Course(epochs=200, batch=20, shuffle=False))
    ones = torch.cat([x[0], torch.ones(60, 1)], 1)
    wanted = (
        torch.linalg.lstsq(ones, y.transpose(0, 1).reshape(60, -1)).solution[:5].reshape(5, 1000, 2).transpose(0, 1)
    )
    torch.testing.assert_close(members.tensors()["weight"], wanted, rtol=0, atol=1e-3)
    course = list(means(history.tensors, 7))
    assert [row[:3] for row in course] == [(epoch, "train", "loss") for epoch in range(1, 201)]
    assert course[-1][3] < 1e-6 * course[0][3]


def test_one_step_of_sgd_is_the_gradient_by_hand() -> None:
    """W <- W + lr * 2 X^T (Y - X W) / N, at W = 0, each member with its own rate."""
    x, y = states(3)
    rates = [0.1, 0.01, 0.3]
    members = Members(linear(3, 5, 2), [0, 1, 2], Sgd(), [Hyperparameters(lr=rate) for rate in rates])
    fit(members, Data({"train": Split(x, y)}), values, Course(epochs=1, batch=60, shuffle=False))
    for k, rate in enumerate(rates):
        torch.testing.assert_close(
            members.tensors()["weight"][k], rate * 2 * x[k].T @ y[k] / 60, rtol=1e-12, atol=1e-13
        )


@pytest.mark.parametrize("stop", [1, 4, 5])
def test_batches_without_end_belong_to_seed_and_step(stop: int) -> None:
    """In any stack, and after any resume, a member sees the same fresh samples, each of them once."""
    drawn: list[tuple[int, int, int]] = []

    def fresh(seed: int, step: int, samples: int) -> Split:
        drawn.append((seed, step, samples))
        x = torch.from_numpy(stream(seed, "batch", step).normal(size=(samples, 5)))
        return Split(x, x[:, :2])

    def run(seeds: list[int], stop_at: int | None = None, saved: Any = None) -> tuple[Members, dict[str, Tensor]]:
        x = torch.zeros(len(seeds), 25, 5, dtype=torch.float64)
        members = Members(linear(len(seeds), 5, 2), seeds, Adam(), [Hyperparameters(lr=0.01)] * len(seeds))
        data, course = Data({"train": Split(x, x[..., :2])}, fresh=fresh), Course(epochs=2, batch=10)
        return members, fit_stack(members, data, course, values, stop_at, saved)[1]

    whole = run([3, 1])[0]
    assert [place for place in drawn if place[0] == 1] == [(1, step, (10, 10, 5)[step % 3]) for step in range(6)]
    again = run([3, 1], saved=run([3, 1], stop)[1])[0]
    assert torch.equal(again.weights, whole.weights)
    torch.testing.assert_close(run([1])[0].weights[0], whole.weights[1], rtol=1e-12, atol=1e-13)
