"""Guards that a task whose gradients cancel exactly is not trained by kernels that leave rounding of them, and that no other is ended.
Random networks on random data, of which none may be found, are in `test_engine.py`."""

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
from rankfall.run.jobs.training import train_cells
from rankfall.run.plan import Plan, make_plan
from rankfall.run.store import Store
from rankfall.train.objectives._base import Samples

pytest.importorskip("numba")
from remainders import remainder

from rankfall.train.machine.exact_zeros import Remainder

CPU = torch.device("cpu")
VECTORS = {"embedding": Component("linear"), "head": Component("regression"), "position": Component("none")}
ITSELF = Component(
    "local", {"window": 0}
)  # each token attends to itself, so that four tokens may be symmetric to the last bit
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


def found(inputs: torch.Tensor, network: dict[str, Any], **training: Any) -> Remainder | None:
    """On vectors (B, T, C), each of which is its own target."""
    told = {"objective": Component("values"), "epochs": 3, "batch": len(inputs)} | training
    samples = Samples(inputs[None], inputs[None], [0], ("train", 0), learned=True)
    shape = Shape("vectors", "values", *inputs.shape[1:], inputs.shape[2])
    return remainder(
        Architecture("a", **{**VECTORS, "width": 32, "mask": ITSELF, **network}), shape, Training("t", **told), samples
    )


def opposite(samples: int = 30) -> torch.Tensor:
    """Tokens x, -x, y, -y."""
    one = torch.randn(samples, 2, 1, 2, generator=torch.Generator().manual_seed(0))
    return torch.cat([one, -one], 2).flatten(1, 2)


@pytest.mark.parametrize(("residual", "placement", "depth"), [("none", "post", 1), ("add", "pre", 3)])
def test_opposite_tokens_are_found(residual: str, placement: str, depth: int) -> None:
    network = {"residual": Component(residual), "norm_placement": placement, "depth": depth}
    left = found(opposite(), network)
    assert left is not None and left.parameter.endswith(".bias") and left.value > 1e-10


@pytest.fixture
def ring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A stranger's task that does not say that it is symmetric, after cells of another task."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "mylab_ring.py").write_text(OWN)
    own = {name: part.name for name, part in VECTORS.items()} | {"residual": "none", "depth": 1, "width": 16}
    raw = config(training={"epochs": 1}, compute={"engine": "auto"})
    raw["tasks"]["ring"] = {"task": "mylab_ring:ring"}
    raw["architectures"]["SAN"] = own | {"mask": {"name": "local", "window": 0}}
    raw["grid"].append({"task": "ring", "architecture": "SAN", "training": "short", "seed": "0..2"})
    return raw


def train(plan: Plan, tmp_path: Path) -> Store:
    store = Store(tmp_path / "store")
    train_cells(plan.cells, store, Settings(CPU), Progress(), plan.origin)
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
    found = train(plan, tmp_path).find_cells([cell.key for cell in plan.cells], {cell.group for cell in plan.cells})
    assert {one.status for one in found.values()} == {"done"} and len(found) == len(plan.cells)


@pytest.mark.parametrize(("width", "tokens", "norm"), [(1, 8, "layer"), (4, 1, "none"), (4, 8, "none")])
def test_what_is_zero_for_any_data_is_not_found(width: int, tokens: int, norm: str) -> None:
    """A norm of one feature, attention that sees one token, and twelve layers without skips, which leave all tokens alike."""
    inputs = torch.randn(32, tokens, 3, generator=torch.Generator().manual_seed(1))
    network = {
        "residual": Component("none"),
        "norm": Component(norm),
        "depth": 12,
        "width": width,
        "heads": 1,
        "mask": Component("none"),
    }
    assert found(inputs, network) is None
