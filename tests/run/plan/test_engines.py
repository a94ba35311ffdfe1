"""Guards who computes a cell's steps: from the configuration alone, part of the key, and never the fused engine for what it was not
checked with."""

import importlib.util
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from plans import VALID, changed, component, refusal

from rankfall import cli
from rankfall.errors import RankfallError
from rankfall.run.keys.fingerprint import Sources
from rankfall.run.plan import Plan, engines, make_plan
from rankfall.run.plan.cost import cell_seconds
from rankfall.tasks import circle


def asked(engine: str, **compute: Any) -> dict[str, Any]:
    return changed("compute", {"engine": engine, **compute})


def sources_of_the_engine(plan: Plan) -> list[bool]:
    """Of each cell, whether its key holds the kernels."""
    return ["rankfall/train/fused/attention.py" in cell.code for cell in plan.cells]


def test_the_engine_is_in_the_key_of_the_cells_that_it_serves_and_of_no_others() -> None:
    config = changed("trainings/exact", {"epochs": 2, "dtype": "float64"})
    config = changed("grid", [{**config["grid"][0], "training": ["short", "exact", "init"]}], config)
    plain, fast = (make_plan(changed("compute", {"engine": engine}, config)) for engine in ("plain", "auto"))
    assert {cell.engine for cell in plain.cells} == {"plain"} and not any(sources_of_the_engine(plain))
    served = [cell.training.name == "short" for cell in fast.cells]
    assert any(served) and not all(served)
    assert [cell.engine == "fused" for cell in fast.cells] == served == sources_of_the_engine(fast)
    assert [one.key == other.key for one, other in zip(plain.cells, fast.cells)] == [not one for one in served]
    assert [one.spec == other.spec for one, other in zip(plain.cells, fast.cells)] == [True] * len(served)


def test_the_choice_does_not_depend_on_what_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    with_numba = [cell.key for cell in make_plan(asked("auto")).cells]
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *of: None if name == "numba" else find(name, *of))
    assert [cell.key for cell in make_plan(asked("auto")).cells] == with_numba
    with pytest.raises(RankfallError, match=r"numba.*pip install 'rankfall\[fast\]'.*engine: plain") as error:
        engines.check_installed({"plain", "fused"})
    assert "\n" not in str(error.value)
    engines.check_installed({"plain"})


REFUSED = {
    "normaliser": ("architectures/san/normaliser", "l2", "normaliser l2"),
    "position": ("architectures/san/position", "shaw", "position shaw"),
    "attention": ("architectures/san/attention", "linear", "attention linear"),
    "sentinels": ("architectures/san/sentinels", "bos", "sentinels bos"),
    "norm": ("architectures/san/norm", "rms", "norm rms"),
    "objective": ("trainings/short/objective", "prefixes", "objective prefixes"),
    "number format": ("trainings/short/dtype", "float64", "float64"),
    "precision": ("trainings/short/precision", "bf16", "precision bf16"),
    "batch": ("trainings/short/batch", 1, "batches of 1"),
    "length": ("tasks/sorting/length", 200, "200 tokens"),
}


TRACED = ("normaliser", "position", "attention", "sentinels", "norm", "objective")  # which the machine serves


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_served_is_plain_and_said(name: str) -> None:
    path, value, why = REFUSED[name]
    config = changed(path, value, changed("measures", {}, asked("auto")))
    plan = make_plan(config)
    found, traced = engines.engines(plan.cells, plan.config.compute), name in TRACED
    assert (("machine" if traced else "plain"), why) in found
    line = refusal(changed("compute/engine", "fused", config))
    assert "compute.engine" in line and why in line and "auto" in line
    insisting = changed("compute/engine", "machine", config)
    assert (
        {cell.engine for cell in make_plan(insisting).cells if cell.training.epochs} == {"machine"}
        if traced
        else why in refusal(insisting)
    )


