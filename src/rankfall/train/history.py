"""The course of training: for each member, epoch and split, sums of every metric and the number of targets.

The tensors are (K, epochs), named `split.metric` and filled in place, so that a checkpoint of them is the record so far. A mean is
sum over count, `split.asked`; where that is zero there is no mean: the epoch was not reached, or the split was not evaluated.
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
        """Sums (K,) of a batch or of a whole split, for the members (K,) that are taking part."""
        for metric, value in sums.items():
            name = f"{split}.{metric}"
            if name not in self.tensors:
                self.tensors[name] = torch.zeros(self.shape, dtype=torch.float64, device=self.device)
            self.tensors[name][:, epoch] += torch.where(taking, value, 0)

    def mean(self, split: str, metric: str, epoch: int) -> Tensor:
        """(K,)"""
        return self.tensors[f"{split}.{metric}"][:, epoch] / self.tensors[f"{split}.{ASKED}"][:, epoch]

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        self.tensors = {name: value.to(self.device, copy=True) for name, value in tensors.items()}


def sums_of(graded: Graded) -> dict[str, Tensor]:
    """The sums of a batch, by metric (K,)."""
    return {"loss": graded.loss * graded.asked, ASKED: graded.asked, **graded.sums}


def means(tensors: Mapping[str, Tensor], member: int) -> Iterator[tuple[int, str, str, float]]:
    """(epochs completed, split, metric, mean) of a member, epoch by epoch, from the tensors of a history."""
    course = {name: value[member].tolist() for name, value in tensors.items()}
    counts = {name.rpartition(".")[0]: values for name, values in course.items() if name.endswith(f".{ASKED}")}
    for epoch in range(max(map(len, counts.values()), default=0)):
        for name, values in course.items():
            split, _, metric = name.rpartition(".")
            if metric != ASKED and counts[split][epoch]:
                yield epoch + 1, split, metric, values[epoch] / counts[split][epoch]
