"""The history of training: for each member, epoch and split, sums of every metric and the number of targets.

The tensors are (K, epochs), named `split.metric` and filled in place, so that a checkpoint of them is the record so far. A mean is sum over
count. The count is `split.metric.asked` for a metric over a part of the targets, else `split.asked`. If it is zero there is no mean: the
epoch was not reached, or the split was not evaluated.
"""

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from rankfall.train.objectives._base import Graded

ASKED = "asked"


class TrainingHistory:
    def __init__(self, members: int, epochs: int, device: torch.device) -> None:
        self.shape, self.device = (members, epochs), device
        self.tensors: dict[str, Tensor] = {}

    def add(self, split: str, epoch: int, sums: Mapping[str, Tensor], taking: Tensor) -> None:
        """Add the sums (K,) of a batch or of a whole split, for the members in `taking` (K,)."""
        for metric, value in sums.items():
            name = f"{split}.{metric}"
            if name not in self.tensors:
                self.tensors[name] = torch.zeros(self.shape, dtype=torch.float64, device=self.device)
            self.tensors[name][:, epoch] += torch.where(taking, value, 0)

    def mean(self, split: str, metric: str, epoch: int) -> Tensor:
        """Return the mean of a metric in an epoch (K,)."""
        name = f"{split}.{metric}"
        return self.tensors[name][:, epoch] / self.tensors[count_of(name, self.tensors)][:, epoch]

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        self.tensors = {name: value.to(self.device, copy=True) for name, value in tensors.items()}


def sums_of(graded: Graded) -> dict[str, Tensor]:
    """Return the sums of a batch, by metric (K,)."""
    counts = {f"{metric}.{ASKED}": value for metric, value in graded.asked_of.items()}
    return {"loss": graded.loss * graded.asked, ASKED: graded.asked, **graded.sums, **counts}


def count_of(name: str, sums: Mapping[str, Tensor]) -> str:
    """Return the name of the number of targets in a metric's sum, `metric` or `split.metric`."""
    own, split = f"{name}.{ASKED}", name.rpartition(".")[0]
    return own if own in sums else f"{split}.{ASKED}" if split else ASKED


def is_count(name: str) -> bool:
    return name.rpartition(".")[2] == ASKED


def means(tensors: Mapping[str, Tensor], member: int) -> Iterator[tuple[int, str, str, float]]:
    """Yield (epochs completed, split, metric, mean) of a member, epoch by epoch, from the tensors of a history."""
    course = {name: value[member].tolist() for name, value in tensors.items()}
    counts = {name: course[count_of(name, tensors)] for name in course if not is_count(name)}
    for epoch in range(max(map(len, course.values()), default=0)):
        for name, asked in counts.items():
            split, _, metric = name.rpartition(".")
            if asked[epoch]:
                yield epoch + 1, split, metric, course[name][epoch] / asked[epoch]
