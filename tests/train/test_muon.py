"""Muon: matrices by singular value decomposition and loops, everything else by Adam; and an optimiser that asks for no shapes as before."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from rankfall.nets.primitives import Linear, Lookup, Sizes, constant
from rankfall.train.members import Hyperparameters, Members, entries
from rankfall.train.optimizers.adamw import Adamw
from rankfall.train.optimizers.muon import Muon, orthogonal

K = 3
SIZES = Sizes(K, 4, 1, 6, 1, 6, 9, 5, 5)


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


class Parts(nn.Module):
    """A table, a wide and a tall map with biases, a map of one column, and a gain."""

    def __init__(self) -> None:
        super().__init__()
        self.table = Lookup(SIZES, 7, "embedding")
        self.wide, self.tall = Linear(SIZES, 6, 9, "mlp"), Linear(SIZES, 9, 6, "output")
        self.column = Linear(SIZES, 6, 1, "gate")
        self.gain = constant(SIZES, 1, 1, 6, value=1.0)


def members(optimizer: Any, **own: float) -> Members:
    module = Parts().double()
    for number, value in enumerate(module.parameters()):
        value.data = drawn(*value.shape, seed=number)
    return Members(module, range(K), optimizer, [Hyperparameters(lr=0.1 * (1 + k), **own) for k in range(K)])


def five_times(x: float) -> float:
    for _ in range(5):
        x = 3.4445 * x - 4.7750 * x**3 + 2.0315 * x**5
    return x


@pytest.mark.parametrize("shape", [(4, 7), (7, 4), (5, 5)])
def test_singular_values_are_turned_towards_one_and_vectors_kept(shape: tuple[int, int]) -> None:
    x = drawn(K, *shape)
    got = orthogonal(x, 5, 0.0)
    for k in range(K):
        u, s, v = np.linalg.svd(x[k].numpy(), full_matrices=False)
        want = u @ np.diag([five_times(one) for one in s / np.linalg.norm(s)]) @ v
        torch.testing.assert_close(got[k], torch.from_numpy(want), rtol=1e-9, atol=1e-9)
        values = torch.linalg.svdvals(got[k])
        assert float(values.min()) > 0.5 and float(values.max()) < 1.25
    assert not orthogonal(torch.zeros(1, 3, 4), 5, 1e-8).any()


@pytest.mark.parametrize("scale", ["rms", "spectral"])
def test_matrices_step_by_their_orthogonal_part_and_the_rest_by_adam(scale: str) -> None:
    muon = members(Muon(scale=scale, momentum=0.9), weight_decay=0.02)
    adam = members(Adamw(beta2=0.95), weight_decay=0.02)
    before = {name: value.clone() for name, value in muon.tensors().items()}
    velocity = {name: np.zeros(value.shape) for name, value in before.items()}
    wanted = {name: value.numpy().copy() for name, value in before.items()}
    for step in range(3):
        grads = drawn(*muon.weights.shape, seed=50 + step)
        for one in (muon, adam):
            one.grads.copy_(grads)
            one.update(torch.zeros(K))
        for entry in entries(muon.module):
            part = grads[:, entry.start : entry.start + math.prod(entry.shape)].view(K, *entry.shape).numpy()
            if entry.name not in ("wide.weight", "tall.weight"):
                continue
            velocity[entry.name] = 0.9 * velocity[entry.name] + part
            ahead = part + 0.9 * velocity[entry.name]
            for k in range(K):
                u, s, v = np.linalg.svd(ahead[k], full_matrices=False)
                turned = u @ np.diag([five_times(one) for one in s / np.linalg.norm(s)]) @ v
                size_in, size_out = entry.shape
                size = 0.2 * 3.0 if scale == "rms" else math.sqrt(max(1, size_out / size_in))  # max(in, out) is 9
                rate = 0.1 * (1 + k)
                wanted[entry.name][k] = wanted[entry.name][k] * (1 - rate * 0.02) - rate * size * turned
    result, usual = muon.tensors(), adam.tensors()
    for name, value in result.items():
        want = torch.from_numpy(wanted[name]) if name in ("wide.weight", "tall.weight") else usual[name]
        torch.testing.assert_close(value, want, rtol=1e-7, atol=1e-7)
