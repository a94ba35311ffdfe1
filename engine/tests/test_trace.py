"""Guards what the recording of a step takes for constant, and what it refuses."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

pytest.importorskip("numba")
from thousandfold.graph import AtenGraph, form_of
from thousandfold.recorder import AtenRecorder, Untraceable


def record(function: Callable[[Tensor], Any]) -> AtenGraph:
    return AtenRecorder().run(torch.func.functionalize(function), form_of(torch.zeros(2, 3)))


def test_what_no_data_enter_is_computed_and_may_be_decided_by() -> None:
    graph = record(lambda x: x * torch.arange(3) if torch.arange(3).sum() == 3 else x)
    (product,) = graph.needed()[-1:]
    assert graph.known[product.args[1].number].tolist() == [0, 1, 2]
    with pytest.raises(Untraceable, match="numbers of the data"):
        record(lambda x: x if (x + torch.arange(3)).sum() == 3 else -x)


def test_what_nobody_has_written_is_zeros() -> None:
    """Not what lies in the memory of this process."""
    graph = record(lambda x: x * torch.empty(7, 2, 3) + torch.empty_like(x))
    assert not any("empty" in operation.target._schema.name for operation in graph.operations)
    assert all(not value.any() for value in graph.known.values())


def test_a_tensor_that_a_module_holds_and_changes_is_refused() -> None:
    count = torch.zeros(())
    with pytest.raises(Untraceable, match="changes a tensor that it holds"):
        record(lambda x: x + count.add_(1))
    assert count == 0


WITHOUT = """
import sys
sys.modules["numba"] = sys.modules["llvmlite"] = None
import torch
from thousandfold import train_many
result = train_many(
    lambda seed: torch.nn.Linear(5, 3), lambda module, x: module(x).square().mean(), lambda step, seed: torch.ones(4, 5), seeds=[0], steps=1
)
print(result.engine, result.reason)
"""


def test_without_numba_autograd_serves_and_says_why() -> None:
    said = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True).stdout
    assert said.startswith("stack program: numba is not installed")
