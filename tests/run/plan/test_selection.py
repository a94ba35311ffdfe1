"""Guards which cells a measure is for: none that it cannot deal with, and none twice in one table."""

import json
from pathlib import Path
from typing import Any

import pytest
from plans import changed, refusal

from rankfall import cli
from rankfall.run.plan import make_plan

MEASURE = 'TABLE = "paths"\ndef own(context, *, repeats: int = 5): ...\n'


def measured(**measures: Any) -> dict[str, Any]:
    return changed("measures", measures)


@pytest.mark.parametrize(
    ("fact", "why"),
    [
        ('REFUSES = [({"mlp": ["gelu", "relu"], "depth": 4}, "too much")]', "cannot be combined with mlp gelu or relu"),
        ('REQUIRES = [({"residual": "none"}, "too much")]', "needs residual none"),
    ],
)
def test_measure_refuses_cells(fact: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    name = f"sellab{len(fact)}"
    (tmp_path / f"{name}.py").write_text(f"{fact}\n{MEASURE}")
    message = refusal(measured(own={"measure": f"{name}:own", "cells": {"seed": [0, 1]}}))
    assert message.startswith(f"measures.own.cells: sorting / full / short: measure '{name}:own' {why}"), message
    assert message.endswith(": too much; name the right cells in `cells`")
    make_plan(measured(own={"measure": f"{name}:own", "cells": {"architecture": "san"}}))


def test_a_measure_without_cells_measures_those_that_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The plan says what is left out and why; where nothing is left to measure it is refused."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "canlab.py").write_text(f'REFUSES = [({{"mlp": "gelu", "depth": 4}}, "too much")]\n{MEASURE}')
    config = measured(own={"measure": "canlab:own"})
    plan = make_plan(config)
    able = {cell.key for cell in plan.cells if cell.labels[1] == "san" or cell.architecture.depth == 2}
    why = "measure 'canlab:own' cannot be combined with mlp gelu, depth 4: too much"
    assert plan.selected["own"] == able and plan.left_out == {"own": {why: 3}}
    (tmp_path / "c.json").write_text(json.dumps(config))
    assert cli.main(["plan", "--config", str(tmp_path / "c.json"), "--results", str(tmp_path)]) == 0
    assert f"  own: 3: {why}\n" in capsys.readouterr().out
    config["grid"][0] |= {"architecture": "full", "depth": 4}
    assert refusal(config) == f"measures.own: no cell of the grid can be measured: {why}"


def test_a_task_whose_tokens_are_all_equal_is_measured_by_what_is_for_it_alone() -> None:
    able = {"token_identity": "sorting", "probe_trained": "probe"}
    config = measured(**{measure: {} for measure in able}) | {"tasks": {"sorting": {}, "probe": {}}}
    config["grid"] = [{"task": ["sorting", "probe"], "architecture": "san", "training": "init", "seed": 0}]
    config["architectures"]["san"]["position"] = "none"
    plan = make_plan(config)
    for measure, task in able.items():
        assert {cell.task.name for cell in plan.cells if cell.key in plan.selected[measure]} == {task}
    assert {*plan.left_out} == {*able}


def test_a_cell_is_measured_once_for_a_table() -> None:
    message = refusal(measured(paths={}, more={"measure": "paths", "repeats": 9, "cells": {"seed": 1}}))
    assert message == (
        "measures.more: measures.paths fills table 'paths' too, and both are for sorting / full / short, depth 2, seed 1; "
        "write one entry, or name different cells in `cells`"
    )
    apart = {"cells": {"depth": 2}}, {"measure": "paths", "repeats": 9, "cells": {"depth": 4}}
    assert make_plan(measured(paths=apart[0], more=apart[1])).tables == {"paths": ["paths", "more"]}


@pytest.mark.parametrize("cells", [("seed", 0, [1, 2]), ("architecture", "san", "full")])
def test_networks_of_one_setting_are_measured_in_one_way(cells: tuple[str, Any, Any]) -> None:
    """One architecture's tokens were found by maps of one epoch, the other's by maps of twenty, and ranked; or a mean was over both."""
    field, first, second = cells
    entries = {"cells": {field: first}}, {"measure": "paths", "cells": {field: second}}
    message = refusal(measured(paths=entries[0], more=entries[1] | {"repeats": 9}))
    assert message.startswith(
        "measures.more: measures.paths fills table 'paths' too, and numbers of sorting / full / short, depth 2, "
    )
    assert message.endswith(
        "of one setting, but measured in two ways, repeats 5 and 9; give both the same options, or measure them in "
        "configurations of their own"
    )
    make_plan(measured(paths=entries[0], more=entries[1]))


def test_a_measure_of_no_cells_is_made_once() -> None:
    message = refusal(measured(orders={}, more={"measure": "orders", "sentinels": ["none", "bos"]}))
    assert message == "measures.more: is the same as measures.orders; take one of them out"
    make_plan(measured(orders={}, more={"measure": "orders", "normalisers": ["softmax"]}))
    models = {name: {"measure": "model_residuals", "model": name} for name in ("bert", "gpt2")}
    assert make_plan(measured(**models)).tables == {"model_residuals": ["bert", "gpt2"]}


def test_one_of_several_parts_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bias of the position or factors of the normaliser: cells with neither ended the run an hour later."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "biaslab.py").write_text(
        'PROVIDES = ("bias by offset",)\nfrom rankfall.nets.positions.alibi import Alibi\nclass Own(Alibi): ...\n'
    )
    config = measured(offsets={}) | {"architectures": {
        "plain": {}, "toeplitz": {"position": "toeplitz"}, "factors": {"normaliser": "urpe"}, "own": {"position": "biaslab:Own"},
        "fire": {"position": "fire"}, "linear": {"attention": "linear", "position": "none"},
    }}  # fmt: skip
    config["grid"][0] |= {"architecture": list(config["architectures"]), "depth": 2}
    plan = make_plan(config)
    chosen = {cell.labels[1] for cell in plan.cells if cell.key in plan.selected["offsets"]}
    assert chosen == {"toeplitz", "factors", "own"}
    start = "measure 'offsets' uses bias by offset or factors by offset, which attention"
    assert plan.left_out["offsets"] == {
        f"{start} 'multihead' does not have, nor position 'learned', nor normaliser 'softmax'": 3,
        f"{start} 'multihead' does not have, nor position 'fire', nor normaliser 'softmax'": 3,
        f"{start} 'linear' does not have, nor position 'none'": 3,
    }
    named = measured(offsets={"cells": {"architecture": "plain"}}) | {
        key: config[key] for key in ("architectures", "grid")
    }
    assert start in refusal(named)