def test_the_machine_is_in_the_key_of_the_cells_that_it_serves_and_of_no_others() -> None:
    config = changed("measures", {}, changed("architectures/san/normaliser", "l2", asked("auto")))
    plan, plain = make_plan(config), make_plan(changed("compute/engine", "plain", config))
    by = {cell.engine for cell in plan.cells if cell.training.epochs}
    assert by == {"machine", "fused"}
    assert {
        cell.engine == "machine" for cell in plan.cells if "rankfall/train/machine/program/fusion.py" in cell.code
    } == {True}
    assert all("rankfall/train/machine/runtime.py" in cell.code for cell in plan.cells if cell.engine == "machine")
    assert [one.key == other.key for one, other in zip(plan.cells, plain.cells)] == [
        cell.engine == "plain" for cell in plan.cells
    ]


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
    assert set(engines.engines(plan.cells, plan.config.compute)) == {("plain", why), ("fused", "")}
    assert why in refusal(changed("compute/engine", "fused", config))


def test_wide_networks_with_few_sequences_are_served() -> None:
    """Only the whole of a row has to fill vectors, not the sequences of one place."""
    config = changed("architectures/san/width", 256, changed("trainings/short/batch", 4, asked("auto")))
    plan = make_plan(changed("measures", {}, config))
    assert set(engines.engines(plan.cells, plan.config.compute)) == {("fused", "")}


def test_the_fast_engine_is_the_default_and_a_plan_without_it_says_what_it_would_do() -> None:
    assert [cell.key for cell in make_plan(VALID).cells] == [cell.key for cell in make_plan(asked("auto")).cells]
    config = changed("architectures/san/normaliser", "l2", asked("plain"))
    plan = make_plan(changed("measures", {}, config))
    found = engines.engines(plan.cells, plan.config.compute)
    assert found == {("plain", ASKED): {"full": 6, "san": 6}}


ASKED = "asked for by compute.engine: plain; without it a faster engine computes them"


def test_a_gpu_is_not_served() -> None:
    assert {cell.engine for cell in make_plan(asked("auto", device="cuda")).cells} == {"plain"}


def test_a_component_of_ones_own_is_traced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    component(tmp_path, "softmax", "def softmax(logits):\n    return logits.softmax(-1)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    plan = make_plan(changed("architectures/san/normaliser", "softmax:softmax", asked("auto")))
    assert ("machine", "normaliser softmax:softmax") in engines.engines(plan.cells, plan.config.compute)


def test_an_edited_component_is_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the kernels were tested with is noted by digest, so an edit is computed by the code that was edited."""
    monkeypatch.setitem(engines.CHECKED, "residual", {**engines.CHECKED["residual"], "none": "0" * 12})
    plan = make_plan(asked("auto"))
    found = engines.engines(plan.cells, plan.config.compute)
    assert set(found) == {("machine", "residual none was edited"), ("fused", "")}


@pytest.mark.parametrize("module", engines.REPEATED)
def test_edited_code_around_components_is_traced(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A network put together in another way, or another clip, was trained by kernels that know nothing of it."""
    find, file = Sources._source, f"{module.replace('.', '/')}.py"

    def edit(self: Sources, name: str) -> Any:
        found = find(self, name)
        return replace(found, digest="0" * 12) if found and found.file == file else found

    monkeypatch.setattr(Sources, "_source", edit)
    plan = make_plan(changed("measures", {}, asked("auto")))
    assert ("machine", f"{module} was edited") in engines.engines(plan.cells, plan.config.compute)
    assert all(cell.engine != "fused" for cell in plan.cells)


def test_the_plan_says_who_computes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, results = tmp_path / "c.json", str(tmp_path / "results")
    path.write_text(json.dumps(changed("architectures/san/position", "shaw", asked("auto"))))
    assert cli.main(["plan", "--config", str(path), "--results", results]) == 0
    said = capsys.readouterr().out
    assert "machine, traced: san (position shaw)" in said and "fused, by hand: full\n" in said
    assert cli.main(["plan", "--config", str(path), "--results", results, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["engines"]
    assert {(one["engine"], one["why"]) for one in found} == {("machine", "position shaw"), ("fused", "")}


def test_the_estimate_knows_engines() -> None:
    (cell, *_) = make_plan(VALID).cells
    designs = cell.task, cell.architecture, cell.training
    assert cell_seconds(*designs, "fused") <= cell_seconds(*designs, "machine") < cell_seconds(*designs, "plain")
