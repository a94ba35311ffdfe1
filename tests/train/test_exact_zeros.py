"""Guards that gradients which cancel exactly by autograd, those of tokens x and -x, do so in the machine, and that a task with more such
tokens is not trained by kernels that leave rounding of them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers import config

from rankfall.design import Architecture, Component, Training
from rankfall.errors import RankfallError
from rankfall.nets.network import Shape
from rankfall.run.jobs.engine import Settings
from rankfall.run.jobs.progress import Progress
from rankfall.run.jobs.training import TrainingWork
from rankfall.run.plan import Plan, make_plan
from rankfall.run.store import Store
from rankfall.train import recipe
from rankfall.train.members import Members
from rankfall.train.objectives._base import Samples

pytest.importorskip("numba")
from rankfall.train.machine.engine import Machined
from rankfall.train.machine.exact_zeros import Remainder, by_autograd, find_remainder, initial, to_double

CPU = torch.device("cpu")
VECTORS = {"embedding": Component("linear"), "head": Component("regression"), "position": Component("none")}
# Each token attends to itself, so that four tokens may be symmetric to the last bit.
ITSELF = Component("local", {"window": 0})
OWN = """
import torch
from rankfall.tasks._dataset import Dataset, Split

INPUTS = "vectors"
TARGETS = "values"
TOKENS = 4
OVERLAP = "what is trained is what is asked"


def ring(rng, *, samples: int = 60) -> Dataset:
    one = torch.from_numpy(rng.normal(size=(samples, 2, 1, 2))).float()
    points = torch.cat([one, -one], 2).flatten(1, 2)
    return Dataset({"train": Split(points, points), "test": Split(points, points)}, size_in=2, size_out=2)
