"""Apply one block with random weights over and over, X <- B(X), or with recall of the input E, X <- B(X + E), from X = E.

Measured are how much the last loop changes the state, and how much a small change of the input has changed the last state.
"""

import torch
from torch import Tensor

from rankfall import Context, Evidence, Network
from rankfall import evidence_row as row
from studies.claims.draws import draw
from studies.claims.loops_need_recall.names import ALONE, BOTH, CHANGE, FELT, NAME, RECALL, UNNORMED
from studies.claims.untrained import make

COST = {"seconds": 20}
BUILDS = {"mlp": ["gelu"], "norm": ["layer"], "residual": ["add"]}
SCALES = (0.25, 0.5, 1.0, 2.0, 4.0)  # of weights
STEP = 1e-5  # of the input's size
FIXED, FELT_IF = (
    -6.0,
    -2.0,
)  # log10 of a change below which a state is fixed, and of a dependence above which it is felt
KINDS = {ALONE: ("post", 0.0), RECALL: ("post", 1.0), UNNORMED: ("pre", 1.0)}


def loops_need_recall(
    context: Context, *, loops: int = 1000, tokens: int = 8, width: int = 16, heads: int = 2, seeds: int = 20
) -> Evidence:
    members = list(range(seeds))
    x = draw(members, 1, tokens, width, name=NAME)
    moved = x + STEP * draw(members, 1, tokens, width, name=f"{NAME} moved")
    for line, (placement, recall) in KINDS.items():
        for scale in SCALES:
            network = make(
                members, tokens, residual="add", mlp="gelu", norm="layer", norm_placement=placement, heads=heads,
                width=width, init={"name": "normal", "deviation": scale * width**-0.5},
            )  # fmt: skip
            last, before = run(network, x, recall, loops)
            other, _ = run(network, moved, recall, loops)
            change = (size(last - before) / size(last)).log10()
            felt = (size(other - last) / size(last) * size(x) / size(moved - x)).log10()
            for seed in members:
                fixed, depends = float(change[seed]), float(felt[seed])
                both = fixed < FIXED and depends > FELT_IF
                yield row(NAME, CHANGE, line, scale, seed, fixed, "nothing changes, or all is infinite")
                yield row(NAME, FELT, line, scale, seed, depends, "nothing changes, or all is infinite")
                yield row(NAME, BOTH, line, scale, seed, float(both))


def run(network: Network, x: Tensor, recall: float, loops: int) -> tuple[Tensor, Tensor]:
    """Return the last state (K, B, T, D) and the one before it."""
    state = before = x
    for _ in range(loops):
        before, state = state, network.blocks[0](state + recall * x)
    return state, before


def size(x: Tensor) -> Tensor:
    """Return the Frobenius norm of each member's states: (K)."""
    return torch.linalg.vector_norm(x, dim=(1, 2, 3))
