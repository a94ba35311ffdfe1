"""Hide tokens by the masks and lengths among the inputs, change these tokens, and find out what changes with them."""

import inspect
import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rankfall.check.attention import masked_scores, rms
from rankfall.check.hidden import reaches_output
from rankfall.check.passes import change_named, changed_outputs, changed_rows, named_inputs, named_tensors
from rankfall.check.reads import MASKED, is_triangle
from rankfall.check.recording import RecordedStream
from rankfall.streams.arguments import Arguments, in_float64
from rankfall.streams.axes import differs
from rankfall.streams.record import tensors_in

HIDES = ("mask", "pad", "valid", "keep")  # parts of names of arguments that hide tokens
LENGTHS = ("len", "num_", "valid")
OTHER_USES = ("global", "prefix", "head", "label", "loss")  # and of masks that hide none


def label_of(model: nn.Module, name: str) -> str:
    """Return the name of an argument, also of one that is passed by position."""
    first = name.partition(".")[0]
    names = list(inspect.signature(model.forward).parameters)
    return f"{names[int(first)]}.{name}" if first.isdigit() and int(first) < len(names) else name


def holders(arguments: Arguments, shape: tuple[int, int], but: set[str]) -> set[str]:
    """Return the names of the arguments that hold token numbers or vectors (S, T, ...) or (T, S, ...)."""
    return {
        name
        for name, x in named_inputs(arguments).items()
        if name not in but and x.dtype != torch.bool and shape in (tuple(x.shape[:2]), tuple(x.shape[1::-1]))
        and (x.dim() == 2 or x.is_floating_point())
    }  # fmt: skip


