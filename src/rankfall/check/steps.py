"""Change a model's inputs step by step, and find the first row of its states and the first step of its outputs that changes with each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from rankfall.check.equal import change_entry, change_named, named_inputs
from rankfall.check.recording import RecordedStream
from rankfall.streams.arguments import in_float64
from rankfall.streams.axes import differs
from rankfall.streams.editor import PassResult, run_through
from rankfall.streams.flow import Edits
from rankfall.streams.record import tensors_in

Axis = tuple[
    tuple[Any, ...], int, int, int
]  # path of an output, its axes, one of them behind the samples, and its size


@dataclass
class StepTrial:
    """Hold what changes with single steps of an input, or with rows of the first state (the name is then empty)."""

    name: str
    steps: int
    rows: dict[int, list[Tensor]] = field(default_factory=dict)  # step -> rows (T,) of each state that change
    outputs: dict[Axis, dict[int, list[int]]] = field(default_factory=dict)  # step -> indices that change along an axis
    changed: set[tuple[Any, ...]] = field(default_factory=set)  # paths of outputs of any shape that change

    @property
    def entered(self) -> bool:
        """Return whether the first state of the stream changes."""
        return any(bool(rows[0].any()) for rows in self.rows.values())

    def see(self, recording: RecordedStream, step: int, after: PassResult) -> None:
        """Compare the states and outputs of a pass in which a step differs with those of the recording."""
        to_rows, hidden = recording.flow.layout.to_rows, recording.hidden  # (S, T)

        def read(changes: Tensor) -> Tensor:  # (S, T, ...)
            if hidden is None or changes.shape[:2] != hidden.shape:
                return changes
            return changes & ~hidden.view(*hidden.shape, *[1] * (changes.dim() - 2))

        pairs = zip(map(to_rows, after.states), recording.states)
        self.rows[step] = [read(differs(state, before)).any(-1).any(0) for state, before in pairs]
        samples = recording.report.samples
        before = dict(tensors_in(recording.output))
        for path, output in tensors_in(after.output):
            if path not in before or output.shape != before[path].shape or not output.is_floating_point():
                continue
            changes = differs(output, before[path])
            if bool(changes.any()):
                self.changed.add(path)
            if changes.dim() < 2:
                continue
            first = tokens_first(recording, self.steps)
            if len(changes) == samples * self.steps:  # (B * T, V)
                changes = changes.unflatten(0, (self.steps, samples) if first else (samples, self.steps))
            if first and changes.shape[:2] == (self.steps, samples):  # (T, B, V)
                changes = changes.transpose(0, 1)
            one_sign = bool((output <= 0).all() | (output >= 0).all())
            if len(changes) != samples or (changes.dim() == 2 and one_sign):
                continue  # a loss for each token reads the next one
            changes = read(changes)
            for axis in range(1, changes.dim()):
                size = changes.shape[axis]
                if size > 1 and (size % self.steps == 0 or self.steps % size == 0):
                    along = changes.movedim(axis, 0).flatten(1).any(1).nonzero().flatten().tolist()
                    self.outputs.setdefault((path, changes.dim(), axis, size), {})[step] = along

    def leak(self, others: set[int], strict: bool, groups: int) -> tuple[int, int, int] | None:
        """Return an output step that changes with a later step, the number of output steps, and that later step; or None.

        An axis holds steps if its first change is not the same for all steps: all logits change with each step, and a prefix or a code of
        all tokens changes all outputs. If `strict`, the second of three axes holds steps if it has as many. Steps of outputs that `others`,
        inputs with as many steps, go with are left out. Outputs are compared in `groups` of steps.
        """
        seen = set()
        for (path, dims, axis, size), changes in self.outputs.items():
            first = {step: along[0] for step, along in changes.items() if along}
            varies, strict_axis = len(set(first.values())) > 1, strict and (dims, axis, size) == (3, 1, self.steps)
            if path in seen or (size != self.steps and size in others) or not (varies or strict_axis):
                continue
            seen.add(path)  # of several axes, the first that varies holds the steps
            for step, at in first.items():
                if at * groups // size < step * groups // self.steps:
                    return at, size, step
        return None


def tokens_first(recording: RecordedStream, steps: int) -> bool:
    """Return whether an input holds steps along its first axis, and samples along its second."""
    samples = recording.report.samples
    shapes = [tensor.shape[:2] for tensor in named_inputs(recording.examined.arguments).values()]
    return samples != steps and (steps, samples) in shapes and (samples, steps) not in shapes


def step_inputs(recording: RecordedStream) -> Iterator[tuple[str, int, int]]:
    """Yield the name of each input that holds steps, the axis of its steps and their number."""
    samples = recording.report.samples
    for name, tensor in named_inputs(recording.examined.arguments).items():
        axis = int(not tokens_first(recording, len(tensor)))
        if tensor.shape[1 - axis] == samples and tensor.dtype != torch.bool and tensor.shape[axis] > 2:
            yield name, axis, tensor.shape[axis]


def try_input(
    recording: RecordedStream, name: str, axis: int, steps: int, compute: Callable[..., Any] = in_float64
) -> StepTrial:
    """Change the last step of an input, one in the middle and the second one."""
    trial = StepTrial(name, steps)
    avoid = special_numbers(recording)
    for step in dict.fromkeys((steps - 1, steps // 2, 1)):
        changed = change_named(recording.examined.arguments, {name}, lambda x: change_step(x, step, axis, avoid))  # noqa: B023
        assert changed is not None
        trial.see(
            recording, step, run_through(recording.examined.model, changed, recording.flow, Edits(compute=compute))
        )
    return trial


def try_rows(recording: RecordedStream) -> StepTrial:
    """Change rows of the first state."""
    flow, tokens = recording.flow, recording.report.tokens
    trial = StepTrial("", tokens)
    for step in dict.fromkeys((tokens - 1, tokens // 2, 1)):
        edits = Edits(enter=lambda x: change_entry(flow, x, lambda rows: change_step(rows, step, 1, [])))  # noqa: B023
        trial.see(recording, step, run_through(recording.examined.model, recording.examined.arguments, flow, edits))
    return trial


def change_step(tensor: Tensor, step: int, axis: int, avoid: list[int]) -> Tensor:
    """Return a copy with one step changed in each sample: to the next number of the tensor, or to another step, reversed, of vectors."""
    rows = tensor.clone().movedim(axis, 0)
    before = rows[step].clone()
    if tensor.is_floating_point():
        rows[step] = rows[-1 if step == 0 else 0].flip(-1) if tensor.dim() > 2 else rows[-1 if step == 0 else 0]
        if torch.equal(rows[step], before):
            rows[step] = before + 1
    else:
        choices = [number for number in tensor.unique().tolist() if number not in avoid]
        following = dict(zip(choices, choices[1:] + choices[:1]))
        rows[step] = before.clone().apply_(lambda number: following.get(number, number))
    return rows.movedim(0, axis)


def special_numbers(recording: RecordedStream) -> list[int]:
    """Return the numbers that may stand for padding: the `padding_idx` of embeddings, and the tokens that attention hides."""
    numbers = {module.padding_idx for module in recording.examined.model.modules() if isinstance(module, nn.Embedding)}
    numbers.add(getattr(getattr(recording.examined.model, "config", None), "pad_token_id", None))
    hidden = recording.hidden
    if hidden is not None and bool(hidden.any()):
        for tensor in named_inputs(recording.examined.arguments).values():
            if tensor.shape == hidden.shape and not tensor.is_floating_point():
                numbers |= set(tensor[hidden].tolist())
    return [number for number in numbers if number is not None]
