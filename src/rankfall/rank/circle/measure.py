"""Roll-out on the circle (Dong et al. 2021, figure 3).

A network that predicts the next positions of two opposite points is applied repeatedly to its own output. If attention loses rank, the
two points approach each other: with two tokens, their distance is twice the residual of the state in the plane. `tasks/circle.advance`
defines how the input and the output of a step are combined.
"""

from typing import Any

import torch
from torch import Tensor

from rankfall.measure.context import Context
from rankfall.tasks.circle import advance, point_at

TARGETS = "values"


@torch.no_grad()
def circle(context: Context, *, steps: int = 300) -> list[dict[str, Any]]:
    """Roll out the first training sample by `steps` - 1 applications, as published: `steps` points for each token."""
    options = context.cells[0].task.task.options
    skip = options.get("skip", "none")
    state = context.data.train.inputs[:, :1]  # (K, 1, T, 2); with the published skip, the first sample is the same
    drawn = [state]
    for _ in range(steps - 1):
        state, point = advance(state, context.network(state), skip)
        drawn.append(point)
    path = torch.cat(drawn, 1).double().cpu()  # (K, S, T, 2)
    expected = orbit(path[:, :1], steps, options.get("points", 1000))
    distance = (path - path.flip(2)).norm(dim=-1)  # (K, S, T), the same for both tokens
    error = (path - expected).norm(dim=-1)
    table = torch.cat([path, distance.unsqueeze(-1), error.unsqueeze(-1)], -1)
    numbers = table.masked_fill(~table.isfinite(), torch.nan)[0].tolist()
    return [
        {"step": step, "token": token} | dict(zip(("x", "y", "distance", "error"), values))
        for step, tokens in enumerate(numbers)
        for token, values in enumerate(tokens)
    ]


def orbit(start: Tensor, steps: int, points: int) -> Tensor:
    """Return the true positions of points (K, 1, T, 2) after 0, 1, ... steps along their circle: (K, S, T, 2)."""
    turned = point_at(torch.arange(steps), points, 1.0)  # (S, 2): cosine and sine of the angle so far
    cosine, sine = turned[:, 0].view(1, -1, 1), turned[:, 1].view(1, -1, 1)
    x, y = start[..., 0], start[..., 1]  # (K, 1, T)
    return torch.stack([cosine * x - sine * y, sine * x + cosine * y], -1)
