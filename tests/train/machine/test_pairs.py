"""Guards that gradients which cancel exactly by autograd, those of tokens x and -x, do so in the machine."""

from typing import Any

import pytest
import torch

from rankfall.design import Architecture, Component, Training
from rankfall.nets.network import Shape
from rankfall.train import recipe
from rankfall.train.members import Members
from rankfall.train.objectives._base import Samples

pytest.importorskip("numba")
from remainders import remainder

from rankfall.train.machine.engine import Machined
from thousandfold.program import sums

SHAPE = Shape("vectors", "values", 2, 2, 2)
VECTORS = {
    "embedding": Component("linear"),
    "head": Component("regression"),
    "position": Component("none"),
    "width": 32,
}
NETWORKS = {
    "published": {"residual": Component("none"), "depth": 3},
    "with skips": {"residual": Component("add"), "norm_placement": "pre", "depth": 2},
    "rms": {"residual": Component("add"), "norm": Component("rms"), "depth": 1},
    "l2": {"residual": Component("none"), "normaliser": Component("l2"), "depth": 2},
}


def batch_of(samples: int) -> Samples:
    """Each token is to be turned by a quarter."""
    one = torch.randn(1, samples, 1, 2, generator=torch.Generator().manual_seed(0))
    inputs = torch.cat([one, -one], 2)
    turned = torch.stack([-inputs[..., 1], inputs[..., 0]], -1)
    return Samples(inputs, turned, [0], ("train", 0), learned=True)


def trained(machine: bool, samples: int, network: dict[str, Any]) -> Members:
    """Five steps of Adam from biases of 0."""
    a = Architecture("a", **VECTORS, **network)
    t = Training("t", objective=Component("values"), epochs=1, batch=samples, lr=1e-3)
    members = recipe.initial(a, SHAPE, [0], [t], torch.device("cpu"))
    if machine:
        members.engine = Machined(members, a, SHAPE, t)
    for _ in range(5):
        members.step(recipe.objective(t), batch_of(samples))
    return members


def biases(members: Members) -> list[torch.Tensor]:
    return [value for name, value in members.tensors().items() if name.endswith("bias")]


@pytest.mark.parametrize("name", NETWORKS)
def test_biases_stay_zero_between_opposite_tokens(name: str) -> None:
    plain, machine = (trained(engine, 7, NETWORKS[name]) for engine in (False, True))
    if not any(value.any() for value in biases(plain)):  # rows of length one leave rounding by autograd, and none here
        torch.testing.assert_close(machine.weights, plain.weights, rtol=1e-4, atol=1e-5)
    assert biases(machine) and not any(value.any() for value in biases(machine))


def test_sums_in_another_order_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """By this file, and by the guard of a job."""
    monkeypatch.setattr(sums, "in_pairs", lambda draft, x, axes: x)
    members = trained(True, 29, NETWORKS["published"])
    assert any(value.any() for value in biases(members))
    a = Architecture("a", **VECTORS, **NETWORKS["published"])
    t = Training("t", objective=Component("values"), epochs=1, batch=31)
    found = remainder(a, SHAPE, t, batch_of(31))
    assert found is not None and found.parameter.endswith("bias")
