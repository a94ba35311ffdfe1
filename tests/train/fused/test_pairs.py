"""Guards that gradients which cancel exactly by autograd, those of tokens x and -x, do so in the kernels: Adam would make whole steps of
what rounding leaves of them."""

from typing import Any

import pytest
import torch

from rankfall.design import Architecture, Component, Training
from rankfall.nets.network import Shape
from rankfall.train import recipe
from rankfall.train.members import Members
from rankfall.train.objectives._base import Samples

pytest.importorskip("numba")
from rankfall.train.fused.engine import Fused

VECTORS = {
    "embedding": Component("linear"),
    "head": Component("regression"),
    "position": Component("none"),
    "width": 32,
}


def trained(fused: bool, samples: int, network: dict[str, Any]) -> Members:
    """Five steps of Adam towards each token turned by a quarter, from biases of 0."""
    a = Architecture("a", **VECTORS, **network)
    t = Training("t", objective=Component("values"), epochs=1, batch=samples, lr=1e-3)
    members = recipe.initial(a, Shape("vectors", "values", 2, 2, 2), [0], [t], torch.device("cpu"))
    if fused:
        members.engine = Fused(members, a, t)
    one = torch.randn(1, samples, 1, 2, generator=torch.Generator().manual_seed(0))
    inputs = torch.cat([one, -one], 2)
    turned = torch.stack([-inputs[..., 1], inputs[..., 0]], -1)
    for _ in range(5):
        members.step(recipe.objective(t), Samples(inputs, turned, [0], ("train", 0), learned=True))
    return members


@pytest.mark.parametrize("samples", [30, 100, 7])  # how many fill the last vector of a row must not matter
@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("placement", ["post", "pre"])
@pytest.mark.parametrize("residual", ["none", "add"])
def test_biases_stay_zero_between_opposite_tokens(residual: str, placement: str, depth: int, samples: int) -> None:
    network = {"residual": Component(residual), "norm_placement": placement, "depth": depth}
    plain, fused = (trained(engine, samples, network) for engine in (False, True))
    torch.testing.assert_close(fused.weights, plain.weights, rtol=1e-4, atol=1e-5)
    biases = {name: value for name, value in fused.tensors().items() if name.endswith("bias")}
    assert biases and not any(value.any() for value in biases.values())
