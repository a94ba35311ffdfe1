"""Guards which cells a measure is for: none that it cannot deal with and none twice in one table; and that a field which nothing reads is
no part of a cell."""

import json
from pathlib import Path
from typing import Any

import pytest
from plans import changed, refusal

from rankfall import cli
from rankfall.run.plan import make_plan

MEASURE = 'TABLE = "paths"\ndef own(context, *, repeats: int = 5, lengths: list[int] = []): ...\n'
BASE: dict[str, Any] = {"task": "sorting", "architecture": "san", "training": "short", "seed": 0}


def measured(**measures: Any) -> dict[str, Any]:
    return changed("measures", measures)


@pytest.mark.parametrize(
    ("fact", "why"),
    [
        ('REFUSES = [({"mlp": ["gelu", "relu"], "depth": 4}, "too much")]', "cannot be combined with mlp gelu or relu"),
        ('REQUIRES = [({"residual": "none"}, "too much")]', "needs residual none"),
    ],
)
def test_measure_refuses_cells(fact: str, why: str, lab: Path) -> None:
    name = f"sellab{len(fact)}"
    (lab / f"{name}.py").write_text(f"{fact}\n{MEASURE}")
    message = refusal(measured(own={"measure": f"{name}:own", "cells": {"seed": [0, 1]}}))
    assert message.startswith(f"measures.own.cells: sorting / full / short: measure '{name}:own' {why}"), message
    assert message.endswith(": too much; name the right cells in `cells`")
    make_plan(measured(own={"measure": f"{name}:own", "cells": {"architecture": "san"}}))


