"""What is minimised and what counts as right, member by member."""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy


def classes(outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Mean cross entropy over the tokens that ask for a class, and how many were right. (K, B, T, C), (K, B, T) -> (K,), (K,)"""
    each = cross_entropy(outputs.flatten(0, 2), targets.flatten(), ignore_index=-1, reduction="none")
    loss = each.view(len(targets), -1).sum(1) / asked(targets)
    right = (outputs.argmax(-1) == targets).flatten(1).sum(1)  # -1 is never an argmax
    return loss, right


def values(outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Mean squared error of a token's value, summed over its channels; nothing counts as right. (K, B, T, C) -> (K,), (K,)"""
    loss = (outputs - targets).square().sum(-1).flatten(1).mean(1)
    return loss, loss.detach() * 0


def asked(targets: Tensor) -> Tensor:
    """How many tokens of each member ask for an answer (K,): those of a class but -1, and all of a value."""
    if targets.is_floating_point():
        return targets.new_full((len(targets),), targets[0, ..., 0].numel(), dtype=torch.int64)
    return (targets != -1).flatten(1).sum(1)


LOSSES = {"classes": classes, "values": values}
