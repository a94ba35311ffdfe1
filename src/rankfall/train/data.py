"""The data of K members: batches for training, and the splits that are evaluated.

The order of the samples is drawn anew in each epoch from the stream (seed, "order", epoch), and batches of an endless task from (seed,
"batch", step). So training can resume at any step without replaying earlier ones.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeVar

import torch
from torch import Tensor

from rankfall.random_streams import stream
from rankfall.tasks._dataset import TRAIN, Dataset, Split, Splits
from rankfall.train.device import to_device, waits
from rankfall.train.objectives._base import Samples

Value = TypeVar("Value")
EVALUATED = 256  # samples of the training length that are evaluated at once, without gradients


@dataclass(frozen=True)
class Data(Splits):
    """The data of K members. Each tensor is (K, N, T) or (K, N, T, C), and is expanded, not copied, if members share it."""

    chance: Tensor = field(default_factory=lambda: torch.tensor(math.nan))  # (K,)
    size_in: int = 0
    special: int = 0  # as in `Dataset`
    constant: int | None = None
    fresh: Callable[[int, int, int], Split] | None = None  # (seed, step, samples) -> a member's samples of that step
    ahead: dict[tuple[int, ...], Tensor] = field(default_factory=dict)  # orders that are already drawn

    @staticmethod
    def from_datasets(
        datasets: Sequence[Dataset],
        dtype: torch.dtype,
        device: torch.device,
        fresh: Callable[[int, int, int], Split] | None = None,
    ) -> "Data":
        """Combine the data sets of the members. A data set that all members share is not copied."""

        def stack(parts: list[Tensor]) -> Tensor:
            if all(part is parts[0] for part in parts):
                # expanded after the copy, which would otherwise write all members
                return on(parts[0], dtype, device).expand(len(parts), *parts[0].shape)
            return on(torch.stack(parts), dtype, device)

        def split(name: str) -> Split:
            splits = [dataset.splits[name] for dataset in datasets]
            inputs = stack([part.inputs for part in splits])
            same = all(part.targets is part.inputs for part in splits)
            return Split(inputs, inputs if same else stack([part.targets for part in splits]))

        chance = torch.tensor([dataset.chance for dataset in datasets], dtype=torch.float64)
        first = datasets[0]
        return Data(
            {name: split(name) for name in first.splits}, chance, first.size_in, first.special, first.constant, fresh
        )

    @property
    def samples(self) -> int:
        """The number of samples of an epoch."""
        return self.train.inputs.shape[1]

    def epoch(self, seeds: Sequence[int], epoch: int, size: int, shuffle: bool, first: int = 0) -> Iterator[Samples]:
        """Yield the training batches from the epoch's step `first`. The last batch may be smaller, as in the published runs."""
        steps = steps_per_epoch(self.samples, size)
        order = None if self.fresh else self.ahead.pop((epoch, shuffle, *seeds), None)
        if order is None and not self.fresh:
            order = self.orders(seeds, epoch, shuffle)
        for step in range(first, steps):
            start, place = step * size, (TRAIN, epoch * steps + step)
            if order is None:
                part = self.draw_fresh(seeds, epoch * steps + step, min(size, self.samples - start))
            else:
                index = order[:, start : start + size]  # (K, B)
                rows = torch.arange(len(index), device=index.device).unsqueeze(1)  # (K, 1)
                part = pick_samples(self.train, rows, index)
            yield self.batch(part, seeds, place, learned=True)
        if order is not None and waits(order.device):  # drawn while the device is still busy with this epoch
            self.ahead[epoch + 1, shuffle, *seeds] = self.orders(seeds, epoch + 1, shuffle)

    def orders(self, seeds: Sequence[int], epoch: int, shuffle: bool) -> Tensor:
        """Return the indices of the samples in training order (K, N)."""
        device = self.train.inputs.device
        if not shuffle:
            return torch.arange(self.samples, device=device).expand(len(seeds), -1)
        drawn = [torch.from_numpy(stream(seed, "order", epoch).permutation(self.samples)) for seed in seeds]
        return to_device(torch.stack(drawn), device)

    def draw_fresh(self, seeds: Sequence[int], step: int, samples: int) -> Split:
        """Draw fresh samples for every member."""
        assert self.fresh is not None
        splits = [self.fresh(seed, step, samples) for seed in seeds]
        like = self.train
        inputs, targets = torch.stack([part.inputs for part in splits]), torch.stack([part.targets for part in splits])
        device = like.inputs.device
        return Split(on(inputs, like.inputs.dtype, device), on(targets, like.targets.dtype, device))

    def evaluation_batches(self, name: str, seeds: Sequence[int]) -> Iterator[Samples]:
        """Yield a split in batches. Longer samples are in smaller batches."""
        split = self.splits[name]
        samples, length = split.inputs.shape[1:3]
        size = max(1, EVALUATED * self.train.inputs.shape[2] // length) if split.inputs.dim() > 2 else EVALUATED
        for start in range(0, samples, size):
            inputs = split.inputs[:, start : start + size]
            same = split.targets is split.inputs
            targets = inputs if same else split.targets[:, start : start + size]
            yield self.batch(Split(inputs, targets), seeds, (name, start))

    def batch(self, part: Split, seeds: Sequence[int], place: tuple[str | int, ...], learned: bool = False) -> Samples:
        return Samples(part.inputs, part.targets, seeds, place, self.size_in, self.special, self.constant, learned)


def pick_samples(split: Split, rows: Tensor, index: Tensor) -> Split:
    """Return the samples `index` (K, B) of each member."""
    inputs = split.inputs[rows, index]
    return Split(inputs, inputs if split.targets is split.inputs else split.targets[rows, index])


def on(values: Tensor, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return values on the device, with floating-point numbers in this dtype."""
    return to_device(values.to(dtype) if values.is_floating_point() else values, device)


def group(values: Iterable[Value], size: int) -> Iterator[list[Value]]:
    """Yield lists of `size` values. The last one may be shorter."""
    iterator = iter(values)
    while chunk := list(islice(iterator, size)):
        yield chunk


def steps_per_epoch(samples: int, batch: int) -> int:
    """Return the number of batches of an epoch, the last of which may be smaller."""
    return -(-samples // batch)
