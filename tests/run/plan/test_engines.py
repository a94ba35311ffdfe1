"""Guards who computes a cell's steps: from configuration and code alone, and part of the key."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from plans import VALID, changed, component, refusal

from rankfall.errors import RankfallError
from rankfall.run.plan import Plan, engines, make_plan
from rankfall.tasks import circle


def asked(engine: str, **compute: Any) -> dict[str, Any]:
    return changed("compute", {"engine": engine, **compute})


def sources_of_the_engine(plan: Plan) -> list[bool]:
    """Of each cell, whether its key holds the machine."""
    return ["thousandfold/program/fusion.py" in cell.code for cell in plan.cells]


def test_the_engine_is_in_the_key_of_the_cells_that_it_serves_and_of_no_others() -> None:
    config = changed("trainings/exact", {"epochs": 2, "dtype": "float64"})
    config = changed("grid", [{**config["grid"][0], "training": ["short", "exact", "init"]}], config)
    plain, fast = (make_plan(changed("compute", {"engine": engine}, config)) for engine in ("plain", "auto"))
    assert {cell.engine for cell in plain.cells} == {"plain"} and not any(sources_of_the_engine(plain))
    served = [cell.training.name == "short" for cell in fast.cells]
    assert any(served) and not all(served)
    assert [cell.engine == "machine" for cell in fast.cells] == served == sources_of_the_engine(fast)
    assert [one.key == other.key for one, other in zip(plain.cells, fast.cells)] == [not one for one in served]
    assert [one.spec == other.spec for one, other in zip(plain.cells, fast.cells)] == [True] * len(served)


def test_the_choice_does_not_depend_on_what_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    with_numba = [cell.key for cell in make_plan(asked("auto")).cells]
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *of: None if name == "numba" else find(name, *of))
    assert [cell.key for cell in make_plan(asked("auto")).cells] == with_numba
    with pytest.raises(RankfallError, match=r"numba.*pip install 'rankfall\[fast\]'.*engine: plain") as error:
        engines.check_installed({"plain", "machine"})
    assert "\n" not in str(error.value)
    engines.check_installed({"plain"})


REFUSED = {
    "number format": ("trainings/short/dtype", "float64", "float64"),
    "precision": ("trainings/short/precision", "bf16", "precision bf16"),
    "batch": ("trainings/short/batch", 1, "batches of 1"),
    "length": ("tasks/sorting/length", 200, "200 tokens"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_served_is_plain_and_said(name: str) -> None:
    path, value, why = REFUSED[name]
    config = changed(path, value, changed("measures", {}, asked("auto")))
    plan = make_plan(config)
    assert ("plain", why) in engines.engines(plan.cells, plan.config.compute)
    line = refusal(changed("compute/engine", "machine", config))
    assert "compute.engine" in line and why in line and "auto" in line


def test_a_component_that_says_it_cannot_be_traced_is_plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    component(tmp_path, "softmax", "TRACED = False\n\n\ndef softmax(logits):\n    return logits.softmax(-1)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    plan = make_plan(changed("architectures/san/normaliser", "softmax:softmax", asked("auto")))
    why = "normaliser softmax:softmax, which says TRACED = False"
    assert ("plain", why) in engines.engines(plan.cells, plan.config.compute)


def test_a_symmetric_task_is_plain_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gradients that cancel exactly stay 0 by autograd alone: Adam makes whole steps of what rounding leaves of them. Not so of two
    tokens, which the kernels keep exact."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "mylab_ring.py").write_text(Path(circle.__file__).read_text() + "\nSYMMETRIC = True\n")
    parts = {"residual": "none", "mlp": "none", "position": "none", "embedding": "linear", "head": "regression"}
    config = changed("measures", {}, asked("auto")) | {
        "tasks": {"ring": {"task": "mylab_ring:circle", "points": 40}, "circle": {"points": 40}},
        "architectures": {"san": parts},
        "grid": [{"task": ["ring", "circle"], "architecture": "san", "training": "short", "seed": 0}],
    }
    plan = make_plan(config)
    why = "task mylab_ring:circle, whose samples are symmetric"
    assert set(engines.engines(plan.cells, plan.config.compute)) == {("plain", why), ("machine", "")}
    assert why in refusal(changed("compute/engine", "machine", config))


def test_the_fast_engine_is_the_default_and_a_plan_without_it_says_what_it_would_do() -> None:
    assert [cell.key for cell in make_plan(VALID).cells] == [cell.key for cell in make_plan(asked("auto")).cells]
    config = changed("architectures/san/normaliser", "l2", asked("plain"))
    plan = make_plan(changed("measures", {}, config))
    found = engines.engines(plan.cells, plan.config.compute)
    assert found == {("plain", ASKED): {"full": 6, "san": 6}}


ASKED = "asked for by compute.engine: plain; without it a faster engine computes them"


def on_a_gpu(engine: str, **compute: Any) -> dict[str, Any]:
    return changed("grid/0/training", ["short"], asked(engine, **{"device": "cuda", "stack": 256, **compute}))


def test_a_gpu_has_a_machine_and_keys_of_its_own() -> None:
    here, there = (make_plan(changed("compute/device", device, on_a_gpu("auto"))) for device in ("cpu", "cuda"))
    assert {cell.engine for cell in here.cells} == {"machine"} and all(sources_of_the_engine(here))
    assert {cell.engine for cell in there.cells} == {"machine_gpu"} and all(sources_of_the_engine(there))
    kernels = ["thousandfold/gpu/instructions.py" in cell.code for cell in (*here.cells, *there.cells)]
    assert kernels == [False] * len(here.cells) + [True] * len(there.cells)
    assert {cell.key for cell in here.cells}.isdisjoint(cell.key for cell in there.cells)


GPU_SLOWER = {
    "small stacks": ({"stack": 32}, "compute.stack: 32; on a GPU the machine pays from 128 networks at once"),
    "wide networks": ({}, "width 256; on a GPU the machine pays up to 128"),
}


@pytest.mark.parametrize("name", GPU_SLOWER)
def test_where_the_machine_does_not_pay_on_a_gpu_autograd_is_recorded_unless_it_is_asked_for(name: str) -> None:
    own, why = GPU_SLOWER[name]
    wide = {"architectures/san/width": 256, "architectures/full/width": 256} if name == "wide networks" else {}
    found = {}
    for engine in ("auto", "machine"):
        config = on_a_gpu(engine, **own)
        for path, value in wide.items():
            config = changed(path, value, config)
        plan = make_plan(config)
        found[engine] = set(engines.engines(plan.cells, plan.config.compute))
    assert found == {"auto": {("plain", why)}, "machine": {("machine_gpu", "")}}
