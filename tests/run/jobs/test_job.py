"""A training job around its arithmetic: the store first, checkpoints on signals, memory, failures."""

import math
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers import config

from rankfall.errors import RankfallError
from rankfall.report.rows import cell_row
from rankfall.run.jobs import training as job
from rankfall.run.jobs.engine import Interrupted, Settings, describe_failure
from rankfall.run.jobs.measuring import require_rows
from rankfall.run.jobs.training import train_cells
from rankfall.run.plan import Plan, make_plan
from rankfall.run.store import Store
from rankfall.train.progress import Progress

pytestmark = pytest.mark.long


class Quiet(Progress):
    """Says nothing, remembers what was said, and can send this process a signal at a step."""

    def __init__(self, kill_at: int | None = None) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.kill_at = kill_at

    def note(self, text: str) -> None:
        self.lines.append(text)

    def step(self, members: Any, history: Any) -> None:
        if members.step_count == self.kill_at:
            os.kill(os.getpid(), signal.SIGTERM)


def run(plan: Plan, store: Store, progress: Progress | None = None, **settings: Any) -> Quiet:
    progress = progress or Quiet()
    train_cells(plan.cells, store, Settings(torch.device("cpu"), **settings), progress, plan.origin)
    assert isinstance(progress, Quiet)
    return progress


def weights(plan: Plan, store: Store) -> dict[str, torch.Tensor]:
    found = {}
    for stack in store.load_cells([cell.key for cell in plan.cells]):
        for member, key in enumerate(stack.keys):
            trained = [
                value[member].flatten() for name, value in stack.tensors.items() if not name.startswith("history")
            ]
            found[key] = torch.cat(trained)
    return found


def plan_of(**changes: Any) -> Plan:
    return make_plan(config(**({"training": {"epochs": 2, "dropout": 0.1}, "grid": {"seed": "0..3"}} | changes)))


