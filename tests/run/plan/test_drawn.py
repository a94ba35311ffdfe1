"""Guards that a figure which cannot be drawn is refused by the plan, from the configuration alone: what its options name must be there."""

from pathlib import Path
from typing import Any

import pytest
from plans import changed, component, refusal

from rankfall.run.plan import make_plan
from rankfall.tasks import sorting
from rankfall.train.objectives import classes

BERT = {"measure": "model_residuals", "model": "bert-base-cased", "seeds": 1}
MEASURES = {
    "residuals": {"cells": {"architecture": "san"}},
    "paths": {"counts": [2]},
    "law": {},
    "bert": BERT,
    "bert_tokens": {"measure": "model_token_identity", "model": "bert-base-cased"},
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
        "where.layer: 'one' is not a value for a column of type int",
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
        "lines: 'architektur' is not a column of table 'law'",
        "'architecture'",
    ),
    "numbers": (
        "scorecard",
        {"numbers": ["residual_last", "residuals_last"]},
        "numbers: 'residuals_last' is not a column of table 'scorecard'",
        "did you mean 'residual_last'",
    ),
    "models": ("models", {"models": ["gpt2"]}, "models: 'gpt2' is not measured; there will be: bert-base-cased", ""),
    "split": (
        "curves",
        {"split": "tets"},
        "split: no cell that it could draw has a split 'tets'; allowed: train, test; did you mean 'test'?",
        "",
    ),
    "a split of another task": ("curves", {"split": "longer"}, "has a split 'longer'; allowed: train, test", ""),
    "metric": (
        "curves",
        {"metric": "acuracy"},
        "metric: no cell that it could draw has a metric 'acuracy' on the split test; allowed: loss, accuracy; did you",
        "'accuracy'?",
    ),
    "a metric of another task": (
        "curves",
        {"metric": "accuracy_constant"},
        "'accuracy_constant' on the split test; allowed: loss, accuracy",
        "",
    ),
    "setting": (
        "scorecard",
        {"setting": "sorting, short, depth 3"},
        "setting: 'sorting, short, depth 3' is not a setting of the scorecard; there will be: sorting, short, depth 2; "
        "sorting, short, depth 4; did you mean 'sorting, short, depth ",
        "",
    ),
    "definition": ("models", {"definition": "published"}, "'published' is not measured; there will be: clean", ""),
    "candidates": ("model_token_identity", {"candidates": ["sentense"]}, "'sentense' is not possible", "'sentence'?"),
    "a norm": ("models", {"metric": "compositt"}, "metric: 'compositt' is not possible; allowed: composite, l1", "?"),
    "a centre": ("models", {"centre": "none"}, "centre: 'none' is not possible; allowed: mean, best", ""),
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
        ("scorecard", {"setting": "sorting, short, depth 4"}),
        ("curves", {"split": "train", "metric": "loss", "panels": {"a": ["san"]}}),
    ],
)
def test_what_will_be_there_is_not(figure: str, options: dict[str, Any]) -> None:
    found = make_plan(drawn(figure, **options)).figures["one"].options
    assert {name: found[name] for name in options} == options


def graded(grid: dict[str, Any], **options: Any) -> dict[str, Any]:
    """A configuration of another grid, with one figure of curves."""
    tasks = {"circle": {}, "probe": {"length": 8, "lengths": [6, 8, 12]}, "masked_text": {}, "even_tokens": {}}
    config = changed("tasks", tasks, drawn("curves", **options))
    config["measures"] = {"residuals": {}}
    return changed("grid", [{"architecture": "san", "seed": 0, **grid}], config)


@pytest.mark.parametrize(
    ("grid", "options", "refused"),
    [
        ({"task": "circle", "training": "short", "position": "none"}, {}, "metric 'accuracy' on the split test; allowed: loss"),
        ({"task": "circle", "training": "short", "position": "none"}, {"metric": "loss"}, ""),
        ({"task": ["circle", "probe"], "training": "short", "position": "none"}, {}, ""),  # it is drawn of the one that has it
        ({"task": ["circle", "probe"], "training": "short", "position": "none"}, {"task": "circle"}, "allowed: loss"),
        ({"task": "probe", "training": "short", "position": "none"}, {"split": "length 12"}, ""),
        ({"task": "probe", "training": "short", "position": "none"}, {"split": "length 8"}, "allowed: train, test, length 6, length 12"),
        ({"task": "even_tokens", "training": "short"}, {"metric": "accuracy_informative"}, ""),
        ({"task": "even_tokens", "training": "init"}, {"split": "train"}, "has a split 'train'; allowed: test"),
        ({"task": "masked_text", "training": "short", "position": "rope"}, {"split": "longer"}, ""),
        ({"task": "masked_text", "task.longer": None, "training": "short"}, {"split": "longer"}, "allowed: train, test"),
    ],
)  # fmt: skip
def test_curves_are_of_what_task_and_training_have(grid: dict[str, Any], options: dict[str, Any], refused: str) -> None:
    config = graded(grid, **options)
    if refused:
        said = refusal(config)
        assert said.startswith("figures.one.") and refused in said, said
    else:
        make_plan(config)


def test_a_task_or_an_objective_of_the_user_may_have_any(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = Path(sorting.__file__).read_text().replace("def sorting(", "def own(")
    component(tmp_path, "splitlab", source)
    config = drawn("curves", split="harder")
    make_plan(changed("tasks/sorting/task", "splitlab:own", config))
    source = Path(classes.__file__).read_text().replace("def classes(", "def own(")
    component(tmp_path, "gradelab", source)
    config = drawn("curves", metric="entropy")
    make_plan(changed("trainings/short/objective", "gradelab:own", config))


def test_settings_are_named_as_the_scorecard_names_them() -> None:
    """By what the whole run differs in, and of the architectures that are drawn."""
    entry = {"task": "sorting", "training": "short", "depth": [2, 4], "seed": 0}
    config = drawn("scorecard", setting="sorting, short, depth 2, width 16", architectures=["san"])
    config["grid"] = [{**entry, "architecture": "san", "width": 16}, {**entry, "architecture": "full", "width": 32}]
    make_plan(config)
    said = refusal(changed("figures/one/setting", "sorting, short, depth 2, width 32", config))
    assert "there will be: sorting, short, depth 2, width 16; sorting, short, depth 4, width 16; did" in said
