"""A training job around its arithmetic: the store first, checkpoints on signals, memory, failures."""

import math
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers import config
from training_jobs import are_equal, find_records, find_statuses, load_tensors, train

from rankfall.errors import RankfallError
from rankfall.report.rows import cell_row
from rankfall.run.jobs import training as job
from rankfall.run.jobs.engine import Interrupted, describe_failure
from rankfall.run.jobs.measuring import require_rows
from rankfall.run.plan import Plan, make_plan
from rankfall.run.store import Store

pytestmark = pytest.mark.long


def plan_of(**changes: Any) -> Plan:
    return make_plan(config(**({"training": {"epochs": 2, "dropout": 0.1}, "grid": {"seed": "0..3"}} | changes)))


def test_a_second_run_trains_nothing_and_a_new_seed_only_itself(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert "4 cells: 0 in store, 4 to train" in train(plan_of(), store)
    before = load_tensors(plan_of(), store)
    assert "4 cells: 4 in store, 0 to train" in train(plan_of(), store)
    more = plan_of(grid={"seed": "0..4"})
    assert "5 cells: 4 in store, 1 to train" in train(more, store)
    after = load_tensors(more, store)
    assert all(torch.equal(after[key][name], value) for key in before for name, value in before[key].items())


@pytest.mark.parametrize(("step", "engine"), [(1, "machine"), (7, "plain"), (9, "machine")])
def test_sigterm_checkpoints_and_the_next_run_ends_bit_identical(tmp_path: Path, step: int, engine: str) -> None:
    plan = plan_of(compute={"engine": engine}, architecture={"normaliser": "l2", "norm": "rms"})
    undisturbed, store = Store(tmp_path / "a"), Store(tmp_path / "b")
    train(plan, undisturbed)
    with pytest.raises(Interrupted, match=f"SIGTERM at step {step}"):
        train(plan, store, kill_at=step)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    assert not find_records(plan, store)
    assert f"resuming a stack of 4 at step {step}" in train(plan, store)
    assert are_equal(plan, store, undisturbed)
    assert {(record["status"], record["engine"]) for record in find_records(plan, store).values()} == {("done", engine)}
    assert not list((tmp_path / "b" / "checkpoints").glob("*.safetensors"))


def test_what_does_not_fit_is_halved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train_stack, sizes = job.train_stack, []

    def small_machine(cells: Any, *others: Any) -> None:
        sizes.append(len(cells))
        if len(cells) > 2:
            raise torch.OutOfMemoryError("out of memory")
        train_stack(cells, *others)

    monkeypatch.setattr(job, "train_stack", small_machine)
    plan = plan_of(grid={"seed": "0..4"})
    assert "out of memory: halving a stack of 5" in train(plan, Store(tmp_path))
    assert sizes == [5, 2, 3, 1, 2]
    assert find_statuses(plan, Store(tmp_path)) == {"net": {"done"}}


def test_a_failing_cell_is_named_and_the_others_go_on(lab: Path) -> None:
    """A component raises for one setting; once mended outside its source, a new run tries again."""
    (lab / "mylab.py").write_text(
        "import os\n\n\ndef sharp(logits, *, power: float = 1.0):\n"
        "    if power > 2 and not os.path.exists('mended'):\n        raise ValueError('power is too much')\n"
        "    return (power * logits).softmax(-1)\n"
    )
    raw = config(training={"epochs": 1}, grid={"architecture": ["fine", "wild"], "seed": [0, 1]})
    raw["architectures"] = {
        name: {"depth": 1, "width": 8, "normaliser": {"name": "mylab:sharp", "power": power}}
        for name, power in (("fine", 2.0), ("wild", 3.0))
    }
    plan, store = make_plan(raw), Store(lab / "store")
    train(plan, store)
    assert find_statuses(plan, store) == {"fine": {"done"}, "wild": {"failed"}}
    for record in find_records(plan, store).values():
        assert ("ValueError: power is too much" in record["reason"]) == (record["status"] == "failed")
    (lab / "mended").touch()  # no key has whether a file exists
    assert "4 cells: 2 in store, 2 to train" in train(plan, store)
    assert find_statuses(plan, store) == {"fine": {"done"}, "wild": {"done"}}


def test_a_network_whose_outputs_are_no_numbers_is_not_done(lab: Path) -> None:
    """Its accuracy would be that of the first class, which `argmax` of NaN is: 0.2 of 5 classes, a result of no network."""
    (lab / "blows_up_of_a_test.py").write_text("def blows_up(x, branch, depth):\n    return x + 1.0e30 * branch\n")
    parts = {"residual": "blows_up_of_a_test:blows_up", "norm": "none", "depth": 4}
    plan, store = plan_of(training={"epochs": 0}, architecture=parts), Store(lab / "store")
    train(plan, store)
    for record in find_records(plan, store).values():
        assert math.isnan(record["final"]["test"]["loss"])
        assert (record["status"], record["reason"]) == ("diverged", "loss on test not finite after 0 steps")


@pytest.mark.parametrize(("epochs", "splits"), [(0, {"test"}), (1, {"train", "test"})])
def test_an_untrained_network_is_evaluated_on_test_samples_alone(epochs: int, splits: set[str], tmp_path: Path) -> None:
    """A large network would spend minutes on samples that say no more than the others."""
    plan, store = plan_of(training={"epochs": epochs}), Store(tmp_path)
    train(plan, store)
    for cell in plan.cells:
        record = find_records(plan, store)[cell.key]
        row = cell_row(cell, record, (None, "not known"))
        assert set(record["final"]) == splits
        assert math.isnan(row["train_loss"]) == math.isnan(row["train_accuracy"]) == ("train" not in splits)
        assert math.isfinite(row["test_loss"]) and 0 <= row["test_accuracy"] <= 1


def test_a_failure_keeps_its_fix_whole_and_names_the_users_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert describe_failure(RankfallError("x" * 300 + "; fix: say OVERLAP")).endswith("x; fix: say OVERLAP")
    monkeypatch.chdir(tmp_path)
    code = compile("\nfloat(None)\n", str(tmp_path / "mine.py"), "exec")
    with pytest.raises(TypeError) as caught:
        exec(code)
    assert describe_failure(caught.value).endswith(f"({tmp_path / 'mine.py'}:2)")


def test_a_measure_that_returns_no_rows_is_told_what_rows_are() -> None:
    with pytest.raises(RankfallError, match=r"it returns dict; a measure returns a list of rows, each a dict"):
        require_rows({"v": 1.0})
    assert require_rows({"v": float(x)} for x in range(2)) == [{"v": 0.0}, {"v": 1.0}]
