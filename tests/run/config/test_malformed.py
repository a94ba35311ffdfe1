"""Guards what is said of a wrong configuration, a case for each kind of mistake: the key, the value, what is allowed, the nearest name."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from plans import DELETED, VALID, changed, refusal

from rankfall.errors import RankfallError
from rankfall.run.objects import find_objects
from rankfall.run.plan import make_plan

ENTRY = VALID["grid"][0]

# (what is changed, to what, the whole message as a regular expression)
CASES: dict[str, tuple[str, Any, str]] = {
    # keys that nothing reads
    "unknown field": (
        "architectures/san/normalizer",
        "softmax",
        r"architectures\.san\.normalizer: nothing reads this key; allowed: .*normaliser.*; did you mean 'normaliser'\?",
    ),
    # components that are not there
    "unknown component": (
        "architectures/san/normaliser",
        "sofmax",
        r"architectures\.san\.normaliser: unknown normaliser 'sofmax'; allowed: .*l2.*; did you mean 'softmax'\?",
    ),
    "missing external component": (
        "architectures/san/normaliser",
        "nolab.attn:Sharp",
        r"architectures\.san\.normaliser: 'nolab\.attn:Sharp': no Python module 'nolab\.attn' is installed or lies .*",
    ),
    # labels
    "unknown label": (
        "grid/0/architecture",
        ["san", "ful"],
        r"grid\.0\.architecture: 'ful' is not one of the architectures; allowed: full, san; did you mean 'full'\?",
    ),
    "bases in a circle": ("architectures/san/base", "san", r"architectures\.san\.base: goes in a circle: san -> san"),
    # types
    "quoted integer": (
        "architectures/san/depth",
        "3",
        r"architectures\.san\.depth: '3' is text, not an integer; take the quotes away",
    ),
    "null for a component": (
        "architectures/san/mask",
        None,
        r"architectures\.san\.mask: is empty \(null\), not a component's name .*; for `no such part` write the word none, .*",
    ),
    # sizes
    "no layers": ("grid/0/depth", [2, 0], r"grid\.0\.depth: 0 is out of range; allowed: >= 1"),
    # combinations that cannot be
    "heads do not divide": (
        "architectures/san",
        {"heads": 5},
        r"grid\.0\.heads: 5 heads do not divide the width 48; allowed: 1, 2, 3, 4, 6, 8, 12, 16, 24, 48; or set head_width",
    ),
    # the grid
    "missing axis": ("grid/0/seed", DELETED, r"grid\.0\.seed: this key is missing"),
    "more cells than anybody computes": (
        "grid/0",
        {**ENTRY, "seed": "0..99999", "depth": list(range(1, 99))},
        r"grid\.0: with this entry the grid has 19,600,000 cells; allowed: at most 1,000,000",
    ),
    "exclude without effect": (
        "grid/0/exclude",
        [{"depth": 7}],
        r"grid\.0\.exclude\.0\.depth: 7 matches no cell of this entry",
    ),
    "cells twice": (
        "grid",
        [ENTRY, {**ENTRY, "architecture": "san", "depth": 4, "seed": [7, 2]}],
        r"grid\.1: sorting / san / short, depth 4, seed 2 is already made by grid\.0 as sorting / san / short, depth 4, seed 2; .*",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_refused_with_reason(case: str) -> None:
    path, value, expected = CASES[case]
    message = refusal(changed(path, value))
    assert re.fullmatch(expected, message), message


def test_figure_without_its_table() -> None:
    config = changed("measures", {}, changed("figures", {"paths": {}}))
    assert re.fullmatch(
        r"figures\.paths: it is drawn from table 'paths', which no measure .*; allowed: cells, .*", refusal(config)
    )


YAML = {
    "indentation": ("tasks:\n  a: 1\n b: 2\n", r".*c\.yaml, line 3: .*"),
    "a key twice": ("name: a\nname: b\n", r".*c\.yaml, line 2: the key 'name' is there twice"),
    "an octal number": (
        "grid: [{seed: 010}]\n",
        r".*c\.yaml, line 1: 010 is 8 in YAML 1\.1 and 10 in YAML 1\.2: write 8 or 10",
    ),
    "yes": ("b: yes", r".*line 1: yes is true in .* and the text 'yes' in .*: write true or 'yes' in quotes"),
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


def test_component_refuses_company(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    text = 'REFUSES = [({"residual": "add", "depth": 4}, "it would explode")]\ndef sharp(scores, *, power: float = 2): ...\n'
    (tmp_path / "reflab.py").write_text(text)
    config = changed("architectures/full/normaliser", "reflab:sharp")
    assert re.fullmatch(
        r"grid\.0 \(sorting, full, short\): normaliser 'reflab:sharp' cannot be combined with residual add, depth 4: it would explode",
        refusal(config),
    )
    make_plan(changed("grid/0/depth", [2], config))


def test_limits_of_an_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "limlab.py").write_text(
        'LIMITS = {"power": (1, 3)}\ndef sharp(scores, *, power: float, shift: int = -1): ...\n'
    )
    ok = {"name": "limlab:sharp", "power": 2}
    plan = make_plan(changed("architectures/san/normaliser", ok))
    assert {"power": 2.0, "shift": -1} in [cell.architecture.normaliser.options for cell in plan.cells]
    message = refusal(changed("architectures/san/normaliser", {**ok, "power": 4}))
    assert message == "architectures.san.normaliser.power: 4 is out of range; allowed: <= 3"
    message = refusal(changed("architectures/san/normaliser", "limlab:sharp"))
    assert message == "architectures.san.normaliser.power: normaliser 'limlab:sharp' needs this option; allowed: float"


def test_a_component_of_ones_own_is_found_by_its_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab" / "topk.py").write_text("class Base: ...\nclass TopK: ...\n")
    monkeypatch.chdir(tmp_path)
    assert "your own is lab.topk:TopK" in refusal(changed("architectures/san/attention", "topk"))
    assert "did you mean 'lab.topk:TopK'?" in refusal(changed("architectures/san/attention", "lab.topkk:TopK"))


def test_a_syntax_error_of_a_component_shows_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cut.py").write_text("import torch\ndef cut(x)\n    return x\n")
    monkeypatch.chdir(tmp_path)
    assert "cut.py, line 2: expected ':': def cut(x)" in refusal(changed("architectures/san/normaliser", "cut:cut"))


def test_results_inside_a_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("")
    with pytest.raises(RankfallError, match="is a file or lies inside one\nfix: choose another folder"):
        find_objects(tmp_path / "config.yaml" / "x")
