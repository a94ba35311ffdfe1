"""Healthy models fail no check, and a check leaves PyTorch as it was."""

from __future__ import annotations

from typing import Any

import healthy_models as models
import pytest
import torch
from torch import nn

from rankfall.check.library import library_model
from rankfall.check.named import FAIL
from rankfall.check.report import check
from rankfall.errors import RankfallError


def failures(model: nn.Module, inputs: Any) -> list[str]:
    reports = check(model, inputs, changes=False)
    return [f"{one.check}: {one.sentence}" for report in reports for one in report.results if one.verdict == FAIL]


@pytest.mark.parametrize("kind", models.KINDS)
def test_healthy_models_fail_no_check(kind: str) -> None:
    make, inputs = models.KINDS[kind]
    torch.manual_seed(0)
    assert failures(make(), inputs) == []


@pytest.mark.parametrize("kind", [*models.LIBRARY, *(pytest.param(one, marks=pytest.mark.long) for one in models.LONG)])
def test_types_of_the_library_fail_no_check(kind: str) -> None:
    model, inputs, _ = library_model(kind, {}, small=True, length=12, seed=0, say=lambda line: None)
    assert failures(model, inputs) == []


@pytest.mark.parametrize("model", [nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 3)), nn.LSTM(16, 16)])
def test_a_model_without_layers_is_refused_and_not_failed(model: nn.Module) -> None:
    with pytest.raises(RankfallError, match="no residual additions"):
        check(model, models.vectors())


def test_the_number_of_threads_is_restored() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        check(models.stack(models.Block), models.vectors(), changes=False, only=("stream-whole",))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
