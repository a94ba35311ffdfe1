"""Mean cross entropy over the tokens that have a target, and the share of them that are right."""

from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from rankfall.nets.dropout import Dropout, no_dropout
from rankfall.train.objectives._base import Graded, Samples, outputs

ACCEPTS = "classes"


def classes(module: nn.Module, batch: Samples, drop: Dropout = no_dropout) -> Graded:
    """Outputs (K, B, T, C) for targets (K, B, T), -1 for tokens without a target."""
    return graded(outputs(module, batch.inputs, drop), batch.targets)


def graded(scores: Tensor, targets: Tensor) -> Graded:
    each = cross_entropy(scores.flatten(0, -2), targets.flatten(), ignore_index=-1, reduction="none")
    asked = (targets != -1).flatten(1).sum(1)
    right = (scores.argmax(-1) == targets).flatten(1).sum(1)  # -1 is never an argmax
    return Graded(each.view(len(targets), -1).sum(1) / asked, asked, {"accuracy": right})
