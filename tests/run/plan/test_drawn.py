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
    "influence": {},
    "scorecard": {},
}


def drawn(figure: str, **options: Any) -> dict[str, Any]:
    return changed("figures", {"one": {"figure": figure, **options}}, changed("measures", MEASURES))


REFUSED = {
    "no such column": (
        "residuals",
        {"where": {"dept": 2}},
        r"where.dept: table 'residuals' has no such column",
        "'depth'",
    ),
    "no such value": (
        "residuals",
        {"where": {"depth": 3}},
        "where.depth: no cell that it could draw has depth 3",
        "2, 4",
    ),
    "none after another": ("paths", {"where": {"depth": 3, "architecture": "san"}}, "has depth 3", "2, 4"),
    "a value of a component": (
        "residuals",
        {"where": {"task_component": {"name": "sorting", "length": 9}}},
        "no cell that it could draw has task_component sorting length=9",
        "length=5",
    ),
    "another type": (
        "residuals",
        {"where": {"layer": "one"}},
        "where.layer: 'one' is no value of a column of type int",
        "",
    ),
    "not measured": (
        "residuals",
        {"architectures": ["full"]},
        "no cell that it could draw has architecture full",
        "san",
    ),
    "depths": ("paths", {"depths": [2, 5]}, "depths: no cell that it could draw has depth 5", "2, 4"),
    "task and training": ("paths", {"task": "sorting", "trainings": ["init"]}, "has training init", "short"),
    "panels": (
        "curves",
        {"panels": {"a": ["san", "fulll"]}},
        "panels.a: no cell that it could draw has architecture fulll",
        "",
    ),
    "panels of nothing": ("curves", {"panels": {"a": "san"}}, "panels.a: 'san' is not a list of architectures", ""),
    "lines": (
        "sweep",
        {"lines": ["architektur"]},
        "lines: 'architektur' is no column of table 'law'",
        "'architecture'",
    ),
    "numbers": (
        "scorecard",
        {"numbers": ["residual_last", "residuals_last"]},
        "numbers: 'residuals_last' is no column of table 'scorecard'",
        "did you mean 'residual_last'",
    ),
    "models": ("models", {"models": ["gpt2"]}, "models: 'gpt2' is not measured; there will be: bert-base-cased", ""),
    "evaluation": ("paths", {"evaluation": "frozen"}, "evaluation: 'frozen' is not measured", "recomputed"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_will_not_be_there_is_refused(case: str) -> None:
    figure, options, what, more = REFUSED[case]
    config = drawn(figure, **options)
    if case == "evaluation":
        config["measures"]["paths"]["evaluation"] = ["recomputed"]
    said = refusal(config)
    assert said.startswith("figures.one.") and what in said and more in said, said


def test_a_default_that_was_not_measured_is_refused_too() -> None:
    measures = {"influence": {"depths": [2, 4]}, "cell_influence": {}}
    config = changed("architectures/san/mask", "causal", changed("measures", measures))
    config["figures"] = {"influence": {}}
    assert refusal(config).startswith("figures.influence.depth: 24 is not measured; there will be: 2, 4")
    make_plan(changed("figures/influence", {"depth": 4}, config))


@pytest.mark.parametrize(
    ("figure", "options"),
    [
        ("residuals", {"where": {"depth": [2, 9], "residual": "none"}}),  # 9 is one of several
        ("residuals", {"where": {"task_component": "sorting", "lr": 1e-3, "norm": {"name": "layer"}, "layer": 1}}),
        ("residuals", {"where": {"task_component": {"name": "sorting", "length": 5}}, "architectures": ["san"]}),
        ("paths", {"task": "sorting", "depths": [4, 2], "architectures": ["full", "san"]}),
        ("sweep", {"lines": ["architecture"], "panels": ["norm"], "x": "depth"}),
        ("curves", {"panels": {"a": ["san"], "b": ["full", "san"]}}),
        ("models", {"models": ["bert-base-cased"]}),
        ("scorecard", {"numbers": ["residual_last", "block_order"]}),
    ],
)
def test_what_will_be_there_is_not(figure: str, options: dict[str, Any]) -> None:
    found = make_plan(drawn(figure, **options)).figures["one"].options
    assert {name: found[name] for name in options} == options
