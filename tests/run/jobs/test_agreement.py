"""A training job and its engine: trained as planned, or ended by one line where it does not agree with autograd; and its curves."""

import random
from pathlib import Path
from typing import Any

import pytest
import torch
from emulated import Emulated, emulate
from helpers import config
from samples import seed_of
from training_jobs import Listener, are_equal, find_records, find_statuses, train

from rankfall.errors import RankfallError
from rankfall.run.jobs.checks import check_agreement
from rankfall.run.jobs.engine import Interrupted, Settings
from rankfall.run.jobs.training import TrainingWork
from rankfall.run.plan import Plan, make_plan
from rankfall.run.plan.cell import Cell
from rankfall.run.plan.engines import MACHINE
from rankfall.run.store import Store
from rankfall.train.loop import means

pytest.importorskip("numba")
from rankfall.train.machine import agreement, gpu
from rankfall.train.machine.engine import Machined

ROOT = Path(__file__).parents[3]
ON_GPU = {"engine": "auto", "device": "cuda", "stack": 128}
EXACT = "def exact(logits):\n    return logits.double().softmax(-1).to(logits.dtype)\n"


def plan_of(normaliser: str) -> Plan:
    architecture = {"normaliser": normaliser, "norm": "rms"}
    return make_plan(config(architecture=architecture, training={"epochs": 2, "dropout": 0.1}, grid={"seed": "0..2"}))


@pytest.mark.long
def test_a_gpu_trains_as_planned_and_resumes_to_the_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its kernels compiled for a processor."""
    emulate(monkeypatch)
    monkeypatch.setattr(gpu, "MachinedOnGpu", Emulated)
    plan = make_plan(config(compute=ON_GPU, training={"epochs": 2, "dropout": 0.1}, grid={"seed": "0..1"}))
    whole, broken = Store(tmp_path / "a"), Store(tmp_path / "b")
    train(plan, whole)
    records = find_records(plan, whole).values()
    assert {(record["status"], record["engine"]) for record in records} == {("done", "machine_gpu")}
    with pytest.raises(Interrupted):
        train(plan, broken, kill_at=3)
    train(plan, broken)
    assert are_equal(plan, broken, whole)


def test_a_processor_does_not_train_what_is_for_a_gpu(tmp_path: Path) -> None:
    """A job that measures trains what has been lost, and may have no GPU."""
    plan = make_plan(config(compute=ON_GPU, training={"epochs": 1}))
    with pytest.raises(RankfallError, match=r"compute\.device: cuda, but there is no GPU here, and 1 networks"):
        train(plan, Store(tmp_path))
    assert not find_records(plan, Store(tmp_path))


@pytest.mark.long
def test_what_cannot_be_traced_is_trained_by_autograd_and_said(lab: Path) -> None:
    """As it was before there was a machine: a component that computes in another number format is no error."""
    (lab / "mylab_exact.py").write_text(EXACT)
    plan, store = plan_of("mylab_exact:exact"), Store(lab / "store")
    assert {cell.engine for cell in plan.cells} == {"machine"}
    notes = train(plan, store)
    assert {record["engine"] for record in find_records(plan, store).values()} == {"plain"}
    assert find_statuses(plan, store) == {"net": {"done"}}
    assert any("sorting / net / short: trained by autograd" in note and "float64" in note for note in notes)
    (lab / "mylab_exact.py").write_text(EXACT + "\nTRACED = False\n")
    assert {cell.engine for cell in plan_of("mylab_exact:exact").cells} == {"plain"}


@pytest.mark.long
def test_a_machine_that_does_not_agree_ends_the_job_before_any_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes, plan = Machined.passes, plan_of("l2")

    def add_error(self: Machined, members: Any, batch: Any) -> Any:
        graded = passes(self, members, batch)
        members.grads.mul_(1.001)
        return graded

    monkeypatch.setattr(Machined, "passes", add_error)
    with pytest.raises(
        RankfallError, match=r"not agree with autograd: the gradient is 0\.001 of its size away"
    ) as error:
        train(plan, Store(tmp_path))
    assert "\n" not in str(error.value) and "engine: plain" in str(error.value) and "TRACED = False" in str(error.value)
    assert not find_records(plan, Store(tmp_path))


@pytest.mark.long
def test_what_agrees_is_compared_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later job trains further seeds without another comparison."""
    plan, store = plan_of("l2"), Store(tmp_path)
    TrainingWork(store, Settings(torch.device("cpu")), Listener(), plan.origin).train_cells(plan.cells[:1])
    monkeypatch.setattr(agreement, "disagreement", lambda *arguments: "compared again")
    train(plan, store)
    assert find_statuses(plan, store) == {"net": {"done"}}


