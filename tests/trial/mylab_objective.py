"""An objective of a user's own that a stack must not be trained with."""

import torch
from torch import nn

from rankfall.nets.dropout import Dropout, no_dropout
from rankfall.train.objectives._base import Graded, Samples

ACCEPTS = "classes"


def common_logits(module: nn.Module, batch: Samples, drop: Dropout = no_dropout) -> Graded:
    """Shares of the classes, less what the logits of all members have in common."""
    logits = module(batch.inputs, drop)  # type: ignore[operator]
    shares = (logits - logits.amax()).exp()
    loss = -(shares[..., 0] / shares.sum(-1)).mean((1, 2))
    return Graded(loss, torch.ones_like(loss), {})
