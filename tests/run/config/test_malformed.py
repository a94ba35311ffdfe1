"""Guards every way we know to get a configuration wrong: the message names the key, the value, what is allowed and the nearest name."""

import datetime
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from plans import DELETED, VALID, changed, refusal

from rankfall.errors import RankfallError
from rankfall.run.config.types import read
from rankfall.run.plan import make_plan
from rankfall.yaml_text import dump, load

NAN, INF = float("nan"), float("inf")
ENTRY = VALID["grid"][0]

# (what is changed, to what, the whole message as a regular expression)
CASES: dict[str, tuple[str, Any, str]] = {
    # keys that nothing reads
    "unknown section": (
        "taks",
        {},
        r"taks: nothing reads this key; allowed: architectures, .*tasks.*; did you mean 'tasks'\?",
    ),
    "unknown field": (
        "architectures/san/normalizer",
        "softmax",
        r"architectures\.san\.normalizer: nothing reads this key; allowed: .*normaliser.*; did you mean 'normaliser'\?",
    ),
    "unknown training field": (
        "trainings/short/learning_rate",
        0.1,
        r"trainings\.short\.learning_rate: nothing reads this key; allowed: base, batch, .*weight_decay",
    ),
    "unknown compute key": (
        "compute",
        {"thread": 2},
        r"compute\.thread: nothing reads this key; .*did you mean 'threads'\?",
    ),
    "unknown axis": ("grid/0/dept", [1], r"grid\.0\.dept: nothing reads this key; allowed: .*; did you mean 'depth'\?"),
    "unknown training axis": (
        "grid/0/training.lrr",
        [0.1],
        r"grid\.0\.training\.lrr: nothing reads this key; .*did you mean 'training\.lr'\?",
    ),
    "unknown task option": (
        "tasks/sorting/lenght",
        5,
        r"tasks\.sorting\.lenght: nothing reads this key; allowed: length, symbols, test, train; did you mean 'length'\?",
    ),
    "unknown option axis": (
        "grid/0/task.lenght",
        [5],
        r"grid\.0\.task\.lenght: nothing reads this key; .*; did you mean 'length'\?",
    ),
    "option of a component without any": (
        "architectures/san/normaliser",
        {"name": "softmax", "power": 2},
        r"architectures\.san\.normaliser\.power: normaliser 'softmax' takes no options",
    ),
    "unknown exclude field": (
        "grid/0/exclude",
        [{"sed": 1}],
        r"grid\.0\.exclude\.0\.sed: nothing reads this key; .*'seed'\?",
    ),
    "unknown option of measure": (
        "measures/paths/count",
        [5],
        r"measures\.paths\.count: nothing reads this key; .*'counts'\?",
    ),
    "singular of what stands beside a measure's options": (
        "measures/paths/cell",
        {"depth": 2},
        r"measures\.paths\.cell: nothing reads this key; allowed: cells, counts, .*measure, .*; did you mean 'cells'\?",
    ),
    "what stands beside the options of a measure without any": (
        "measures/references",
        {"cell": {}},
        r"measures\.references\.cell: nothing reads this key; .*; did you mean 'cells'\?",
    ),
    # components that are not there
    "unknown component": (
        "architectures/san/normaliser",
        "sofmax",
        r"architectures\.san\.normaliser: unknown normaliser 'sofmax'; allowed: .*l2.*; did you mean 'softmax'\?",
    ),
    "unknown component in axis": (
        "grid/0/normaliser",
        ["softmax", "l3"],
        r"grid\.0\.normaliser: unknown normaliser 'l3'; allowed: .*; did you mean 'l2'\?",
    ),
    "unknown task component": (
        "tasks/sortin",
        {},
        r"tasks\.sortin: unknown task 'sortin'; allowed: .*; did you mean 'sorting'\?",
    ),
    "unknown measure": (
        "measures/path",
        {},
        r"measures\.path: unknown measure 'path'; allowed: .*; did you mean 'paths'\?",
    ),
    "private module as component": (
        "architectures/san/mlp",
        "_mlp",
        r"architectures\.san\.mlp: unknown mlp '_mlp'; allowed: .*gelu.*",
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
    "unknown base": (
        "architectures/san/base",
        "fulll",
        r"architectures\.san\.base: 'fulll' is not one of the architectures; allowed: full, san; did you mean 'full'\?",
    ),
    "base that is a list": (
        "architectures/san/base",
        ["full"],
        r"architectures\.san\.base: \['full'\] is not one of the architectures; allowed: full, san",
    ),
    "bases in a circle": ("architectures/san/base", "san", r"architectures\.san\.base: goes in a circle: san -> san"),
    "label that is no file name": (
        "architectures/a b",
        {},
        r"architectures\.a b: 'a b' becomes part of file names: use letters, digits, _, \+ and -",
    ),
    "name in an entry": (
        "tasks/sorting/name",
        "x",
        r"tasks\.sorting\.name: an entry's name is its key; write `task:` .*",
    ),
    "label that YAML reads as true": (
        "architectures",
        {True: {}},
        r"architectures: the key True is not a word: YAML read it as true .*",
    ),
    # types
    "quoted integer": (
        "architectures/san/depth",
        "3",
        r"architectures\.san\.depth: '3' is text, not an integer; take the quotes away",
    ),
    "exponent for an integer": (
        "tasks/sorting/train",
        1e3,
        r"tasks\.sorting\.train: 1000\.0 is a number, not an integer; write 1000",
    ),
    "exponent for a size": (
        "architectures/san/depth",
        2e0,
        r"architectures\.san\.depth: 2\.0 is a number, not an integer; write 2",
    ),
    "float for an integer": (
        "architectures/san/depth",
        2.5,
        r"architectures\.san\.depth: 2\.5 is a number, not an integer",
    ),
    "true for an integer": (
        "architectures/san/depth",
        True,
        r"architectures\.san\.depth: True is true or false, not an integer; write `none` .*",
    ),
    "text for a number": ("trainings/short/lr", "fast", r"trainings\.short\.lr: 'fast' is text, not a number"),
    "quoted number": (
        "trainings/short/lr",
        "0.1",
        r"trainings\.short\.lr: '0\.1' is text, not a number; take the quotes away",
    ),
    "text for true": (
        "trainings/short/shuffle",
        "yes please",
        r"trainings\.short\.shuffle: 'yes please' is text, not true or false",
    ),
    "null for a component": (
        "architectures/san/mask",
        None,
        r"architectures\.san\.mask: is empty \(null\), not a component's name .*; for `no such part` write the word none, .*",
    ),
    "null for a component that there must be": (
        "trainings/short/optimizer",
        None,
        r"trainings\.short\.optimizer: is empty \(null\), not a component's name .*; write a value, or leave .*",
    ),
    "null for a section": (
        "measures",
        None,
        r"measures: is empty \(null\), not a mapping .*; write a value, or leave .*",
    ),
    "null for an option that has no default": (
        "measures/bert",
        {"measure": "model_residuals", "model": None},
        r"measures\.bert\.model: measure 'model_residuals' needs this option; allowed: str",
    ),
    "null for the grid": (
        "grid",
        None,
        r"grid: is empty \(null\), not a list; write a value, or leave the key out for its default",
    ),
    "no name": ("name", "", r"name: '' is an empty text"),
    "false for a component": (
        "architectures/san/mask",
        False,
        r"architectures\.san\.mask: False is true or false, not a component's name .*; write `none` for nothing, .*",
    ),
    "number for a component": (
        "architectures/san/mask",
        3,
        r"architectures\.san\.mask: 3 is an integer, not a component's name .*",
    ),
    "mapping without name": (
        "architectures/san/mask",
        {"width": 3},
        r"architectures\.san\.mask: .* is a mapping, not a component's name .*",
    ),
    "list for an entry": ("architectures/san", [1], r"architectures\.san: \[1\] is a list, not a mapping"),
    "list for a section": ("trainings", [], r"trainings: \[\] is a list, not a mapping of names to entries"),
    "mapping for the grid": ("grid", {"task": "sorting"}, r"grid: .* is a mapping, not a list"),
    "wrong type of option": ("tasks/sorting/length", 5.5, r"tasks\.sorting\.length: 5\.5 is a number, not an integer"),
    "wrong item of list option": (
        "measures/paths/counts",
        [2, "x"],
        r"measures\.paths\.counts\.1: 'x' is text, not an integer",
    ),
    "mapping in a list of words": (
        "figures",
        {"paths": {"architectures": [{"name": "san", "temperature": 2}]}},
        r"figures\.paths\.architectures\.0: \{'name': 'san', 'temperature': 2\} is a mapping, not text",
    ),
    "no list at all": (
        "measures/paths/counts",
        5,
        r"measures\.paths\.counts: 5 is an integer, not a list, each item an integer",
    ),
    "component of a measure that is not there": (
        "measures/orders",
        {"positions": ["nonee"]},
        r"measures\.orders\.positions\.0: unknown position 'nonee'; allowed: .*rope.*; did you mean 'none'\?",
    ),
    "option of a measure's component that is not there": (
        "measures/orders",
        {"normalisers": ["exp", {"name": "relu2", "token": 4}]},
        r"measures\.orders\.normalisers\.1\.token: nothing reads this key; allowed: tokens; did you mean 'tokens'\?",
    ),
    "component of a measure without its name": (
        "measures/orders",
        {"masks": [{"width": 2}]},
        r"measures\.orders\.masks\.0: \{'width': 2\} is a mapping, not a component's name .*",
    ),
    "block of a measure that is not there": (
        "measures/orders",
        {"blocks": ["attention"]},
        r"measures\.orders\.blocks\.0: 'attention' is not possible; allowed: .*column norm.*; did you mean 'attention alone'\?",
    ),
    "no draws": ("measures/orders", {"draws": 0}, r"measures\.orders\.draws: 0 is out of range; allowed: >= 1"),
    "one token": ("measures/orders", {"tokens": 1}, r"measures\.orders\.tokens: 1 is out of range; allowed: >= 2"),
    "other than the choices": (
        "architectures/san/norm_placement",
        "before",
        r"architectures\.san\.norm_placement: 'before' is not possible; allowed: post or pre",
    ),
    "unknown device": (
        "compute",
        {"device": "gpu"},
        r"compute\.device: 'gpu' is not possible; allowed: auto, cpu, cuda, cuda:0 and so on",
    ),
    "home in results": ("results", "~/rankfall", r"results: '~/rankfall' is not expanded here; write the whole path"),
    "NaN among options of the grid": (
        "grid/0/task.length",
        [5, NAN],
        r"grid\.0\.task\.length: nan is not a finite number",
    ),
    "date among options": (
        "grid/0/task.length",
        datetime.date(2020, 1, 1),
        r"grid\.0\.task\.length: datetime.* is a date, not a number, a word, a list or a mapping",
    ),
    "number as a key": (
        "measures/bert",
        {"measure": "model_residuals", "model": "bert", "config": {1: 2}},
        r"measures\.bert\.config: the key 1 is not a word: YAML read it as an integer; put it in quotes",
    ),
    # sizes
    "negative size": ("architectures/san/width", -48, r"architectures\.san\.width: -48 is out of range; allowed: >= 1"),
    "no layers": ("grid/0/depth", [2, 0], r"grid\.0\.depth: 0 is out of range; allowed: >= 1"),
    "negative option": (
        "tasks/sorting/train",
        -5,
        r"tasks\.sorting\.train: -5 is out of range; allowed: >= 1",
    ),
    "learning rate is NaN": ("trainings/short/lr", NAN, r"trainings\.short\.lr: nan is not a finite number"),
    "infinite weight decay": (
        "trainings/short/weight_decay",
        INF,
        r"trainings\.short\.weight_decay: inf is not a finite number",
    ),
    "negative learning rate": (
        "grid/0/training.lr",
        [-0.1],
        r"grid\.0\.training\.lr: -0\.1 is out of range; allowed: > 0",
    ),
    "dropout of everything": (
        "trainings/short/dropout",
        1.0,
        r"trainings\.short\.dropout: 1\.0 is out of range; allowed: < 1",
    ),
    "no time for a shard": (
        "compute",
        {"shard_minutes": 0},
        r"compute\.shard_minutes: 0.* is out of range; allowed: > 0",
    ),
    # combinations that cannot be
    "heads do not divide": (
        "architectures/san",
        {"heads": 5},
        r"grid\.0\.heads: 5 heads do not divide the width 48; allowed: 1, 2, 3, 4, 6, 8, 12, 16, 24, 48; or set head_width",
    ),
    "embedding for other inputs": (
        "architectures/san/embedding",
        "linear",
        r".*\.embedding: 'linear' is for vectors, but task 'sorting' has tokens; allowed: auto, .*token.*",
    ),
    "head for other targets": (
        "architectures/san/head",
        "regression",
        r".*\.head: 'regression' is for values, but task 'sorting' has classes; allowed: auto, classifier.*",
    ),
    # the grid
    "no grid": ("grid", [], r"measures\.paths\.cells: matches no cell of the grid"),
    "no architectures": ("architectures", {}, r"grid\.0\.architecture: 'san' is not one of the architectures"),
    "missing section": ("trainings", DELETED, r"grid\.0\.training: 'short' is not one of the trainings"),
    "missing axis": ("grid/0/seed", DELETED, r"grid\.0\.seed: this key is missing"),
    "empty axis": ("grid/0/depth", [], r"grid\.0\.depth: is an empty list, so the entry makes no cells"),
    "range downwards": (
        "grid/0/seed",
        "4..0",
        r"grid\.0\.seed: '4\.\.0' is an empty range: it runs from low to high, both included",
    ),
    "negative seed": (
        "grid/0/seed",
        [-1],
        r"grid\.0\.seed: -1 is not a seed; allowed: integers from 0, ranges such as \"0\.\.4\"",
    ),
    "text for a seed": ("grid/0/seed", "all", r"grid\.0\.seed: 'all' is not a seed; allowed: .*"),
    "value twice": ("grid/0/depth", [2, 4, 2], r"grid\.0\.depth: 2 is there twice"),
    "seed twice through a range": ("grid/0/seed", ["0..3", 2], r"grid\.0\.seed: 2 is there twice"),
    "exclude without effect": (
        "grid/0/exclude",
        [{"depth": 7}],
        r"grid\.0\.exclude\.0\.depth: 7 matches no cell of this entry",
    ),
    "exclude half without effect": (
        "grid/0/exclude",
        [{"architecture": ["san", "fool"]}],
        r"grid\.0\.exclude\.0\.architecture: 'fool' matches no cell of this entry",
    ),
    "empty exclude": ("grid/0/exclude", [{}], r"grid\.0\.exclude\.0: is empty, so it would match every cell"),
    "everything excluded": (
        "grid/0/exclude",
        [{"task": "sorting"}],
        r"grid\.0: makes no cells: everything is excluded",
    ),
    "cells twice": (
        "grid",
        [ENTRY, {**ENTRY, "architecture": "san", "depth": 4, "seed": [7, 2]}],
        r"grid\.1: sorting / san / short, depth 4, seed 2 is already made by grid\.0 as sorting / san / short, depth 4, seed 2; .*",
    ),
    "same cells under another label": (
        "architectures/full",
        {"residual": "none"},
        r"grid\.0: sorting / full / short, depth 2, seed 0 is already made by grid\.0 as sorting / san / short, depth 2, .*",
    ),
    "include that is there": (
        "grid/0/include",
        [{"architecture": "san", "depth": 2, "seed": 1}],
        r"grid\.0\.include\.0: sorting / san / short, depth 2, seed 1 is already made by grid\.0 .*",
    ),
    "measure of no cells": (
        "measures/paths/cells",
        {"depth": 9},
        r"measures\.paths\.cells\.depth: 9 matches no cell of the grid",
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
    "a sexagesimal one": (
        "a: 1\nb: 1:30",
        r".*line 2: 1:30 is 90 in .* and the text '1:30' in .*: write 90 or '1:30' in quotes",
    ),
    "one with a fraction": ("b: 1:30.5", r".*line 1: 1:30\.5 is 90\.5 in .*: write 90\.5 or '1:30\.5' in quotes"),
    "underscores": ("b: 1_000", r".*line 1: 1_000 is 1000 in .*: write 1000 or '1_000' in quotes"),
    "binary": ("b: 0b11", r".*line 1: 0b11 is 3 in .*: write 3 or '0b11' in quotes"),
    "yes": ("b: yes", r".*line 1: yes is true in .* and the text 'yes' in .*: write true or 'yes' in quotes"),
    "a key that is off": ("b: {off: 1}", r".*line 1: off is false in .*: write false or 'off' in quotes"),
    "a list": ("- 1\n", r".*c\.yaml: \[1\] is a list, not a mapping"),
    "nothing": ("", r".*c\.yaml: is empty \(null\), not a mapping.*"),
}


@pytest.mark.parametrize("case", YAML)
def test_unreadable_file(case: str, tmp_path: Path) -> None:
    text, expected = YAML[case]
    (tmp_path / "c.yaml").write_text(text)
    assert re.fullmatch(expected, refusal(tmp_path / "c.yaml"))


def test_missing_file(tmp_path: Path) -> None:
    assert refusal(tmp_path / "c.yaml").endswith("c.yaml: cannot be read: No such file or directory")


def test_what_yaml_1_2_reads(tmp_path: Path) -> None:
    text = "[0o17, 0x1F, 1e3, .5, -3, 08, 2024-01-01, 'yes', '010', !!str 010, True, ~, y, 0..4, 1.5.2, .inf]"
    (tmp_path / "c.yaml").write_text("a: " + text)
    expected = [15, 31, 1000.0, 0.5, -3, 8, "2024-01-01", "yes", "010", "010", True, None, "y", "0..4", "1.5.2"]
    *found, infinite = read(tmp_path / "c.yaml")["a"]
    assert [(type(one), one) for one in found] == [(type(one), one) for one in expected] and infinite == float("inf")


@pytest.mark.parametrize(
    "text", ["1e5", "0o17", "08", "010", "yes", "1:30", "2024-01-01", "null", "1_000", "<<", "é\n"]
)
def test_text_that_is_written_is_read_again_by_every_version(text: str) -> None:
    assert load(dump({"a": [text]})) == yaml.safe_load(dump({"a": [text]})) == {"a": [text]}


def test_yaml_exponent_without_dot_is_a_number(tmp_path: Path) -> None:
    text = yaml.safe_dump(VALID).replace("epochs: 2", "epochs: 2\n    lr: 1e-5")
    (tmp_path / "c.yaml").write_text(text)
    assert {cell.training.lr for cell in make_plan(tmp_path / "c.yaml").cells} == {1e-5}


def test_more_than_one_problem_is_counted() -> None:
    message = refusal(changed("trainings/short", {"lr": -1, "batch": 0, "epochs": "2"}))
    assert message.endswith("(and 2 more)")


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
    assert message == "architectures.san.normaliser.power: 4.0 is out of range; allowed: >= 1 and <= 3"
    message = refusal(changed("architectures/san/normaliser", "limlab:sharp"))
    assert message == "architectures.san.normaliser.power: normaliser 'limlab:sharp' needs this option; allowed: float"


def test_valid_base_is_valid() -> None:
    """So that each case above is refused for its own change."""
    assert len(make_plan(VALID).cells) == 2 * 2 * 3


def test_errors_are_for_users() -> None:
    assert issubclass(RankfallError, Exception)
    assert len(CASES) >= 30
