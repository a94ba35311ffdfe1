"""Each configuration that comes with Rankfall at its own sizes: the machine agrees with autograd on the networks that it trains. Other
tests use small networks, and what rounding makes of deep or wide ones shows only here."""

import random
from pathlib import Path

import pytest
import torch
from samples import seed_of

from rankfall.run.jobs.checks import check_agreement
from rankfall.run.plan import make_plan
from rankfall.run.plan.cell import Cell
from rankfall.run.plan.engines import MACHINE
from rankfall.run.store import Store

pytest.importorskip("numba")
ROOT = Path(__file__).parents[3]
SMALLER = "prediction_tenth"  # whose networks are some of prediction's
PRESETS = sorted(
    path
    for path in (ROOT / "workflow" / "presets").glob("*.yaml")
    if path.stem != SMALLER and not path.stem.endswith("_gpu")
)
MOST = 5  # groups of a configuration: the one of the most work, and others with every version of the sources


def draw_groups(path: Path) -> list[Cell]:
    """The first cells of some groups that the machine trains."""
    firsts: dict[str, Cell] = {}
    for cell in make_plan(path).cells:
        if cell.engine == MACHINE and cell.training.epochs:
            firsts.setdefault(cell.group, cell)
    cells = sorted(firsts.values(), key=lambda cell: (cell.architecture.depth * cell.architecture.width**2, cell.key))
    return (
        cells[-1:] + random.Random(f"{seed_of()} {path.name}").sample(cells[:-1], min(MOST, len(cells)) - 1)
        if cells
        else []
    )


@pytest.mark.slow
@pytest.mark.parametrize("path", [ROOT / "config.yaml", *PRESETS], ids=lambda path: path.stem)
def test_the_machine_agrees_with_autograd_on_networks_of_a_preset(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    said: list[str] = []
    for cell in draw_groups(path):
        check_agreement(cell, Store(tmp_path), torch.device("cpu"), said.append)
    assert not [line for line in said if "could not check" in line]
