"""Move tokens on the unit sphere by attention, and count the groups in which they gather.

They follow dx_i / dt = P_i sum_j a_ij V x_j in small steps, with a = softmax(b <x_i, x_j>) and P_i the projection that keeps x_i on the
sphere. Measured are the number of groups by time, for four value matrices; and, on the circle with a causal mask and V = 1, their number at
one time for growing b. A group is a set of tokens that are joined by gaps below a limit.
"""

import math

import torch
from torch import Tensor

from rankfall import Context, Evidence, random_stream
from rankfall import evidence_row as row
from studies.claims.clusters.names import GROUPS, LAST
from studies.claims.draws import draw

COST = {"seconds": 28}
SPECTRUM, METASTABLE = "clusters_follow_values", "clusters_by_temperature"
NUMBER = "number of groups at one time, by score scale"
STEP = 0.05  # of time
GAP = 0.02  # on the sphere: nearer tokens are in one group
SCALES = (8.0, 16.0, 32.0, 64.0, 128.0, 256.0)
VALUES = {
    "V = 1": (1.0, 1.0, 1.0),
    "V = -1": (-1.0, -1.0, -1.0),
    "V of rank 1": (1.0, 0.0, 0.0),
    "V = diag(1, 1, -1)": (1.0, 1.0, -1.0),
}


def clusters(
    context: Context,
    *,
    tokens: int = 32,
    time: float = 200.0,
    many: int = 300,
    reading: float = 20.0,
    late: float = 4000.0,
    seeds: int = 5,
) -> Evidence:
    times = [0.0, time / 100, time / 10, time / 2, time]
    for seed in range(seeds):
        start = draw([seed], tokens, 3, name="clusters")[0]
        start = start / start.norm(dim=-1, keepdim=True)
        for line, diagonal in VALUES.items():
            x = start.clone()
            values = torch.diag(torch.tensor(diagonal, dtype=x.dtype))
            done = 0.0
            for moment in times:
                x = flow(x, values, moment - done)
                done = moment
                yield row(SPECTRUM, GROUPS, line, moment, seed, groups(x))
        angles = torch.from_numpy(random_stream(seed, "claims", "clusters", "angles").uniform(0, 2 * math.pi, many))
        for scale in SCALES:
            moved = on_circle(angles, scale, reading)
            yield row(METASTABLE, NUMBER, "causal, V = 1", scale, seed, arcs(moved, scale))
        moved, done = angles[: many // 6], 0.0
        for moment in (0.0, reading / 10, reading, late / 4, late):
            moved, done = on_circle(moved, 4.0, moment - done), moment
            yield row(METASTABLE, LAST, "causal, V = 1", moment, seed, arcs(moved, 4.0))


def flow(x: Tensor, values: Tensor, time: float) -> Tensor:
    """Return the tokens (T, 3) after `time`, at score scale 1."""
    for _ in range(round(time / STEP)):
        pull = (x @ x.T).softmax(-1) @ x @ values
        x = x + STEP * (pull - (pull * x).sum(-1, keepdim=True) * x)
        x = x / x.norm(dim=-1, keepdim=True)
    return x


def groups(x: Tensor) -> int:
    """Count connected sets of tokens (T, 3) whose neighbours are nearer than GAP."""
    near = torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist") < GAP
    label = torch.arange(len(x))
    for _ in range(len(x)):
        label = torch.where(near, label, len(x)).amin(-1)
    return len(label.unique())


def on_circle(angles: Tensor, scale: float, time: float) -> Tensor:
    """Return the angles (T,) after `time`. Each token is moved by earlier tokens and itself."""
    hidden = torch.ones(len(angles), len(angles), dtype=torch.bool).triu(1)
    for _ in range(round(time / STEP)):
        angles_between = angles - angles[:, None]  # (T, T): j before i
        weights = (scale * angles_between.cos()).masked_fill(hidden, -torch.inf).softmax(-1)
        angles = angles + STEP * (weights * angles_between.sin()).sum(-1)
    return angles


def arcs(angles: Tensor, scale: float) -> int:
    """Count groups on the circle: runs of tokens with gaps below a tenth of scale^-1/2, the width that a token sees."""
    inside = (angles % (2 * math.pi)).sort().values
    gaps = torch.cat([inside[1:] - inside[:-1], (inside[:1] + 2 * math.pi) - inside[-1:]])
    return max(int((gaps > 0.1 * scale**-0.5).sum()), 1)
