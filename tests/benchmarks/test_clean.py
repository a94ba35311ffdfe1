"""Tests that the clean modules of the benchmarks compute what Rankfall's networks do, and that rivals import nothing of Rankfall."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from benchmarks.networks import CPU, processor_settings
from engine.benchmarks import clean
from rankfall.design import Component
from rankfall.random_streams import stream
from rankfall.run.config.types import read
from rankfall.run.plan import make_plan

ROOT = Path(__file__).parents[2]
NAMES = {  # of Rankfall's parameters, and of those of a clean module
    r"embedding\.table": "embedding",
    r"position\.table": "positions",
    r"norm_in": "norm",
    r"mlp\.inner": "mlp.0",
    r"mlp\.outer": "mlp.2",
    r"norm1": "norm",
    r"head\.map": "head",
    r"norm(2?)\.gain": r"norm\1.weight",
    r"attention\.q\.": "attention.query.",
    r"attention\.k\.": "attention.key.",
    r"attention\.v\.": "attention.value.",
    r"attention\.out\.": "attention.output.",
}
DEFAULT = {  # task, architecture, training and depth of the default run
    "SAN+skip": ("sorting", "SAN+skip", "converged", 6),
    "hull": ("convex_hull", "SAN+skip", "hull", 6),
    "mlm": ("masked_text", "MLM-softmax", "masked", 1),
}


def name_of(value: Any) -> Any:
    return value.name if isinstance(value, Component) else value


@torch.no_grad()
def copy_weights(source: nn.Module, module: nn.Module) -> None:
    """Copy the weights of the first member into the clean module."""
    targets = dict(module.named_parameters())
    linear = {name for name, part in module.named_modules() if isinstance(part, nn.Linear)}
    for name, value in source.named_parameters():
        for pattern, replacement in NAMES.items():
            name = re.sub(pattern, replacement, name)
        target = targets.pop(name)
        transposed = name.endswith(".weight") and name.removesuffix(".weight") in linear
        target.copy_((value[0].T if transposed else value[0]).reshape(target.shape))
    assert not targets, f"no weights for {list(targets)}"


@pytest.mark.parametrize("kind", clean.KINDS)
def test_a_clean_module_computes_the_same(kind: str) -> None:
    setting = processor_settings()[kind]
    members, batch = setting.members([0], CPU, dropout=0.0), setting.batch(1, CPU)
    # Gains and biases start alike, wherever they belong.
    noise = stream(0, "noise").normal(0, 0.05, members.weights.shape)
    members.weights += torch.from_numpy(noise).to(members.weights.dtype)
    module = clean.Network(clean.KINDS[kind], 0.0)
    copy_weights(members.module, module)
    with torch.no_grad():
        expected, outputs = members.module(batch.inputs)[0], module(batch.inputs[0])
    assert expected.std() > 0.01
    torch.testing.assert_close(outputs, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", clean.SHAPES)
def test_a_clean_module_has_the_same_size(name: str) -> None:
    setting, shape = processor_settings()[name], clean.SHAPES[name]
    members, batch = setting.members([0], CPU), setting.batch(1, CPU)
    assert sum(value.numel() for value in clean.Network(shape, 0.0).parameters()) == members.weights.shape[1]
    assert batch.inputs.shape[1:3] == (shape.batch, shape.length)


@pytest.mark.long
def test_steps_are_measured_on_networks_of_the_default_run() -> None:
    cells = make_plan(read(ROOT / "config.yaml")).cells
    by_name = {(c.task.name, c.architecture.name, c.training.name, c.architecture.depth): c for c in cells}
    for name, label in DEFAULT.items():
        cell, setting = by_name[label], processor_settings()[name]
        for field, value in vars(setting.architecture).items():
            if field != "name" and value is not None:  # the plan adds default options and sizes
                assert name_of(value) == name_of(getattr(cell.architecture, field)), (name, field)
        for field in ("objective", "optimizer", "batch"):
            assert name_of(getattr(setting.training, field)) == name_of(getattr(cell.training, field)), (name, field)


def test_rivals_import_nothing_of_rankfall() -> None:
    code = "import sys, benchmarks.rivals; sys.exit('rankfall' in sys.modules)"
    environment = {"PYTHONPATH": str(ROOT / "engine" / "src"), "PATH": ""}
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT / "engine", env=environment).returncode == 0
