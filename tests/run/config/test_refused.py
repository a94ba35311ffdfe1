"""Guards that a wrong configuration is refused by the plan, and not by a job hours later, a case for each kind of mistake: the key, the
value, what is allowed, the nearest name."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from plans import DELETED, VALID, changed, planned, refusal

from rankfall.errors import RankfallError
from rankfall.run.objects import find_objects
from rankfall.run.plan import make_plan

ENTRY = VALID["grid"][0]
# (what is changed, to what, the whole message as a regular expression)
CASES: dict[str, tuple[str, Any, str]] = {
    "unknown field": ("architectures/san/normalizer", "softmax",
        r"architectures\.san\.normalizer: nothing reads this key; allowed: .*normaliser.*; did you mean 'normaliser'\?"),
    "unknown component": ("architectures/san/normaliser", "sofmax",
        r"architectures\.san\.normaliser: unknown normaliser 'sofmax'; allowed: .*l2.*; did you mean 'softmax'\?"),
    "missing external component": ("architectures/san/normaliser", "nolab.attn:Sharp",
        r"architectures\.san\.normaliser: 'nolab\.attn:Sharp': no Python module 'nolab\.attn' is installed or lies .*"),
    "unknown label": ("grid/0/architecture", ["san", "ful"],
        r"grid\.0\.architecture: 'ful' is not one of the architectures; allowed: full, san; did you mean 'full'\?"),
    "bases in a circle": ("architectures/san/base", "san", r"architectures\.san\.base: goes in a circle: san -> san"),
    "quoted integer": ("architectures/san/depth", "3", r"architectures\.san\.depth: '3' is text, not an integer; take the quotes away"),
    "null for a component": ("architectures/san/mask", None,
        r"architectures\.san\.mask: is empty \(null\), not a component's name .*; for `no such part` write the word none, .*"),
    "no layers": ("grid/0/depth", [2, 0], r"grid\.0\.depth: 0 is out of range; allowed: >= 1"),
    "heads do not divide": ("architectures/san", {"heads": 5},
        r"grid\.0\.heads: 5 heads do not divide the width 48; allowed: 1, 2, 3, 4, 6, 8, 12, 16, 24, 48; or set head_width"),
    "missing axis": ("grid/0/seed", DELETED, r"grid\.0\.seed: this key is missing"),
    "more cells than anybody computes": ("grid/0", {**ENTRY, "seed": "0..99999", "depth": list(range(1, 99))},
        r"grid\.0: with this entry the grid has 19,600,000 cells; allowed: at most 1,000,000"),
    "exclude without effect": ("grid/0/exclude", [{"depth": 7}], r"grid\.0\.exclude\.0\.depth: 7 matches no cell of this entry"),
    "cells twice": ("grid", [ENTRY, {**ENTRY, "architecture": "san", "depth": 4, "seed": [7, 2]}],
        r"grid\.1: sorting / san / short, depth 4, seed 2 is already made by grid\.0 as sorting / san / short, depth 4, seed 2; .*"),
    "label of nothing": ("labels", {"sam": "x"},
        r"labels\.sam: 'sam' is not a task, .* or model of this configuration; did you mean 'san'\?"),
    "label that cannot be shown": ("labels", {"san": r"$\ell_2$"}, r"labels.* cannot be shown; allowed: one line of 1 to 60 letters.*"),
    "label of another": ("labels", {"san": "full"}, r"labels\.san: 'full' is also the label of 'full'.*"),
    "no colour": ("colours", {"san": "teel"}, r"colours\.san: 'teel' is not a colour; .*did you mean 'teal'\?"),
    "figure without its table": ("figures/residuals", {},
        r"figures\.residuals: it is drawn from table 'residuals', which no measure .*; allowed: cells, .*"),
    # what the shipped components cannot do
    "no samples": ("tasks/own", {"task": "sorting", "train": 0}, r"tasks\.own\.train: 0 is out of range; allowed: >= 1"),
    "a word of few": ("tasks/own", {"task": "circle", "skip": "both"},
        r"tasks\.own\.skip: 'both' is not possible; allowed: none, step, published.*"),
    "none of a list": ("measures/own", {"measure": "paths", "counts": [0]}, r"measures\.own\.counts\.0: 0 is out of range; allowed: >= 1"),
    "component in an option": ("measures/own", {"measure": "orders", "positions": ["nonee"]},
        r"measures\.own\.positions\.0: unknown position 'nonee'; allowed: .*"),
    "figure of no architecture": ("figures", {"paths": {"architectures": ["sann"]}}, r"figures\.paths\.arch.*: .*did you mean 'san'\?"),
    "figure of no task": ("figures", {"paths": {"task": "sort"}}, r"figures\.paths\.task: .*did you mean 'sorting'\?"),
    "figure of no training": ("figures", {"paths": {"trainings": ["shrot"]}}, r"figures\.paths\.train.*: .*did you mean 'short'\?"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_refused_with_reason(case: str) -> None:
    path, value, expected = CASES[case]
    message = refusal(changed(path, value, VALID | {"figures": {}}))
    assert re.fullmatch(expected, message), message


MEASURES = {
    "residuals": {"cells": {"architecture": "san"}},
    "paths": {"counts": [2]},
    "law": {},
    "bert": {"measure": "model_residuals", "model": "bert-base-cased", "seeds": 1},
    "bert_tokens": {"measure": "model_token_identity", "model": "bert-base-cased"},
    "influence": {},
    "orders": {"heads": [1, 2]},
    "scorecard": {},
}
FIGURES: dict[str, tuple[str, dict[str, Any], str]] = {
    "column": ("residuals", {"where": {"dept": 2}}, r"where\.dept: table 'residuals' has no column 'dept'.*'depth'.*"),
    "value": ("residuals", {"where": {"depth": 3}}, r"where\.depth: no cell that it could draw has depth 3.*2, 4.*"),
    "heads": ("orders", {"heads": 3}, r"heads: 3 is not measured; allowed: 1, 2.*"),
    "norm": ("residuals", {"norm": "spectral"}, r"norm: 'spectral' is not measured; allowed: composite.*linf.*"),
    "cells": ("residuals", {"architectures": ["full"]}, r".*no cell that it could draw has architecture full.*san.*"),
    "models": ("models", {"models": ["gpt2"]}, r"models: 'gpt2' is not measured; allowed: bert-base-cased.*"),
    "one of several": ("residuals", {"where": {"depth": [2, 9], "residual": "none"}}, ""),
    "parts": ("residuals", {"where": {"task_component": "sorting", "lr": 1e-3, "norm": {"name": "layer"}, "layer": 1}}, ""),
    "axes": ("sweep", {"lines": ["architecture"], "panels": ["norm"], "x": "depth"}, ""),
    "a model": ("models", {"models": ["bert-base-cased"]}, ""),
    "a setting": ("scorecard", {"setting": "sorting, short, depth 4"}, ""),
    "panels": ("curves", {"split": "train", "metric": "loss", "panels": {"a": ["san"]}}, ""),
}  # fmt: skip


@pytest.mark.parametrize("case", FIGURES)
def test_a_figure_is_refused_where_what_its_options_name_will_not_be_there(case: str) -> None:
    figure, options, expected = FIGURES[case]
    config = changed("figures", {"one": {"figure": figure, **options}}, changed("measures", MEASURES))
    if expected:
        assert re.fullmatch(rf"figures\.one\.{expected}", refusal(config)), refusal(config)
    else:
        planned_options = make_plan(config).figures["one"].options
        assert {name: planned_options[name] for name in options} == options


YAML = {
    "indentation": ("tasks:\n  a: 1\n b: 2\n", r".*c\.yaml, line 3: .*"),
    "a key twice": ("name: a\nname: b\n", r".*c\.yaml, line 2: the key 'name' is there twice"),
}


@pytest.mark.parametrize("case", YAML)
def test_unreadable_file(case: str, tmp_path: Path) -> None:
    text, expected = YAML[case]
    (tmp_path / "c.yaml").write_text(text)
    assert re.fullmatch(expected, refusal(tmp_path / "c.yaml"))


def test_yaml_exponent_without_dot_is_a_number(tmp_path: Path) -> None:
    text = yaml.safe_dump(VALID).replace("epochs: 2", "epochs: 2\n    lr: 1e-5")
    (tmp_path / "c.yaml").write_text(text)
    assert {cell.training.lr for cell in make_plan(tmp_path / "c.yaml").cells} == {1e-5}


def test_component_refuses_company(lab: Path) -> None:
    text = 'REFUSES = [({"residual": "add", "depth": 4}, "it would explode")]\ndef sharp(scores, *, power: float = 2): ...\n'
    (lab / "reflab.py").write_text(text)
    config = changed("architectures/full/normaliser", "reflab:sharp")
    refused = "normaliser 'reflab:sharp' cannot be combined with residual add, depth 4: it would explode"
    assert refusal(config) == f"grid.0 (sorting, full, short): {refused}"
    make_plan(changed("grid/0/depth", [2], config))


def test_options_of_others_mean_what_their_authors_say(lab: Path) -> None:
    """Names of ours bound none of theirs: `width` may be in inches, and `lr` a slope. A list may be left empty, though it has entries by
    default. An integer is not negative unless its default, or LIMITS, say that it may be."""
    options = (
        "power: float, width: float = 1.0, lr: float = 0.1, seed: int = -1, steps: int = 0, count: int | None = None"
    )
    text = f"def sharp(scores, *, {options}, shown: list[str] = ['a'], offsets: list[int] = [-1, 0]): ..."
    (lab / "limlab.py").write_text('LIMITS = {"power": (1, 3)}\n' + text)

    def write(**options: Any) -> dict[str, Any]:
        grid = [{"task": "sorting", "architecture": "san", "training": "short", "seed": 0}]
        return changed("architectures/san/normaliser", {"name": "limlab:sharp", **options}, changed("grid", grid))

    defaults = {"width": 1.0, "lr": 0.1, "seed": -1, "steps": 0, "count": None, "shown": ["a"], "offsets": [-1, 0]}
    (plain,), (spelt,) = (make_plan(config).cells for config in (write(power=2), write(power=2.0, **defaults)))
    assert plain.key == spelt.key and plain.architecture.normaliser.options == {"power": 2.0, **defaults}
    others = {"power": 3, "width": -2.5, "lr": -2.5, "seed": -7, "shown": [], "offsets": [-7]}
    (cell,) = make_plan(write(**others)).cells
    assert cell.architecture.normaliser.options == defaults | others
    path = "architectures.san.normaliser"
    assert refusal(write(power=4)) == f"{path}.power: 4 is out of range; allowed: <= 3"
    assert refusal(write()) == f"{path}.power: normaliser 'limlab:sharp' needs this option; allowed: float"
    for option in ("count", "steps"):
        assert refusal(write(power=2, **{option: -1})) == f"{path}.{option}: -1 is out of range; allowed: >= 0"


@pytest.mark.parametrize(
    ("imports", "line", "missing"),
    [
        ("import no_such_library", 1, "no_such_library"),
        ("import os\nfrom no_such_library.deep import thing", 2, "no_such_library"),
        ("import rankfall.nets.no_such_part", 1, "rankfall.nets.no_such_part"),
    ],
)
def test_an_import_that_fails_is_one_line(lab: Path, imports: str, line: int, missing: str) -> None:
    (lab / "lab_lacking.py").write_text(f"{imports}\ndef square(logits):\n    return logits.square()\n")
    message = refusal(changed("architectures/full/normaliser", "lab_lacking:square"))
    where = f"architectures.full.normaliser: {lab}/lab_lacking.py, line {line}"
    assert message == f"{where}: cannot be imported: ModuleNotFoundError: No module named {missing!r}"


def test_so_is_one_of_a_helper_that_the_module_imports(lab: Path) -> None:
    (lab / "lab_helped.py").write_text(
        "from lab_helper import thing\ndef square(logits):\n    return logits.square()\n"
    )
    (lab / "lab_helper.py").write_text("from no_such_library import thing")
    path, name = "architectures/full/normaliser", "lab_helped:square"
    assert "lab_helper.py, line 1: cannot be imported: ModuleNotFoundError" in refusal(changed(path, name))
    (lab / "lab_helper.py").write_text("thing = 1")
    assert planned(path, name).cells


def test_a_component_of_ones_own_is_found_by_its_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab" / "topk.py").write_text("class Base: ...\nclass TopK: ...\n")
    monkeypatch.chdir(tmp_path)
    assert "write a component of your own as lab.topk:Name" in refusal(changed("architectures/san/attention", "topk"))
    assert "did you mean 'lab.topk:TopK'?" in refusal(changed("architectures/san/attention", "lab.topkk:TopK"))


def test_a_syntax_error_of_a_component_shows_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cut.py").write_text("import torch\ndef cut(x)\n    return x\n")
    monkeypatch.chdir(tmp_path)
    assert "cut.py, line 2: expected ':': def cut(x)" in refusal(changed("architectures/san/normaliser", "cut:cut"))


def test_results_inside_a_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("")
    with pytest.raises(RankfallError, match="is a file or lies inside one\nfix: choose another folder"):
        find_objects(tmp_path / "config.yaml" / "x")
