"""Steps on a GPU whose forward and backward passes are recorded once as a CUDA graph and then replayed.

A step of a small network is hundreds of short kernels, which Python starts more slowly than a GPU runs them. A replay starts all of them at
once. Only the passes are recorded, with inputs, targets and the step of dropout in tensors that are filled before each replay. The
optimiser, about twenty kernels on all weights together, runs as usual. So every optimiser is supported, and learning rates, schedules and
stopped members need no special treatment.

What an objective draws is drawn before the replay, into tensors that are filled as well.

A recording is used once it has given, for two steps of dropout, the loss and gradients of the passes that it replaces. Shapes that fail
this check, or cannot be recorded, run without a recording. Only `CudaGraphs` needs a GPU: everything else is tested with a recorder of
operations on the CPU (`tests/train/test_captured.py`). `benchmarks/gpu.sh` tests that class on a GPU.
"""

import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from rankfall.nets.primitives import no_dropout
from rankfall.train.dropout import DeviceDropout
from rankfall.train.members import Members
from rankfall.train.objectives._base import Graded, Objective, Samples

# Objectives that read only inputs, targets and drawn tensors of a batch, so that a recording serves every batch.
REPLAYED = ("classes", "values", "masked_tokens", "prefixes")
SHAPES = 4  # the most shapes of batches that are recorded; each recording keeps the memory of its passes
WARM_UPS = 3  # runs before the recording, in which libraries choose and load their kernels
CAPTURING = threading.Lock()  # stacks of several threads are recorded one after the other
Replay = Callable[[], None]
Record = Callable[[Callable[[], Graded]], tuple[Graded, Replay]]
Draw = Callable[[Samples], Samples]  # see `recipe.make_draw`


@dataclass(frozen=True)
class Recording:
    """Recorded passes that read `inputs`, `targets` and `drawn`, and write their result to `graded` and to the members' `grads`."""

    inputs: Tensor
    targets: Tensor
    drawn: tuple[Tensor, ...]
    graded: Graded
    replay: Replay


class CudaGraphs:
    """A recorder of the kernels that passes start on the GPU. Each replay overwrites the result of the last.

    The recordings of a stack are never replayed at the same time, so they share their memory. If this thread has a stream, that stream
    records. PyTorch has only a few streams, so a new one may belong to another thread, whose copies would then be recorded too.
    """

    def __init__(self) -> None:
        self.pool: Any = None

    def __call__(self, passes: Callable[[], Graded]) -> tuple[Graded, Replay]:
        current = torch.cuda.current_stream()
        aside = torch.cuda.Stream() if current == torch.cuda.default_stream() else current
        aside.wait_stream(current)
        with torch.cuda.stream(aside):
            for _ in range(WARM_UPS):
                passes()
        current.wait_stream(aside)
        self.pool = self.pool or torch.cuda.graph_pool_handle()
        graph = torch.cuda.CUDAGraph()
        with CAPTURING, torch.cuda.graph(graph, self.pool, aside, capture_error_mode="thread_local"):
            graded = passes()
        return graded, graph.replay


class Captured:
    """An engine of `Members` that replays recorded steps."""

    def __init__(self, draw: Draw = lambda batch: batch, record: Record | None = None) -> None:
        self.draw, self.record = draw, record or CudaGraphs()
        self.name = "plain"  # until a step is recorded
        self.recordings: dict[tuple[object, ...], Recording | None] = {}  # None for a shape that cannot be recorded

    def steps_at_once(self, members: int) -> int:
        return 1  # a replay overwrites the result of the previous one

    def steps(self, members: Members, objective: Objective, batches: Sequence[Samples]) -> list[Graded]:
        return [self.step(members, objective, batch) for batch in batches]

    def step(self, members: Members, objective: Objective, batch: Samples) -> Graded:
        batch = self.draw(batch)
        recording = self.find_recording(members, objective, batch)
        if recording is None:
            return members.plain_step(objective, batch)
        fill(recording, batch, members, members.step_count)
        recording.replay()
        members.update(recording.graded.loss)
        return recording.graded

    def grade(self, members: Members, objective: Objective, batch: Samples) -> Graded:
        return objective(members.module, batch)

    def find_recording(self, members: Members, objective: Objective, batch: Samples) -> Recording | None:
        ident = (id(members), objective, batch.inputs.shape, batch.targets.shape, batch.targets is batch.inputs)
        if ident not in self.recordings:
            full = len(self.recordings) >= SHAPES
            self.recordings[ident] = None if full else self.make_recording(members, objective, batch)
        return self.recordings[ident]

    def make_recording(self, members: Members, objective: Objective, batch: Samples) -> Recording | None:
        """Return a recording for batches of this shape, or None if it does not reproduce the passes."""
        inputs = batch.inputs.clone(memory_format=torch.contiguous_format)
        same = batch.targets is batch.inputs
        targets = inputs if same else batch.targets.clone(memory_format=torch.contiguous_format)
        drawn = tuple(tensor.clone(memory_format=torch.contiguous_format) for tensor in batch.drawn or ())
        samples = replace(batch, inputs=inputs, targets=targets, drawn=None if batch.drawn is None else drawn)
        drop = members.dropout or no_dropout

        def passes() -> Graded:
            graded = objective(members.module, samples, drop)
            members.differentiate(graded.loss)
            return replace(graded, loss=graded.loss.detach())

        try:
            graded, replay = self.record(passes)
            recording = Recording(inputs, targets, drawn, graded, replay)
            for step in (members.step_count, members.step_count + 1):
                fill(recording, batch, members, step)
                expected = passes().loss.clone(), members.grads.clone()
                replay()
                if not all(
                    is_close(value, reference) for value, reference in zip((graded.loss, members.grads), expected)
                ):
                    raise RuntimeError("a replay differs from what was recorded")
        except torch.OutOfMemoryError:  # a smaller stack may fit
            raise
        except Exception as error:  # components may do anything in their passes
            warnings.warn(f"steps of this stack are not recorded, which makes them slower: {error}", stacklevel=2)
            return None
        self.name = "captured"
        return recording


def fill(recording: Recording, batch: Samples, members: Members, step: int) -> None:
    """Fill the tensors that differ from one replay to the next."""
    recording.inputs.copy_(batch.inputs)
    if recording.targets is not recording.inputs:
        recording.targets.copy_(batch.targets)
    for recorded, new in zip(recording.drawn, batch.drawn or ()):
        recorded.copy_(new)
    if members.dropout is not None:
        members.dropout.at(step)


def is_close(value: Tensor, expected: Tensor) -> bool:
    """Return whether values agree except for rounding. A mask of another step would change a gradient by a tenth or more."""
    scale = expected.nan_to_num(0.0, 0.0, 0.0).abs().max()
    return bool(((value - expected).abs() <= 1e-3 * scale).logical_or(~expected.isfinite() & ~value.isfinite()).all())


def say_unserved(members: Members, objective: str) -> str:
    """Return why steps on this objective cannot be recorded, or an empty text."""
    if members.device.type != "cuda":
        return "only steps on a GPU are recorded"
    if objective not in REPLAYED:
        return f"the objective {objective} is not one of {', '.join(REPLAYED)}, whose steps can be recorded"
    if members.dropout is not None and not isinstance(members.dropout, DeviceDropout):
        return "masks of dropout come from the processor"
    return ""
