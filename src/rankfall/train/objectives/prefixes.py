"""Classes, learned at many lengths: in training the samples of a step are cut to their first n tokens.

n is uniform from `shortest` to the whole length, drawn anew for each step, and the same for all members. In evaluation samples are whole.
"""

from dataclasses import replace

from torch import nn

from rankfall.nets.primitives import Dropout, no_dropout
from rankfall.random_streams import stream
from rankfall.train.objectives._base import Graded, Samples
from rankfall.train.objectives.classes import classes

ACCEPTS = "classes"
LENGTH_VARIES = True
LIMITS = {"shortest": (1, None)}


def prefixes(module: nn.Module, batch: Samples, drop: Dropout = no_dropout, *, shortest: int = 2) -> Graded:
    return classes(module, draw_prefixes(batch, shortest=shortest), drop)


def draw_prefixes(batch: Samples, *, shortest: int = 2) -> Samples:
    """Return the batch cut to its first n tokens, or the whole batch in evaluation."""
    if batch.drawn is not None or not batch.learned:
        return batch
    longest = batch.inputs.shape[2]
    n = int(stream(0, "prefixes", *batch.place).integers(min(shortest, longest), longest + 1))
    return replace(batch, inputs=batch.inputs[:, :, :n], targets=batch.targets[:, :, :n], drawn=())
