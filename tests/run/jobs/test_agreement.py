"""A training job of the machine: trained as planned, resumed to the bit, and ended by one line where it cannot be or does not agree."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from emulated import Emulated, emulate
from helpers import config

from rankfall.errors import RankfallError
from rankfall.run.jobs.engine import Interrupted, Settings
from rankfall.run.jobs.progress import Progress
from rankfall.run.jobs.training import train_cells
from rankfall.run.plan import Plan, make_plan
from rankfall.run.store import Store

pytest.importorskip("numba")
from rankfall.train.machine import gpu
from rankfall.train.machine.engine import Machined

OWN = """def exact(logits):
    return logits.double().softmax(-1).to(logits.dtype)
"""


class Interrupting(Progress):
    def __init__(self, step: int) -> None:
        super().__init__()
        self.at = step

    def step(self, members: Any, history: Any) -> None:
        if members.step_count == self.at:
            os.kill(os.getpid(), signal.SIGTERM)


def plan_of(normaliser: str) -> Plan:
    changes = {"training": {"epochs": 2, "dropout": 0.1}, "grid": {"seed": "0..2"}}
    return make_plan(
        config(architecture={"normaliser": normaliser, "norm": "rms"}, compute={"engine": "auto"}, **changes)
    )


def train(plan: Plan, store: Store, progress: Progress | None = None) -> dict[str, Any]:
    train_cells(plan.cells, store, Settings(torch.device("cpu")), progress or Progress(), plan.origin)
    return {key: one.record for key, one in store.find_cells([cell.key for cell in plan.cells]).items()}


def tensors(plan: Plan, store: Store) -> list[torch.Tensor]:
    stacks = store.load_cells([cell.key for cell in plan.cells])
    return [value for stack in stacks for _, value in sorted(stack.tensors.items())]


@pytest.mark.long
def test_cells_are_trained_by_the_machine_and_resumed_to_the_bit(tmp_path: Path) -> None:
    plan, whole, broken = plan_of("l2"), Store(tmp_path / "a"), Store(tmp_path / "b")
    assert {cell.engine for cell in plan.cells} == {"machine"}
    records = train(plan, whole)
    assert {(one["status"], one["engine"]) for one in records.values()} == {("done", "machine")} and len(records) == 3
    with pytest.raises(Interrupted):
        train(plan, broken, Interrupting(9))
    train(plan, broken)
    assert all(torch.equal(one, other) for one, other in zip(tensors(plan, whole), tensors(plan, broken), strict=True))


@pytest.mark.long
def test_a_gpu_trains_as_planned_and_resumes_to_the_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its kernels compiled for a processor."""
    emulate(monkeypatch)
    monkeypatch.setattr(gpu, "MachinedOnGpu", Emulated)
    changes = {"training": {"epochs": 2, "dropout": 0.1}, "grid": {"seed": "0..1"}}
    plan = make_plan(config(compute={"engine": "auto", "device": "cuda", "stack": 128}, **changes))
    whole, broken = Store(tmp_path / "a"), Store(tmp_path / "b")
    records = train(plan, whole)
    assert {(one["status"], one["engine"]) for one in records.values()} == {("done", "machine_gpu")}
    with pytest.raises(Interrupted):
        train(plan, broken, Interrupting(3))
    train(plan, broken)
    assert all(torch.equal(one, other) for one, other in zip(tensors(plan, whole), tensors(plan, broken), strict=True))


def test_a_processor_does_not_train_what_is_for_a_gpu(tmp_path: Path) -> None:
    """A job that measures trains what has been lost, and may have no GPU."""
    plan = make_plan(config(compute={"engine": "auto", "device": "cuda", "stack": 128}, training={"epochs": 1}))
    store = Store(tmp_path)
    with pytest.raises(RankfallError, match=r"compute\.device: cuda, but there is no GPU here, and 1 networks"):
        train(plan, store)
    assert not store.find_cells([cell.key for cell in plan.cells])


def check_ended(plan: Plan, store: Store, line: str) -> None:
    with pytest.raises(RankfallError, match=line) as error:
        train(plan, store)
    assert "\n" not in str(error.value) and "engine: plain" in str(error.value) and "TRACED = False" in str(error.value)
    assert not store.find_cells([cell.key for cell in plan.cells])


@pytest.mark.long
def test_what_cannot_be_traced_is_trained_by_autograd_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was before there was a machine: a component that computes in another number format is no error."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "mylab_exact.py").write_text(OWN)
    plan, progress, notes = plan_of("mylab_exact:exact"), Progress(), list[str]()
    assert {cell.engine for cell in plan.cells} == {"machine"}
    monkeypatch.setattr(progress, "note", notes.append)
    records = train(plan, Store(tmp_path / "store"), progress)
    assert {(one["status"], one["engine"]) for one in records.values()} == {("done", "plain")} and len(records) == 3
    assert any("sorting / net / short: trained by autograd" in note and "float64" in note for note in notes)
    (tmp_path / "mylab_exact.py").write_text(OWN + "\nTRACED = False\n")
    plan = plan_of("mylab_exact:exact")
    assert {cell.engine for cell in plan.cells} == {"plain"}


@pytest.mark.long
def test_a_machine_that_does_not_agree_ends_the_job_before_any_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes = Machined.passes

    def wrong(self: Machined, members: Any, batch: Any) -> Any:
        graded = passes(self, members, batch)
        members.grads.mul_(1.001)
        return graded

    monkeypatch.setattr(Machined, "passes", wrong)
    check_ended(plan_of("l2"), Store(tmp_path), "does not agree with autograd: the gradient is 0.001 of its size away")


@pytest.mark.long
def test_what_agrees_is_compared_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later job trains further seeds without another comparison."""
    from rankfall.train.machine import agreement

    plan, store = plan_of("l2"), Store(tmp_path)
    first, *others = plan.cells
    train_cells([first], store, Settings(torch.device("cpu")), Progress(), plan.origin)
    monkeypatch.setattr(agreement, "disagreement", lambda *given: "compared again")
    train_cells(others, store, Settings(torch.device("cpu")), Progress(), plan.origin)
    assert {one.status for one in store.find_cells([cell.key for cell in plan.cells]).values()} == {"done"}


SOFTPICK = {"normaliser": "softpick", "norm": "layer", "norm_placement": "pre"}
LARGE = {"norm": "none", "init": {"name": "normal", "deviation": 0.3}}


@pytest.mark.slow
@pytest.mark.parametrize("parts", [SOFTPICK, LARGE], ids=["softpick", "large"])
def test_a_network_whose_gradient_is_mostly_rounding_is_trained(parts: dict[str, Any], tmp_path: Path) -> None:
    """24 layers of softpick at birth divide by scores that are nearly 0: by a last bit more or less of its weights, autograd itself ends
    anywhere between .0005 and .1 of the gradient's size from the true one. With large weights and without norms, it is many times its size.
    """
    plan = make_plan(
        config(
            task={"train": 1000, "test": 200, "length": 8, "symbols": 10},
            architecture={
                **parts,
                "residual": "add",
                "mlp": "gelu",
                "depth": 24,
                "width": 16,
                "heads": 2,
                "mlp_width": 32,
            },
            training={"epochs": 1, "batch": 40, "lr": 3e-3, "optimizer": "adam"},
            compute={"engine": "auto"},
        )
    )
    assert {cell.engine for cell in plan.cells} == {"machine"}
    assert [one["status"] for one in train(plan, Store(tmp_path)).values()] in (["done"], ["diverged"])
