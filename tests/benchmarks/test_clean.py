"""The clean modules of other kinds of attention compute what Rankfall's parts do."""

import re
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "train" / "machine")]  # benchmarks are not installed

from benchmarks import clean, clean_kinds, machine  # noqa: E402
from rankfall.random_streams import stream  # noqa: E402

NAMES = {  # ours to those of a clean module
    r"embedding\.table": "embedding",
    r"position\.table": "places",
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


@torch.no_grad()
def copy_weights(ours: nn.Module, module: nn.Module) -> None:
    """Those of the one member into the clean module."""
    own, linear = dict(module.named_parameters()), {n for n, m in module.named_modules() if isinstance(m, nn.Linear)}
    for name, value in ours.named_parameters():
        for pattern, replacement in NAMES.items():
            name = re.sub(pattern, replacement, name)
        to = own.pop(name)
        given = value[0].T if name.removesuffix(".weight") in linear and name.endswith("weight") else value[0]
        to.copy_(given.reshape(to.shape))
    assert not own, f"no weights for {list(own)}"


@pytest.mark.parametrize("kind", clean_kinds.KINDS)
def test_a_clean_module_computes_the_same(kind: str) -> None:
    members, _, batch = machine.stack_of(machine.NETWORKS[kind], "plain", 1)
    noise = stream(0, "noise").normal(
        0, 0.05, members.weights.shape
    )  # gains and biases start alike, wherever they belong
    members.weights += torch.from_numpy(noise).to(members.weights.dtype)
    module = clean.Network(clean_kinds.KINDS[kind], 0.0)
    copy_weights(members.module, module)
    with torch.no_grad():
        ours, others = members.module(batch.inputs)[0], module(batch.inputs[0])
    assert ours.std() > 0.01
    torch.testing.assert_close(others, ours, rtol=1e-4, atol=1e-4)


def test_every_kind_that_the_machine_is_measured_on_has_one() -> None:
    shorts = {"hull", "mlm"}  # in `clean.py`, at the sizes of the default run
    assert {*clean_kinds.KINDS, *shorts} == set(machine.NETWORKS)
