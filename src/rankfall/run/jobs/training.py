"""A training job: check the components of the cells that the store lacks, train these cells in stacks, and store each stack when it
ends.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from rankfall.disk import StoreError
from rankfall.errors import NoKernel, describe_error
from rankfall.run.guards import Unproved, check_files, check_job
from rankfall.run.jobs.cells import Datasets, datasets_of, shape_of, stack_data
from rankfall.run.jobs.checks import check_cells, check_engines
from rankfall.run.jobs.engine import (
    Interrupted,
    Settings,
    StackCheckpoint,
    Stopped,
    describe_failure,
    is_out_of_memory,
    machine_of,
    members_at_once,
    raise_if_stopped,
    stack_id,
    stacks,
    stop_signals,
)
from rankfall.run.jobs.processor import describe_machine, peak_megabytes
from rankfall.run.jobs.progress import Curves, Progress
from rankfall.run.jobs.workers import Workers, read_stacks
from rankfall.run.plan.cell import Cell
from rankfall.run.plan.engines import MACHINES, PLAIN
from rankfall.run.store import Store
from rankfall.tasks._dataset import TEST, TRAIN
from rankfall.train import recipe
from rankfall.train.data import steps_per_epoch
from rankfall.train.device import separate_large_blocks
from rankfall.train.loop import StepClock, TrainingHistory, add_prefix, evaluate, fit, means_of, restore, state_of
from rankfall.train.members import DIVERGED, RUNNING, STOPPED, Members

TRAINING = "training"  # the only part of a stack's checkpoint


@dataclass
class TrainingWork:
    """The work of a training job: one stack at a time, resumed from its checkpoint.

    A stack that fails is halved until a failing cell is alone. `origin` returns the columns of a record on a cell's origin."""

    store: Store
    settings: Settings
    progress: Progress
    origin: Callable[[Cell], dict[str, Any]]
    stopped: Stopped = lambda: None
    datasets: Datasets = field(default_factory=dict)  # data that the checks read
    untraced: set[str] = field(default_factory=set)  # groups that are planned for the machine, which cannot trace them

    def train_cells(self, cells: Sequence[Cell]) -> None:
        """Train the missing cells, so that the store has every cell as done, diverged or failed.

        A cell whose component cannot be used is failed, with the reason."""
        store, settings, progress = self.store, self.settings, self.progress
        stored = store.find_cells([cell.key for cell in cells], {cell.group for cell in cells})
        missing = [cell for cell in cells if cell.key not in stored or stored[cell.key].status == "failed"]
        with stop_signals() as self.stopped:
            refused = check_cells(missing, store, settings.device, progress.note, self.datasets) if missing else {}
            raise_if_stopped(self.stopped)
            for stack in stacks([cell for cell in missing if cell.key in refused], settings.stack):
                self.save_failed(stack, [refused[cell.key] for cell in stack], 0.0)
            progress.begin(total=len(cells) - len(refused), in_store=len(cells) - len(missing))
            served = [cell for cell in missing if cell.key not in refused]
            chosen = list(stacks(served, lambda cell: members_at_once(cell, settings)))
            if settings.workers > 1 and len(chosen) > 1:
                counts = lambda: (progress.done, progress.total)  # noqa: E731
                Workers(settings, self.stopped, counts, progress.cells_done).compute(chosen)
            else:
                for stack in chosen:
                    self.train(stack)
        progress.end()

    def serve(self, cells: Sequence[Cell]) -> None:
        """Train, as a worker, the stacks that a job sends. The job has checked their components."""
        with stop_signals(worker=True) as self.stopped:
            check_engines(cells, self.settings.device)
            for stack, self.progress.done, self.progress.total in read_stacks(cells):
                self.train(stack)

    def train(self, cells: list[Cell]) -> None:
        """Train and store a stack. If it fails, store a single cell as failed, or train the halves of a larger stack."""
        raise_if_stopped(self.stopped)
        began = time.monotonic()
        failure: Exception
        try:
            self.train_by_engine(cells)
            return
        except (Interrupted, StoreError, Unproved, NoKernel):  # a full disk is not the cells' fault
            raise
        except Exception as error:  # a component may raise anything
            check_files()  # first: an edit in progress may be the cause
            reason, full, failure = describe_failure(error), is_out_of_memory(error), error
        self.store.drop_checkpoint(stack_id(cell.key for cell in cells))
        if len(cells) == 1:
            self.progress.note(f"failed: {cells[0].key}: {reason}")
            self.save_failed(cells, [reason], time.monotonic() - began)
            self.progress.cells_done(1)
            return
        failure.__traceback__ = None  # its frames hold the stack's tensors
        self.progress.note(f"{'out of memory' if full else reason}: halving a stack of {len(cells)}")
        self.train(cells[: len(cells) // 2])
        self.train(cells[len(cells) // 2 :])

    def train_by_engine(self, cells: list[Cell]) -> None:
        """Train a stack by the planned engine, or by autograd if the machine cannot trace it.

        The choice is the same on any computer, since it depends on the code alone."""
        engine, group = cells[0].engine, cells[0].group
        if engine in MACHINES and group not in self.untraced:
            from thousandfold.graph import Untraceable

            try:
                train_stack(cells, engine, self)
                return
            except Untraceable as error:
                self.untraced.add(group)
                self.progress.note(
                    f"{' / '.join(cells[0].labels)}: trained by autograd, since the machine cannot trace it: "
                    f"{describe_error(error)}; `TRACED = False` in the file of the component that does it lets the plan say so"
                )
            self.store.drop_checkpoint(stack_id(cell.key for cell in cells))
        train_stack(cells, PLAIN, self)

    def save_failed(self, cells: list[Cell], reasons: list[str], seconds: float) -> None:
        """Store cells of one group as failed, with the reasons."""
        about = {**describe_machine(torch.device("cpu")), "status": "failed", "seconds": seconds}
        records = [{**self.origin(cell), **about, "reason": reason} for cell, reason in zip(cells, reasons)]
        self.store.save_stack(cells[0].group, [cell.key for cell in cells], {"none": torch.zeros(len(cells))}, records)


def train_stack(cells: list[Cell], engine: str, job: TrainingWork) -> None:
    """Train cells of one group from the beginning or from their checkpoint, evaluate and store them."""
    first, training, device, progress = cells[0], cells[0].training, job.settings.device, job.progress
    # Data and networks before the first step.
    datasets = datasets_of(cells, job.store, job.datasets)
    shape, data = shape_of(first, datasets[0]), stack_data(cells, datasets, device)
    members = recipe.initial(
        first.architecture, shape, [cell.seed for cell in cells], [cell.training for cell in cells], device
    )
    if engine in MACHINES:
        check_job()  # programs are kept under the planned digests, so an edited text must not be traced
        members.engine = machine_of(engine)(members, first.architecture, shape, training, first.code)
    history, clock = TrainingHistory(len(cells), training.epochs, device), StepClock(device)
    checkpoint = StackCheckpoint(job.store, [cell.key for cell in cells], job.settings.checkpoint_seconds, job.stopped)
    if (state := checkpoint.load(TRAINING)) is not None:
        restore(members, history, state)
        progress.note(f"resuming a stack of {len(members)} at step {members.step_count}")

    objective, course = recipe.objective(training), recipe.course(training)
    steps = steps_per_epoch(data.samples, course.batch)
    curves = Curves(job.settings.curves, cells, members.step_count // steps)

    def after_step() -> None:
        progress.step(members, history)
        curves.add(history, members.step_count // steps)
        checkpoint.after_step(TRAINING, members.step_count, lambda: state_of(members, history))

    progress.begin_stack(members, steps, course.epochs)
    with recipe.products(training, device):
        fit(members, data, objective, course, history, after_step, clock)
        curves.close()
        with separate_large_blocks():
            # To an untrained network, training samples are like test samples, and a large network would spend minutes on them.
            untrained = not training.epochs and TEST in data.splits
            splits = [name for name in data.splits if name != TRAIN or not untrained]
            final = {split: means_of(evaluate(members, data, objective, split)) for split in splits}
    step = clock.step_seconds
    shared = {
        "seconds": checkpoint.seconds / len(cells),
        "megabytes": peak_megabytes(),
        "device": str(device),
        "engine": members.engine.name if members.engine else "plain",
        "dtype": training.dtype,
        "threads": torch.get_num_threads(),
        "stack": checkpoint.identity,
        "together": len(cells),
        "step_ms": None if step is None else 1000 * step / len(cells),
        **describe_machine(device),
    }
    records = []
    for k, cell in enumerate(cells):
        metrics = {split: {name: float(value[k]) for name, value in values.items()} for split, values in final.items()}
        ending = describe_ending(members, k, metrics)
        records.append({**job.origin(cell), **shared, **ending, "chance": float(data.chance[k]), "final": metrics})
    check_job()
    tensors = members.tensors() | add_prefix("history", history.tensors)
    job.store.save_stack(first.group, checkpoint.keys, tensors, records)
    checkpoint.drop()
    progress.cells_done(len(cells))


def describe_ending(members: Members, k: int, final: dict[str, dict[str, float]]) -> dict[str, Any]:
    """Return the status, reason and number of steps of a member.

    A member that diverged in no step may still have a loss that is not finite: at initialisation, after its last step, or on the test
    set."""
    status, steps = int(members.status[k]), int(members.last_step[k])
    reasons = {
        RUNNING: "",
        STOPPED: "stop_loss reached",
        DIVERGED: f"loss or gradient not finite at step {steps + 1}",
    }
    not_finite = [split for split, metrics in final.items() if not math.isfinite(metrics["loss"])]
    if status != DIVERGED and not_finite:
        first = min(not_finite, key=lambda split: (split != TRAIN, split))  # in a fixed order of splits
        status, reasons[DIVERGED] = DIVERGED, f"loss on {first} not finite after {steps} steps"
    return {"status": "diverged" if status == DIVERGED else "done", "reason": reasons[status], "steps": steps}