def test_a_measure_without_cells_measures_those_that_it_can(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The plan says what is left out and why; where nothing is left to measure it is refused."""
    (lab / "canlab.py").write_text(f'REFUSES = [({{"mlp": "gelu", "depth": 4}}, "too much")]\n{MEASURE}')
    config = measured(own={"measure": "canlab:own"})
    plan = make_plan(config)
    able = {cell.key for cell in plan.cells if cell.labels[1] == "san" or cell.architecture.depth == 2}
    why = "measure 'canlab:own' cannot be combined with mlp gelu, depth 4: too much"
    assert plan.selected["own"] == able and plan.left_out == {"own": {why: 3}}
    (lab / "c.json").write_text(json.dumps(config))
    assert cli.main(["plan", "--config", "c.json"]) == 0
    assert f"  own: 3: {why}\n" in capsys.readouterr().out
    config["grid"][0] |= {"architecture": "full", "depth": 4}
    assert refusal(config) == f"measures.own: no cell of the grid can be measured: {why} (3 cells)"


def test_measure_for_other_targets_is_refused(lab: Path) -> None:
    (lab / "tasklab2.py").write_text('INPUTS = "vectors"\nTARGETS = "values"\ndef spin(rng): ...\n')
    config = changed("grid/0/task", ["spin", "sorting"], changed("tasks/spin", {"task": "tasklab2:spin"}))
    message = refusal(changed("measures/paths/cells", {"task": ["spin", "sorting"]}, config))
    what = "measure 'paths' is for classes, but task 'spin' has values"
    assert message.startswith(f"measures.paths.cells: spin / full / short: {what}")
    assert make_plan(config).left_out == {"paths": {what: 12}}
    make_plan(changed("measures/paths/cells", {"task": "sorting"}, config))


def test_a_task_whose_tokens_are_all_equal_is_measured_by_what_is_for_it_alone() -> None:
    able = {"token_identity": "sorting", "probe_trained": "probe"}
    config = measured(**{measure: {} for measure in able}) | {"tasks": {"sorting": {}, "probe": {}}}
    config["grid"] = [BASE | {"task": ["sorting", "probe"], "training": "init"}]
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


@pytest.mark.parametrize(("field", "first", "second"), [("seed", 0, [1, 2]), ("architecture", "san", "full")])
def test_networks_of_one_setting_are_measured_in_one_way(field: str, first: Any, second: Any) -> None:
    """One architecture's tokens were found by maps of one epoch, the other's by maps of twenty, and ranked; or a mean was over both."""
    entries = {"cells": {field: first}}, {"measure": "paths", "cells": {field: second}}
    message = refusal(measured(paths=entries[0], more=entries[1] | {"repeats": 9}))
    start = "measures.more: measures.paths fills table 'paths' too, and numbers of sorting / full / short, depth 2, "
    assert message.startswith(start)
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


def test_one_of_several_parts_is_enough(lab: Path) -> None:
    """A bias of the position or factors of the normaliser: cells with neither ended the run an hour later."""
    (lab / "biaslab.py").write_text(
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
    config["measures"]["offsets"] = {"cells": {"architecture": "plain"}}
    assert start in refusal(config)


# What components read and have: what one lacks another may not use.


def with_parts(axes: dict[str, Any] | None = None, measures: dict[str, Any] | None = None, **parts: Any) -> Any:
    """Return a configuration of two networks with these parts, and more of them along axes."""
    config = changed(
        "architectures", {"net": {"depth": 2, "width": 8, "position": "none"} | parts}, measured(**(measures or {}))
    )
    return changed("grid", [BASE | {"architecture": "net", "seed": [0, 1]} | (axes or {})], config)


def test_cells_that_differ_in_what_nothing_reads_are_one_cell() -> None:
    """Also in key, spec and group, whatever entry or configuration wrote them."""
    both = make_plan(with_parts({"normaliser": ["softmax", "l2"]}, attention="linear"))
    (alone,) = {cell.architecture for cell in make_plan(with_parts(attention="linear", normaliser="relu2")).cells}
    keys = [cell.key for cell in make_plan(with_parts(attention="linear")).cells]
    assert [cell.key for cell in both.cells] == keys and len(keys) == 2  # seeds
    assert alone.normaliser is None and alone.heads == 2
    unit = make_plan(with_parts({"heads": [1, 2, 3], "head_width": [None, 7]}, attention="gau"))
    assert len(unit.cells) == 2
    assert unit.cells[0].architecture.heads is unit.cells[0].architecture.head_width is None


@pytest.mark.parametrize(
    ("measure", "attention", "lacks"),
    [
        ("paths", "linear", "weights and heads"),
        ("paths", "gau", "heads"),
        ("decomposition", "linear", "weights and heads and values"),
        ("decomposition", "gau", "heads and values"),
    ],
)
def test_a_measure_is_refused_what_an_attention_has_not(measure: str, attention: str, lacks: str) -> None:
    what = f"measure {measure!r} uses {lacks}, which attention {attention!r} does not have"
    message = refusal(with_parts(measures={measure: {}}, attention=attention, norm="none"))
    assert message == f"measures.{measure}: no cell of the grid can be measured: {what} (2 cells)"
    message = refusal(with_parts(measures={measure: {"cells": {"seed": 0}}}, attention=attention, norm="none"))
    assert message.endswith(f": {what}; name the right cells in `cells`")


@pytest.mark.parametrize(
    ("position", "acts_on"), [("rope", "queries"), ("toeplitz", "scores"), ("symmetric", "scores")]
)
def test_a_position_needs_something_to_act_on(position: str, acts_on: str) -> None:
    message = refusal(with_parts(attention="linear", position=position))
    assert f"position {position!r} acts on {acts_on}, or" in message
    assert "attention 'linear' does not let it reach" in message
    make_plan(with_parts(attention="gau", position=position))


def test_longer_than_learned_positions_go_is_refused(lab: Path) -> None:
    (lab / "lengthlab.py").write_text(f'LENGTHS = ("lengths",)\n{MEASURE}')
    config = lambda position, *lengths: with_parts(  # noqa: E731
        measures={"own": {"measure": "lengthlab:own", "lengths": [*lengths]}}, position=position
    )
    for fitting in (config("learned", 3, 5), config("rope", 5, 600), config("toeplitz", 20)):
        make_plan(fitting)
    assert refusal(config("learned", 5, 6)).startswith(
        "measures.own: no cell of the grid can be measured: length 6 is asked for, but position 'learned' admits "
        "no more than the length that it was trained at, 5"
    )
