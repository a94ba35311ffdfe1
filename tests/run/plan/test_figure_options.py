"""Guards that a figure which cannot be drawn is refused by the plan, from the configuration alone: what its options name must be there."""

from typing import Any

import pytest
from plans import changed, refusal

from rankfall.run.plan import make_plan

BERT = {"measure": "model_residuals", "model": "bert-base-cased", "seeds": 1}
MEASURES = {
    "residuals": {"cells": {"architecture": "san"}},
    "paths": {"counts": [2]},
    "law": {},
    "bert": BERT,
    "bert_tokens": {"measure": "model_token_identity", "model": "bert-base-cased"},
    "influence": {},
    "orders": {"heads": [1, 2]},
    "scorecard": {},
}


def drawn(figure: str, **options: Any) -> dict[str, Any]:
    return changed("figures", {"one": {"figure": figure, **options}}, changed("measures", MEASURES))


REFUSED = {
    "no such column": (
        "residuals",
        {"where": {"dept": 2}},
        r"where.dept: table 'residuals' has no column 'dept'",
        "'depth'",
    ),
    "no such value": (
        "residuals",
        {"where": {"depth": 3}},
        "where.depth: no cell that it could draw has depth 3",
        "2, 4",
    ),
    "heads": ("orders", {"heads": 3}, "heads: 3 is not measured; allowed: 1, 2", ""),
    "norm": ("residuals", {"norm": "spectral"}, "norm: 'spectral' is not measured; allowed: composite", "linf"),
    "not measured": (
        "residuals",
        {"architectures": ["full"]},
        "no cell that it could draw has architecture full",
        "san",
    ),
    "models": ("models", {"models": ["gpt2"]}, "models: 'gpt2' is not measured; allowed: bert-base-cased", ""),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_will_not_be_there_is_refused(case: str) -> None:
    figure, options, what, more = REFUSED[case]
    said = refusal(drawn(figure, **options))
    assert said.startswith("figures.one.") and what in said and more in said, said


@pytest.mark.parametrize(
    ("figure", "options"),
    [
        ("residuals", {"where": {"depth": [2, 9], "residual": "none"}}),  # 9 is one of several
        ("residuals", {"where": {"task_component": "sorting", "lr": 1e-3, "norm": {"name": "layer"}, "layer": 1}}),
        ("sweep", {"lines": ["architecture"], "panels": ["norm"], "x": "depth"}),
        ("models", {"models": ["bert-base-cased"]}),
        ("scorecard", {"setting": "sorting, short, depth 4"}),
        ("curves", {"split": "train", "metric": "loss", "panels": {"a": ["san"]}}),
    ],
)
def test_what_will_be_there_is_not(figure: str, options: dict[str, Any]) -> None:
    found = make_plan(drawn(figure, **options)).figures["one"].options
    assert {name: found[name] for name in options} == options
