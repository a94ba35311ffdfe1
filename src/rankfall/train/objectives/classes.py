"""Mean cross entropy over the tokens that have a target, and the share of correct answers.

If the data have a constant answer, the share is also reported separately for tokens with that target and for all others.
"""

from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from rankfall.nets.primitives import Dropout, no_dropout
from rankfall.train.objectives._base import Graded, Samples, outputs

ACCEPTS = "classes"


def classes(module: nn.Module, batch: Samples, drop: Dropout = no_dropout) -> Graded:
    """Grade outputs (K, B, T, C) on targets (K, B, T), which are -1 for tokens without a target."""
    return grade(outputs(module, batch.inputs, drop), batch.targets, batch.constant)


def grade(scores: Tensor, targets: Tensor, constant: int | None = None) -> Graded:
    """Grade scores (K, B, T, C) on targets (K, B, T)."""
    losses = cross_entropy(scores.flatten(0, -2), targets.flatten(), ignore_index=-1, reduction="none")
    asked = (targets != -1).flatten(1).sum(1)
    right = scores.argmax(-1) == targets  # -1 is never an argmax
    sums, asked_of = {"accuracy": right.flatten(1).sum(1)}, {}
    if constant is not None:
        same = targets == constant
        for name, part in (("constant", same), ("informative", ~same & (targets != -1))):
            sums[f"accuracy_{name}"] = (right & part).flatten(1).sum(1)
            asked_of[f"accuracy_{name}"] = part.flatten(1).sum(1)
    return Graded(losses.view(len(targets), -1).sum(1) / asked, asked, sums, asked_of)
