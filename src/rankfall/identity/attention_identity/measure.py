"""Information in attention weights (Brunner et al. 2020): null space of T, second distributions, intervals, effective attention.

The quantities are computed for each layer and head, in float64, over the first test samples. T = (E W_V + 1 b_V^T) H includes the bias
of the values. Sequences shorter than the task's are beginnings of its samples, longer ones are several samples joined. Where a mask
gives each row its own set of tokens, a few rows are measured, each with the tokens that it may attend to.
"""

import copy
from typing import Any

import torch
from torch import Tensor

from rankfall.errors import RankfallError
from rankfall.identity.attention import head_rows
from rankfall.identity.cells import cell_views
from rankfall.measure.context import Context
from rankfall.measure.shared import double_values

USES = ("weights", "heads", "values")
LENGTHS = ("lengths",)
LIMITS = {"lengths": (3, None), "entries": (0, None)}


@torch.no_grad()
def attention_identity(
    context: Context,
    *,
    samples: int = 8,
    lengths: list[int] = [],
    entries: int = 1,
    masked: int = 8,
) -> list[dict[str, Any]]:
    """Measure every layer and head.

    `lengths`: of the sequences, by default the task's. `entries`: rows of weights in each head for which linear programs are solved.
    `masked`: number of rows measured where each has its own mask.
    """
    network, special = copy.deepcopy(context.network).double(), context.data.special
    inputs = double_values(context.data.test.inputs)
    rows: list[dict[str, Any]] = []
    for length in lengths or [inputs.shape[2]]:
        views = cell_views(network, at_length(inputs, length, samples), special)
        rows += head_rows(views, context.cells[0].seed, entries, masked)
    return rows


def at_length(inputs: Tensor, length: int, samples: int) -> Tensor:
    """Return the first samples of (K, N, T, ...) at another length: beginnings, or several samples joined end to end."""
    joined = -(-length // inputs.shape[2])
    if inputs.shape[1] < joined:
        raise RankfallError(
            f"attention_identity: lengths has {length}, for which {joined} test samples of {inputs.shape[2]} tokens are joined, but "
            f"the task has {inputs.shape[1]}; raise its option test"
        )
    count = min(samples, inputs.shape[1] // joined)
    return inputs[:, : count * joined].unflatten(1, (count, joined)).flatten(2, 3)[:, :, :length]