"""


def setting(inputs: torch.Tensor, network: dict[str, Any]) -> tuple[Architecture, Shape, Training]:
    """Return a network for vectors (B, T, C), each of which is turned or is its own target."""
    training = Training("t", objective=Component("values"), epochs=3, batch=len(inputs), lr=1e-3)
    architecture = Architecture("a", **{**VECTORS, "width": 32, **network})
    return architecture, Shape("vectors", "values", *inputs.shape[1:], inputs.shape[2]), training


def remainder(inputs: torch.Tensor, targets: torch.Tensor, network: dict[str, Any]) -> Remainder | None:
    """Return what is left of exact zeros in the first step of one member."""
    batch = Samples(inputs[None], targets[None], [0], ("train", 0), learned=True)
    a, shape, t = setting(inputs, network)
    machine, plain, double = (
        initial(a, shape, replace(t, dtype=dtype), batch) for dtype in ("float32", "float32", "float64")
    )
    double.weights.copy_(plain.weights)
    results = (Machined(machine, a, shape, t).passes(machine, batch), machine.grads), by_autograd(plain, t, batch, 0)
    return find_remainder(plain, double, t, batch, *results, by_autograd(double, t, to_double(batch), 0))


def opposite(samples: int, pairs: int) -> torch.Tensor:
    """Return tokens x, -x, y, -y, ..."""
    some = torch.randn(samples, pairs, 1, 2, generator=torch.Generator().manual_seed(0))
    return torch.cat([some, -some], 2).flatten(1, 2)


def turned(tokens: torch.Tensor) -> torch.Tensor:
    """Turn each token by a quarter."""
    return torch.stack([-tokens[..., 1], tokens[..., 0]], -1)


def trained(machine: bool, samples: int, network: dict[str, Any]) -> Members:
    """Take five steps of Adam from biases of 0, on two opposite tokens."""
    inputs = opposite(samples, 1)
    architecture, shape, training = setting(inputs, network)
    members = recipe.initial(architecture, shape, [0], [training], CPU)
    if machine:
        members.engine = Machined(members, architecture, shape, training)
    for _ in range(5):
        batch = Samples(inputs[None], turned(inputs)[None], [0], ("train", 0), learned=True)
        members.step(recipe.objective(training), batch)
    return members


def has_moved(members: Members) -> bool:
    """Return whether a bias is no longer 0."""
    biases = [value for name, value in members.tensors().items() if name.endswith("bias")]
    assert biases
    return any(bool(value.any()) for value in biases)


NETWORKS = {
    "published": {"residual": Component("none"), "depth": 3},
    "with skips": {"residual": Component("add"), "norm_placement": "pre", "depth": 2},
    "rms": {"residual": Component("add"), "norm": Component("rms"), "depth": 1},
    "l2": {"residual": Component("none"), "normaliser": Component("l2"), "depth": 2},
}


@pytest.mark.parametrize("name", NETWORKS)
def test_biases_stay_zero_between_opposite_tokens(name: str) -> None:
    plain, machine = (trained(engine, 7, NETWORKS[name]) for engine in (False, True))
    if not has_moved(plain):  # rows of length one leave rounding by autograd, and none here
        torch.testing.assert_close(machine.weights, plain.weights, rtol=1e-4, atol=1e-5)
    assert not has_moved(machine)


@pytest.mark.parametrize(("residual", "placement", "depth"), [("none", "post", 1), ("add", "pre", 3)])
def test_four_opposite_tokens_are_noticed(residual: str, placement: str, depth: int) -> None:
    network = {"residual": Component(residual), "norm_placement": placement, "depth": depth, "mask": ITSELF}
    tokens = opposite(30, 2)
    left = remainder(tokens, tokens, network)
    assert left is not None and left.parameter.endswith(".bias") and left.value > 1e-10


@pytest.fixture
def ring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A stranger's task that does not say that it is symmetric, after cells of another task."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "mylab_ring.py").write_text(OWN)
    vectors = {name: part.name for name, part in VECTORS.items()} | {"residual": "none", "depth": 1, "width": 16}
    raw = config(training={"epochs": 1}, compute={"engine": "auto"})
    raw["tasks"]["ring"] = {"task": "mylab_ring:ring"}
    raw["architectures"]["SAN"] = vectors | {"mask": {"name": "local", "window": 0}}
    raw["grid"].append({"task": "ring", "architecture": "SAN", "training": "short", "seed": "0..2"})
    return raw


def train(plan: Plan, tmp_path: Path) -> Store:
    store = Store(tmp_path / "store")
    TrainingWork(store, Settings(CPU), Progress(), plan.origin).train_cells(plan.cells)
    return store


def test_a_task_that_does_not_say_so_ends_the_job_before_any_training(ring: dict[str, Any], tmp_path: Path) -> None:
    plan = make_plan(ring)
    assert {cell.engine for cell in plan.cells} == {"machine"}
    line = r"ring / SAN / short: the gradient of embedding\.map\.bias is 0 by autograd and \d.*engine: plain.*SYMMETRIC = True"
    with pytest.raises(RankfallError, match=line) as error:
        train(plan, tmp_path)
    assert "\n" not in str(error.value)
    keys, groups = [cell.key for cell in plan.cells], {cell.group for cell in plan.cells}
    assert not Store(tmp_path / "store").find_cells(keys, groups)


def test_a_task_that_says_so_is_trained_by_autograd(ring: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "mylab_ring.py").write_text(OWN + "\nSYMMETRIC = True\n")
    plan = make_plan(ring)
    assert {cell.engine for cell in plan.cells} == {"machine", "plain"}
    cells = train(plan, tmp_path).find_cells([cell.key for cell in plan.cells], {cell.group for cell in plan.cells})
    assert {cell.status for cell in cells.values()} == {"done"} and len(cells) == len(plan.cells)


@pytest.mark.parametrize(("width", "tokens", "norm"), [(1, 8, "layer"), (4, 1, "none"), (4, 8, "none")])
def test_what_is_zero_for_any_data_is_not_reported(width: int, tokens: int, norm: str) -> None:
    """A norm of one feature, attention that sees one token, and twelve layers without skips, which leave all tokens alike."""
    inputs = torch.randn(32, tokens, 3, generator=torch.Generator().manual_seed(1))
    parts = {"residual": Component("none"), "norm": Component(norm), "mask": Component("none")}
    assert remainder(inputs, inputs, parts | {"depth": 12, "width": width, "heads": 1}) is None
