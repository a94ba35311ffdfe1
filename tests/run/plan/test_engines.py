"""Guards who computes a cell's steps: from configuration and code alone, and part of the key."""

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from plans import VALID, changed, refusal

from rankfall.errors import RankfallError
from rankfall.run.plan import Plan, engines, make_plan
from rankfall.tasks import circle


def with_engine(engine: str, config: dict[str, Any] | None = None, **compute: Any) -> dict[str, Any]:
    return changed("compute", {"engine": engine, **compute}, changed("measures", {}, config))


def count_engines(config: dict[str, Any]) -> Mapping[tuple[str, str], Mapping[str, int]]:
    """Return (engine, why not the machine) -> architecture -> number of cells."""
    plan = make_plan(config)
    return engines.engines(plan.cells, plan.config.compute)


def has_machine(plan: Plan, file: str = "program/fusion") -> list[bool]:
    """Return of each cell whether its key holds the machine."""
    return [f"thousandfold/{file}.py" in cell.code for cell in plan.cells]


def test_the_engine_is_in_the_key_of_the_cells_that_it_serves_and_of_no_others() -> None:
    config = changed("trainings/exact", {"epochs": 2, "dtype": "float64"})
    config = changed("grid/0/training", ["short", "exact", "init"], config)
    plain, fast = (make_plan(with_engine(engine, config)) for engine in ("plain", "auto"))
    assert {cell.engine for cell in plain.cells} == {"plain"} and not any(has_machine(plain))
    served = [cell.training.name == "short" for cell in fast.cells]
    assert any(served) and not all(served)
    assert [cell.engine == "machine" for cell in fast.cells] == served == has_machine(fast)
    for cell, other, is_served in zip(plain.cells, fast.cells, served):
        assert cell.spec == other.spec and (cell.key != other.key) is is_served


def test_the_choice_does_not_depend_on_what_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    with_numba = [cell.key for cell in make_plan(with_engine("auto")).cells]
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == "numba" else find(name, *more))
    assert [cell.key for cell in make_plan(with_engine("auto")).cells] == with_numba
    with pytest.raises(RankfallError, match=r"numba.*pip install 'rankfall\[fast\]'.*engine: plain") as error:
        engines.check_installed({"plain", "machine"})
    assert "\n" not in str(error.value)
    engines.check_installed({"plain"})


PLAIN = {
    "number format": ("trainings/short/dtype", "float64", "float64"),
    "precision": ("trainings/short/precision", "bf16", "precision bf16"),
    "batch": ("trainings/short/batch", 1, "batches of 1"),
    "length": ("tasks/sorting/length", 200, "200 tokens"),
    "component": ("architectures/san/normaliser", "nottraced:softmax", "normaliser nottraced:softmax, which says TRACED = False"),
}  # fmt: skip


@pytest.mark.parametrize("name", PLAIN)
def test_what_is_not_served_is_plain_and_said(name: str, lab: Path) -> None:
    (lab / "nottraced.py").write_text("TRACED = False\ndef softmax(logits):\n    return logits.softmax(-1)\n")
    path, value, why = PLAIN[name]
    config = changed(path, value)
    assert ("plain", why) in count_engines(with_engine("auto", config))
    message = refusal(with_engine("machine", config))
    assert "compute.engine" in message and why in message and "auto" in message


def test_a_symmetric_task_is_plain_and_said(lab: Path) -> None:
    """Gradients that cancel exactly stay 0 by autograd alone: Adam makes whole steps of what rounding leaves of them. Not so of two
    tokens, which the kernels keep exact."""
    (lab / "mylab_ring.py").write_text(Path(circle.__file__).read_text() + "\nSYMMETRIC = True\n")
    parts = {"residual": "none", "mlp": "none", "position": "none", "embedding": "linear", "head": "regression"}
    config = VALID | {
        "tasks": {"ring": {"task": "mylab_ring:circle", "points": 40}, "circle": {"points": 40}},
        "architectures": {"san": parts},
        "grid": [{"task": ["ring", "circle"], "architecture": "san", "training": "short", "seed": 0}],
    }
    why = "task mylab_ring:circle, whose samples are symmetric"
    assert set(count_engines(with_engine("auto", config))) == {("plain", why), ("machine", "")}
    assert why in refusal(with_engine("machine", config))


def test_the_fast_engine_is_the_default_and_a_plan_without_it_says_what_it_would_do() -> None:
    assert [cell.key for cell in make_plan(VALID).cells] == [cell.key for cell in make_plan(with_engine("auto")).cells]
    why = "asked for by compute.engine: plain; without it a faster engine computes them"
    assert count_engines(with_engine("plain")) == {("plain", why): {"full": 6, "san": 6}}


def test_a_gpu_has_a_machine_and_keys_of_its_own() -> None:
    processor, gpu = (make_plan(with_engine("auto", device=device, stack=256)) for device in ("cpu", "cuda"))
    for plan, engine in ((processor, "machine"), (gpu, "machine_gpu")):
        assert {cell.engine for cell in plan.cells} == {engine} and all(has_machine(plan))
    assert not any(has_machine(processor, "gpu/instructions")) and all(has_machine(gpu, "gpu/instructions"))
    assert {cell.key for cell in processor.cells}.isdisjoint(cell.key for cell in gpu.cells)


@pytest.mark.parametrize(
    ("stack", "width", "why"),
    [
        (32, 48, "compute.stack: 32; on a GPU the machine pays from 128 networks at once"),
        (256, 256, "width 256; on a GPU the machine pays up to 128"),
    ],
)
def test_where_the_machine_does_not_pay_on_a_gpu_autograd_is_recorded_unless_it_is_asked_for(
    stack: int, width: int, why: str
) -> None:
    config = changed("grid/0/width", [width])
    assert set(count_engines(with_engine("auto", config, device="cuda", stack=stack))) == {("plain", why)}
    assert set(count_engines(with_engine("machine", config, device="cuda", stack=stack))) == {("machine_gpu", "")}