def test_a_second_run_trains_nothing_and_a_new_seed_only_itself(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert run(plan_of(), store).lines[0] == "4 cells: 0 in store, 4 to train"
    before = weights(plan_of(), store)
    assert run(plan_of(), store).lines[0] == "4 cells: 4 in store, 0 to train"
    more = plan_of(grid={"seed": "0..4"})
    assert run(more, store).lines[0] == "5 cells: 4 in store, 1 to train"
    after = weights(more, store)
    assert all(torch.equal(after[key], value) for key, value in before.items())


@pytest.mark.parametrize("step", [1, 7, 9])
def test_sigterm_checkpoints_and_the_next_run_ends_bit_identical(tmp_path: Path, step: int) -> None:
    plan = plan_of()
    undisturbed, store = Store(tmp_path / "a"), Store(tmp_path / "b")
    run(plan, undisturbed)
    with pytest.raises(Interrupted, match=f"SIGTERM at step {step}"):
        run(plan, store, Quiet(kill_at=step))
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    assert store.find_cells([cell.key for cell in plan.cells]) == {}
    assert f"resuming a stack of 4 at step {step}" in run(plan, store).lines
    expected, got = weights(plan, undisturbed), weights(plan, store)
    assert expected.keys() == got.keys()
    assert all(torch.equal(expected[key], got[key]) for key in expected)
    assert not list((tmp_path / "b" / "checkpoints").glob("*.safetensors"))


def test_what_does_not_fit_is_halved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, sizes = job.train_stack, []

    def small_machine(cells: Any, *rest: Any) -> None:
        sizes.append(len(cells))
        if len(cells) > 2:
            raise torch.OutOfMemoryError("out of memory")
        whole(cells, *rest)

    monkeypatch.setattr(job, "train_stack", small_machine)
    plan = plan_of(grid={"seed": "0..4"})
    progress = run(plan, Store(tmp_path))
    assert sizes == [5, 2, 3, 1, 2]
    assert "out of memory: halving a stack of 5" in progress.lines
    assert {found.status for found in Store(tmp_path).find_cells([c.key for c in plan.cells]).values()} == {"done"}


def test_a_failing_cell_is_named_and_the_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A component of the user's own that raises for one setting; once mended outside its source, a new run tries again."""
    (tmp_path / "mylab.py").write_text(
        "import os\n\n\ndef sharp(logits, *, power: float = 1.0):\n"
        f"    if power > 2 and not os.path.exists({str(tmp_path / 'mended')!r}):\n        raise ValueError('power is too much')\n"
        "    return (power * logits).softmax(-1)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    raw = config(training={"epochs": 1})
    raw["architectures"] = {
        "fine": {"depth": 1, "width": 8, "normaliser": {"name": "mylab:sharp", "power": 2.0}},
        "wild": {"depth": 1, "width": 8, "normaliser": {"name": "mylab:sharp", "power": 3.0}},
    }
    raw["grid"][0] |= {"architecture": ["fine", "wild"], "seed": [0, 1]}
    plan, store = make_plan(raw), Store(tmp_path / "store")
    run(plan, store)
    found = store.find_cells([cell.key for cell in plan.cells])
    for cell in plan.cells:
        record = found[cell.key].record
        assert record["status"] == ("done" if cell.architecture.name == "fine" else "failed")
        assert ("ValueError: power is too much" in record["reason"]) == (record["status"] == "failed")
    (tmp_path / "mended").touch()  # whether a file exists is seen by nobody
    assert run(plan, store).lines[0] == "4 cells: 2 in store, 2 to train"
    assert {one.status for one in store.find_cells([cell.key for cell in plan.cells]).values()} == {"done"}


def test_a_damaged_checkpoint_costs_its_training_only(tmp_path: Path) -> None:
    plan, store = plan_of(), Store(tmp_path)
    with pytest.raises(Interrupted):
        run(plan, store, Quiet(kill_at=9))
    (checkpoint,) = (tmp_path / "checkpoints").glob("*.safetensors")
    raw = bytearray(checkpoint.read_bytes())
    raw[len(raw) // 2] ^= 1
    checkpoint.write_bytes(raw)
    progress = run(plan, store)
    assert not any("resuming" in line for line in progress.lines)
    assert {one.status for one in store.find_cells([c.key for c in plan.cells]).values()} == {"done"}


def test_a_job_of_the_machine_ends_bit_identical_after_a_signal_and_says_who_computed(tmp_path: Path) -> None:
    pytest.importorskip("numba")
    plan = plan_of(compute={"engine": "auto"})
    undisturbed, store = Store(tmp_path / "a"), Store(tmp_path / "b")
    run(plan, undisturbed)
    with pytest.raises(Interrupted):
        run(plan, store, Quiet(kill_at=9))
    run(plan, store)
    one, other = weights(plan, undisturbed), weights(plan, store)
    assert one.keys() == other.keys() and all(torch.equal(one[key], other[key]) for key in one)
    found = store.find_cells([cell.key for cell in plan.cells], {cell.group for cell in plan.cells})
    assert {record.record["engine"] for record in found.values()} == {"machine"}


def test_a_network_whose_outputs_are_no_numbers_is_not_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its accuracy would be that of the first class, which `argmax` of NaN is: 0.2 of 5 classes, a result of no network."""
    monkeypatch.syspath_prepend(tmp_path)
    text = "def blows_up(x, branch, depth):\n    return x + 1.0e30 * branch\n"
    (tmp_path / "blows_up_of_a_test.py").write_text(text)
    plan = plan_of(
        training={"epochs": 0}, architecture={"residual": "blows_up_of_a_test:blows_up", "norm": "none", "depth": 4}
    )
    store = Store(tmp_path / "store")
    run(plan, store)
    for found in store.find_cells([cell.key for cell in plan.cells]).values():
        assert math.isnan(found.record["final"]["test"]["loss"])
        assert found.record["reason"] == "loss on test not finite after 0 steps"
        assert found.record["status"] == "diverged"


@pytest.mark.parametrize(("epochs", "told"), [(0, {"test"}), (1, {"train", "test"})])
def test_an_untrained_network_is_evaluated_on_what_is_not_for_training(
    epochs: int, told: set[str], tmp_path: Path
) -> None:
    """A large network would spend minutes on samples that say no more than the others."""
    plan, store = plan_of(training={"epochs": epochs}), Store(tmp_path)
    run(plan, store)
    for cell in plan.cells:
        record = store.find_cells([cell.key])[cell.key].record
        row = cell_row(cell, record, (None, "not known"))
        assert set(record["final"]) == told
        assert math.isnan(row["train_loss"]) == math.isnan(row["train_accuracy"]) == ("train" not in told)
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
    with pytest.raises(RankfallError, match="it returns a dict .*; a measure returns a list of rows, each a dict"):
        require_rows({"v": 1.0})
