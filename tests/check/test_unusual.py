"""Models of many kinds fail no check, and bugs in them are named: cases in tests/models/unusual_models.py."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import unusual_models as models
from torch import nn

from rankfall.check.library import library_model
from rankfall.check.named import FAIL, ORDER, WARN
from rankfall.check.report import check
from rankfall.errors import RankfallError

LIBRARY = ("gpt2", "llama", "bert", "vit")
LONG = ("t5", "albert", "modernbert", "mamba", "mixtral", "deberta-v2", "xlnet")


def results_of(make: Any, inputs: Any, verdict: str, last: str = ORDER[-1]) -> list[Any]:
    """Return the results of this verdict, of the checks up to the last one."""
    torch.manual_seed(0)
    reports = check(make(), inputs, changes=False, only=ORDER[: ORDER.index(last) + 1])
    results = [result for report in reports for result in report.results]
    chosen = (result for result in results if result.verdict == verdict)
    return sorted(chosen, key=lambda result: ORDER.index(result.check))


@pytest.mark.parametrize("kind", models.HEALTHY)
def test_healthy_models_fail_no_check(kind: str) -> None:
    make, inputs = models.HEALTHY[kind]
    assert results_of(make, inputs, FAIL) == []


@pytest.mark.parametrize("kind", [*LIBRARY, *(pytest.param(kind, marks=pytest.mark.long) for kind in LONG)])
def test_types_of_the_library_fail_no_check(kind: str) -> None:
    model, inputs, _ = library_model(kind, {}, small=True, length=12, seed=0, say=lambda line: None)
    assert results_of(lambda: model, inputs, FAIL) == []


@pytest.mark.parametrize("bug", [*models.SICK, *models.DOUBTFUL])
def test_bugs_are_named(bug: str) -> None:
    name, words, make = {**models.SICK, **models.DOUBTFUL}[bug]
    result = results_of(make, models.ids(), FAIL if bug in models.SICK else WARN, name)[0]
    assert result.check == name and words in f"{result.sentence} {result.where}"


@pytest.mark.parametrize("bug", models.HIDING)
def test_masks_of_padding_are_tried_in_each_layer(bug: str) -> None:
    words, mask, use = models.HIDING[bug]
    result = results_of(lambda: models.Hidden(use), (models.ids(), mask), FAIL, "mask-works")[0]
    assert result.check == "mask-works" and words in result.sentence and result.sentence.startswith("argument 2 hides")


def test_dropout_at_evaluation_is_refused() -> None:
    dropping = models.Apply(lambda x: nn.functional.dropout(x, 0.1))
    model = models.with_block(1, lambda: models.Block(nn.Sequential(dropping, models.Attention())))()
    with pytest.raises(
        RankfallError, match=r"two answers for the same inputs in eval mode, first in blocks\.1\.mixer\.0: does it draw"
    ):
        check(model, models.ids())


@pytest.mark.parametrize("model", [nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 3)), nn.LSTM(32, 32)])
def test_a_model_without_layers_is_refused_and_not_failed(model: nn.Module) -> None:
    with pytest.raises(RankfallError, match="no residual additions"):
        check(model, models.vectors())


def test_the_number_of_threads_is_restored() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        check(models.vision(models.ReZero), models.vectors(), changes=False, only=("stream-whole",))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