SOFTPICK = {"normaliser": "softpick", "norm": "layer", "norm_placement": "pre"}
LARGE = {"norm": "none", "init": {"name": "normal", "deviation": 0.3}}
DEEP = {"residual": "add", "mlp": "gelu", "depth": 24, "width": 16, "heads": 2, "mlp_width": 32}


@pytest.mark.slow
@pytest.mark.parametrize("parts", [SOFTPICK, LARGE], ids=["softpick", "large"])
def test_a_network_whose_gradient_is_mostly_rounding_is_trained(parts: dict[str, Any], tmp_path: Path) -> None:
    """24 layers of softpick at birth divide by scores that are nearly 0: by a last bit more or less of its weights, autograd itself ends
    anywhere between .0005 and .1 of the gradient's size from the true one. With large weights and without norms, it is many times its size.
    """
    task = {"train": 1000, "test": 200, "length": 8, "symbols": 10}
    training = {"epochs": 1, "batch": 40, "lr": 3e-3, "optimizer": "adam"}
    plan = make_plan(config(task=task, architecture=DEEP | parts, training=training))
    assert {cell.engine for cell in plan.cells} == {"machine"}
    train(plan, Store(tmp_path))
    assert find_statuses(plan, Store(tmp_path))["net"] <= {"done", "diverged"}


SKIPPED = ("prediction_tenth", "mlm_gpu")  # networks that are some of prediction's, and those of a GPU
PRESETS = [path for path in sorted((ROOT / "workflow" / "presets").glob("*.yaml")) if path.stem not in SKIPPED]
MOST = 5  # groups of a configuration: the one of the most work, and others with every version of the sources


def draw_groups(path: Path) -> list[Cell]:
    """Return the first cells of some groups that the machine trains."""
    firsts: dict[str, Cell] = {}
    for cell in make_plan(path).cells:
        if cell.engine == MACHINE and cell.training.epochs:
            firsts.setdefault(cell.group, cell)
    cells = sorted(firsts.values(), key=lambda cell: (cell.architecture.depth * cell.architecture.width**2, cell.key))
    others = random.Random(f"{seed_of()} {path.name}").sample(cells[:-1], max(min(MOST, len(cells)) - 1, 0))
    return cells[-1:] + others


@pytest.mark.slow
@pytest.mark.parametrize("path", [ROOT / "config.yaml", *PRESETS], ids=lambda path: path.stem)
def test_the_machine_agrees_with_autograd_on_networks_of_a_preset(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At their own sizes: what rounding makes of deep or wide networks shows only here."""
    monkeypatch.chdir(ROOT)
    notes: list[str] = []
    for cell in draw_groups(path):
        check_agreement(cell, Store(tmp_path), torch.device("cpu"), notes.append)
    assert not [note for note in notes if "could not check" in note]


def test_curves_of_cells_are_those_of_their_histories(tmp_path: Path) -> None:
    """For TensorBoard, with the numbers of the table `training`."""
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    plan = make_plan(config(training={"epochs": 3}, grid={"seed": "0..1"}))
    store, folder = Store(tmp_path / "store"), tmp_path / "curves"
    train(plan, store, curves=folder)
    (stack,) = store.load_cells([cell.key for cell in plan.cells])
    history = {name.removeprefix("history."): value for name, value in stack.tensors.items() if "history." in name}
    assert len(list(folder.glob("*/*"))) == 2
    for member, key in enumerate(stack.keys):
        (file,) = folder.glob(f"*/*({key[:6]})")
        curves = events.EventAccumulator(str(file)).Reload()
        drawn = {(tag, point.step): point.value for tag in curves.Tags()["scalars"] for point in curves.Scalars(tag)}
        kept = {(f"{metric}/{split}", epoch): value for epoch, split, metric, value in means(history, member)}
        assert drawn == pytest.approx(kept)
