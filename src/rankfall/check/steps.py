"""Change a model's inputs step by step, and find the first row of its states and the first step of its outputs that changes with each.

Operations over tokens may be held meanwhile, to find out what makes a causal model read ahead.
"""

from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from rankfall.check.passes import change_entry, change_named, changed_outputs, changed_rows, named_inputs
from rankfall.check.recording import RecordedStream
from rankfall.errors import RankfallError
from rankfall.streams.arguments import in_float64
from rankfall.streams.axes import differs
from rankfall.streams.editor import PassResult, run_through
from rankfall.streams.examine import FAILURES
from rankfall.streams.flow import Edits
from rankfall.streams.mixing import PLACES, MixingTrial, TokenMixing, directions
from rankfall.streams.record import CHOICES, tensors_in

# path of an output, its axes, one of them behind the samples, and its size
Axis = tuple[tuple[Any, ...], int, int, int]
SUMS = {"mean", "sum", "var", "std", "var_mean", "std_mean", "norm", "vector_norm", "amax", "amin", "logsumexp"}
NORMS = {"layer_norm", "group_norm", "instance_norm", "rms_norm"}
TRANSFORMS = {"rfft", "irfft", "fft", "ifft"}


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
        hidden = recording.hidden  # (S, T)

        def read(changes: Tensor) -> Tensor:  # (S, T, ...)
            if hidden is None or changes.shape[:2] != hidden.shape:
                return changes
            return changes & ~hidden.view(*hidden.shape, *[1] * (changes.dim() - 2))

        self.rows[step] = [read(rows).any(0) for rows in changed_rows(after.states, recording.states)]
        samples, outputs = recording.report.samples, dict(tensors_in(after.output))
        for path, changes in changed_outputs(after.output, recording.output).items():
            if bool(changes.any()):
                self.changed.add(path)
            if changes.dim() < 2:
                continue
            first = tokens_first(recording, self.steps)
            if len(changes) == samples * self.steps:  # (B * T, V)
                changes = changes.unflatten(0, (self.steps, samples) if first else (samples, self.steps))
            if first and changes.shape[:2] == (self.steps, samples):  # (T, B, V)
                changes = changes.transpose(0, 1)
            one_sign = bool((outputs[path] <= 0).all() | (outputs[path] >= 0).all())
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
    trial, avoid = StepTrial(name, steps), special_numbers(recording)
    for step in dict.fromkeys((steps - 1, steps // 2, 1)):
        change = partial(change_step, step=step, axis=axis, avoid=avoid)
        changed = change_named(recording.examined.arguments, {name}, change)
        trial.see(recording, step, recording.run(changed, compute=compute))
    return trial


def try_rows(recording: RecordedStream) -> StepTrial:
    """Change rows of the first state."""
    tokens = recording.report.tokens
    trial = StepTrial("", tokens)
    for step in dict.fromkeys((tokens - 1, tokens // 2, 1)):
        change = partial(change_step, step=step, axis=1, avoid=[])
        trial.see(recording, step, recording.run(enter=partial(change_entry, recording.flow, change=change)))
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


class Held:
    """Compute operations, and hold some kinds: sums over tokens, norms and choices of tokens are what they are in the first pass.

    A Fourier transform over tokens is padded to twice their number, as that of a convolution has to be.
    """

    def __init__(self, names: Set[str], tokens: int) -> None:
        self.held, self.tokens = names, tokens  # kinds of operations, and the size of the axis that holds tokens
        self.names: list[str] = []  # of the operations that are held
        self.kept: list[tuple[Tensor, Any]] = []  # their first tensors and results in the first pass
        self.place = -1  # of the next of them in a later pass; -1: this is the first

    def __call__(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        name = getattr(func, "__name__", "").removeprefix("fft_").removeprefix("linalg_")
        first = next((tensor for _, tensor in tensors_in((args, kwargs))), None)
        if name not in self.held or first is None:
            return in_float64(func, args, kwargs)
        if name in TRANSFORMS:
            return self.pad(name, func, args, kwargs)
        result = in_float64(func, args, kwargs)
        option = (*args[1:], *kwargs.values())
        if name in SUMS:
            over = count_sides(result, self.tokens) < count_sides(first, self.tokens)
        elif name in CHOICES:
            places = 1 + (name == "topk")
            axis = kwargs.get("dim", args[places] if len(args) > places else -1)
            over = first.shape[axis] == self.tokens
        else:  # a layer norm is over tokens if its shape has several axes
            several = any(isinstance(x, tuple | list) and len(x) > 1 for x in option)
            over = several or name in ("group_norm", "instance_norm")
        if not over:
            return result
        if self.place < 0:
            self.names.append(name)
            self.kept.append((first.clone(), result))
            return result
        before, kept = self.kept[self.place % len(self.kept)]
        self.place += 1
        if name in SUMS:
            return kept
        if name in NORMS:
            return torch.where(differs(first, before), result, kept)
        indices = kept if isinstance(kept, Tensor) else kept[1]
        return indices if isinstance(kept, Tensor) else type(kept)((first.gather(axis, indices), indices))

    def pad(self, name: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return a transform over twice as many tokens, or the first tokens of an inverse transform."""
        named = dict(zip(("input", "n", "dim"), args)) | kwargs
        x, axis = named["input"], named.get("dim", -1)
        inverse, sizes = name.startswith("i"), (2 * self.tokens, self.tokens + 1)
        if not inverse and (named.get("n") or x.shape[axis]) == self.tokens:
            self.names.append(name)
            return func(**named | {"n": 2 * self.tokens})
        if inverse and x.shape[axis] in sizes:
            return func(**named | {"n": 2 * self.tokens}).narrow(axis, 0, self.tokens)
        return func(*args, **kwargs)


def held_choices(recording: RecordedStream, steps: int) -> Held | None:
    """Return the computation of further passes that holds choices among `steps` tokens, as of a router, or None if there are none."""
    held = Held(CHOICES, steps)
    recording.run(compute=held)
    held.place = 0
    return held if held.names else None


def count_sides(value: Any, size: int) -> int:
    """Return how many axes of the first tensor of a value have this size."""
    return next((list(tensor.shape).count(size) for _, tensor in tensors_in(value)), 0)


def causal_without(recording: RecordedStream, names: Set[str]) -> list[str]:
    """Return the names of operations over tokens without whose changes no branch reads ahead, and some read back; or an empty list."""
    flow, model, arguments = recording.flow, recording.examined.model, recording.examined.arguments
    held = Held(names, recording.report.tokens)
    trial = MixingTrial(flow, {branch.number: TokenMixing() for branch in flow.branches})
    try:
        run_through(model, arguments, flow, Edits(edit=trial.keep, join=trial.keep_part, compute=held))
        for trial.part in PLACES if held.names else ():
            held.place, trial.moved, trial.following = 0, set(), set()
            edits = Edits(edit=trial.compare, enter=trial.enter, join=trial.compare_part, compute=held, partial=True)
            run_through(model, arguments, flow, edits)
    except (*FAILURES, RankfallError):
        return []
    ways = [directions(result, flow.layout) for result in trial.results.values()]
    causal = any(later for later, *_ in ways) and not any(earlier for _, earlier, *_ in ways)
    return list(dict.fromkeys(held.names)) if causal else []