@dataclass(frozen=True)
class Mask:
    """Hold a mask of two values, of tokens or of steps of several, (S, T), (S, 1, 1, T) or (S, H, T, T); or lengths (S,) of samples."""

    name: str
    label: str
    tensor: Tensor
    shape: tuple[int, int]  # (S, T)
    values: tuple[float, float]

    @property
    def square(self) -> bool:
        return self.tensor.numel() > self.shape[0] * self.shape[1]

    @property
    def by_head(self) -> bool:
        """Return whether a mask (H S, T, T) holds all samples for each head, and not the heads of a sample side by side."""
        heads = len(self.tensor) // self.shape[0]
        tables = [self.tensor.unflatten(0, sizes) for sizes in ((heads, -1), (-1, heads))]
        equal = [bool((table == table.narrow(axis, 0, 1)).all()) for axis, table in enumerate(tables)]
        return equal == [True, False]

    def hidden(self, value: float) -> Tensor:
        """Return the tokens (S, T) for which the example has `value`, in all rows but their own."""
        equal = (self.tensor == value).reshape(self.shape[0], -1, self.shape[1])
        if not self.square:
            return equal[:, 0]
        own = torch.eye(self.shape[1], dtype=torch.bool).repeat(equal.shape[1] // self.shape[1], 1)
        return (equal | own).all(1)

    def hiding(self, hidden: Tensor, value: float) -> Tensor:
        """Return the mask with `value` for these tokens (S, T) and the other value for all others."""
        other = self.values[value == self.values[0]]
        filled = torch.where(hidden, float(value), float(other)).to(self.tensor.dtype)[:, None]
        return filled.expand(-1, self.tensor.numel() // filled.numel(), -1).reshape(self.tensor.shape)


def masks_of(arguments: Arguments, model: nn.Module) -> list[Mask]:
    """Return the masks of tokens among the arguments for which these hold tokens."""
    named = named_tensors(arguments)
    labels = {name: label_of(model, name) for name in named}
    pairs = {name: two_values(x, any(word in labels[name] for word in HIDES)) for name, x in named.items()}
    flags = {name for name, values in pairs.items() if values is not None}
    inputs = [x for name, x in named_inputs(arguments).items() if name not in flags]
    masks = []
    for name, x in named.items():
        values = pairs[name]
        if values is None or x.dim() < 2 or is_triangle(x) or any(word in labels[name] for word in OTHER_USES):
            continue
        steps = x.shape[-1] if x.shape[-1] > 1 else x[0].numel()
        square = x.dim() > 2 and x.shape[-2] == steps
        sizes = {len(y) for y in inputs if steps in y.shape[1:2]} if square else {len(x)} & {x.numel() // steps}
        sizes = {size for size in sizes if steps > 1 and len(x) % size == 0}
        shapes = [(size, steps) for size in sizes if holders(arguments, (size, steps), flags)]
        masks += [Mask(name, labels[name], x, shape, values) for shape in shapes[:1]]
    return masks


def lengths_of(arguments: Arguments, model: nn.Module, flags: set[str]) -> list[Mask]:
    """Return the lengths (S,) among the arguments, which their names tell, for which these hold tokens. `flags`: the names of masks."""
    lengths = []
    for name, x in named_tensors(arguments).items():
        label = label_of(model, name)
        integers = not x.is_floating_point() and x.dtype != torch.bool
        if not integers or not any(word in label for word in LENGTHS):
            continue
        if not 0 < x.numel() == len(x) or int(x.min()) < 1:
            continue
        inputs = [y for y in named_inputs(arguments).values() if len(y) == len(x) and y.shape[1] >= int(x.max())]
        shapes = sorted({(len(x), y.shape[1]) for y in inputs})
        fitting = [shape for shape in shapes if holders(arguments, shape, flags | {name})]
        lengths += [Mask(name, label, x, shape, (0, 1)) for shape in fitting[:1]]
    return lengths


def two_values(x: Tensor, named: bool) -> tuple[float, float] | None:
    """Return the two values of a mask: truth values, 0 and 1 if its name says that it is one, or a large negative number and 0."""
    if x.dtype == torch.bool:
        return False, True
    values = x.unique().tolist() if x.numel() else []
    if named and set(values) <= {0, 1} and not (x.is_floating_point() and values == [0]):
        return 0, 1
    additive = x.is_floating_point() and values[-1:] == [0] and len(values) < 3 and (named or len(values) == 2)
    if additive and (values[0] == 0 or values[0] <= MASKED):
        return values[0] if values[0] < 0 else -math.inf, 0.0
    return None


def refill(x: Tensor, hidden: Tensor, number: int) -> Tensor:
    """Return the inputs with other tokens where `hidden` (S, T): random vectors, or token numbers from inside the visible samples."""
    rows = x if x.shape[:2] == hidden.shape else x.transpose(0, 1)
    if x.is_floating_point():
        noise = torch.randn(rows.shape, generator=torch.Generator().manual_seed(number), dtype=torch.float64)
        new = noise.to(x) * rms(x)
    else:
        seen = [row[~hides] for row, hides in zip(rows, hidden)]
        # special tokens stand at the ends, and some models look for them
        ends = {int(row[end]) for row in seen if len(row) for end in (0, -1)}
        values = torch.cat(seen).unique()
        inner = values[[int(value) not in ends for value in values]]
        values = inner if len(inner) > 1 else values if len(values) else rows.flatten()
        new = values[(torch.arange(hidden.numel()).view(hidden.shape) + number) % len(values)]
    new = torch.where(hidden.reshape(*hidden.shape, *[1] * (rows.dim() - 2)), new, rows)
    return new if rows is x else new.transpose(0, 1)


@dataclass(frozen=True)
class Reached:
    """Hold what changes in a stream with some tokens of the inputs."""

    own: Tensor  # (S, T): rows of the first state
    layer: int | None  # the first layer with other rows
    outputs: list[Tensor]
    finite: bool

    @property
    def arrives(self) -> bool:
        """Return whether the first state or a later one changes."""
        return bool(self.own.any()) or self.layer is not None

    def rows_of(self, hidden: Tensor) -> Tensor:
        """Return the rows (S, T) that hidden tokens may be: all if a row is several frames, these themselves if nothing of them enters."""
        if hidden.shape[1] > self.own.shape[1]:
            return torch.ones_like(self.own)
        return hidden if not bool(self.own.any()) and hidden.shape == self.own.shape else self.own


def reach(recording: RecordedStream, arguments: Arguments, names: set[str], hidden: Tensor) -> Reached:
    """Change the tokens `hidden` (S, T) of the named inputs, and compare two passes."""
    stride = -(-hidden.shape[1] // recording.report.tokens)
    if stride > 1:  # frames of a convolution: a token at the border reads visible frames and hidden ones
        hidden = F.max_pool1d((~hidden).float(), 4 * stride + 1, 1, 2 * stride) == 0
    calls = [change_named(arguments, names, partial(refill, hidden=hidden, number=number)) for number in (0, 1)]
    one, other = (recording.run(call) for call in calls)
    rows = changed_rows(one.states, other.states)
    fits = (layer for layer, row in enumerate(rows) if row.shape == rows[0].shape and bool((row & ~rows[0]).any()))
    outputs = [changes for changes in changed_outputs(one.output, other.output).values() if changes.dim()]
    return Reached(rows[0], next(fits, None), outputs, all(bool(state.isfinite().all()) for state in one.states))


def output_reached(reached: list[Reached], hidden: Tensor) -> bool:
    """Return whether an output changes elsewhere than at the hidden tokens, which are rows of it or rows of a stream."""
    return reaches_output(reached[0].outputs, [hidden, *(each.own for each in reached if bool(each.own.any()))])


def at_an_end(hidden: Tensor) -> bool:
    """Return whether tokens (S, T) are runs at the beginning or the end of each sample, as padding is."""
    return all(not bool((row.diff() & row[1:]).any()) or not bool((row.diff() & row[:-1]).any()) for row in hidden)


def invert(mask: Tensor) -> Tensor:
    """Flip truth values and integers. Numbers to be added become 0."""
    if mask.dtype == torch.bool:
        return ~mask
    if mask.is_floating_point() and not bool(((mask == 0) | (mask == 1)).all()):
        return torch.zeros_like(mask)
    return 1 - mask


def inverted_changes(recordings: list[RecordedStream], name: str) -> tuple[bool, list[Tensor]]:
    """Return whether states of any stream change with an inverted mask, and the outputs that do."""
    changed = change_named(recordings[0].examined.arguments, {name}, invert)
    passes = [each.run(changed) for each in recordings]
    states = any(bool(x.any()) for run, each in zip(passes, recordings) for x in changed_rows(run.states, each.states))
    pairs = zip(tensors_in(passes[0].output), tensors_in(recordings[0].output))
    return states, [x for (_, x), (_, y) in pairs if x.shape != y.shape or bool(differs(x, y).any())]


def scores_change(recordings: list[RecordedStream], name: str) -> bool:
    """Return whether scores of attention change with an inverted mask, as those of whole rows do, which no softmax notices."""
    arguments = recordings[0].examined.arguments
    for recording in recordings:
        runs: list[list[Tensor]] = []
        for call in (arguments, change_named(arguments, {name}, invert)):
            scores: list[Tensor] = []

            def attend(_: int, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], scores: Any = scores) -> Any:
                read = masked_scores(func, args, kwargs)
                scores += [] if read is None else [read.nan_to_num()]
                return in_float64(func, args, kwargs)

            recording.run(call, attend=attend)
            runs.append(scores)
        if any(a.shape == b.shape and bool(differs(a, b).any()) for a, b in zip(*runs)):
            return True
    return False
