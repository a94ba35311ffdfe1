"""Mean squared error of a token's value, summed over its channels."""

import torch
from torch import Tensor, nn

from rankfall.nets.primitives import Dropout, no_dropout
from rankfall.train.objectives._base import Graded, Samples, outputs

ACCEPTS = "values"


def values(module: nn.Module, batch: Samples, drop: Dropout = no_dropout) -> Graded:
    """Grade outputs on targets, both (K, B, T, C)."""
    return grade(outputs(module, batch.inputs, drop), batch.targets)


def grade(values: Tensor, targets: Tensor) -> Graded:
    """Grade values on targets, both (K, B, T, C)."""
    loss = (values - targets).square().sum(-1).flatten(1)  # (K, B*T)
    return Graded(loss.mean(1), torch.full((len(loss),), loss.shape[1], device=loss.device))
