"""Train residual networks of 4 to 16 layers on the output distribution of a random one of 64.

Measured are the loss, how large a layer's change is, and how it turns from layer to layer. A layer is X + W_2 relu(W_1 N(X))^2. The
teacher's layers are independent or all the same.
"""

import itertools

import torch
from torch import Tensor

from rankfall import Context, Evidence
from rankfall import evidence_row as row
from studies.claims.descent import descend
from studies.claims.draws import draw
from studies.claims.loss_falls_as_one_over_depth.names import LOSS, NAME, OWN, STEP, TIED, TURN

COST = {"seconds": 150}
Weights = tuple[Tensor, Tensor]  # W_1 (K, L, D, M) and W_2 (K, L, M, D)


def loss_falls_as_one_over_depth(
    context: Context,
    *,
    layers: list[int] | tuple[int, ...] = (4, 6, 8, 12, 16),
    teacher: int = 64,
    width: int = 16,
    inner: int = 32,
    classes: int = 16,
    samples: int = 128,
    steps: int = 1500,
    rate: float = 3e-3,
    seeds: int = 5,
) -> Evidence:
    members = list(range(seeds))
    read = draw(members, width, classes, name=f"{NAME} head", dtype=torch.float32) * (2 / width**0.5)
    for line in (OWN, TIED):
        target = weights(members, teacher, width, inner, f"{NAME} teacher")
        if line == TIED:
            target = tuple(part[:, :1].expand(-1, teacher, -1, -1) for part in target)  # type: ignore[assignment]
        target = (target[0], target[1] * (teacher**0.5 if line == OWN else 1.0) / teacher)
        for depth in layers:
            drawn = weights(members, depth, width, inner, f"{NAME} student")
            learned = drawn[0].clone().requires_grad_(), (drawn[1] / depth).requires_grad_()
            loss, hidden = learn(target, learned, read, samples, steps, rate)
            changes = torch.stack([after - before for before, after in itertools.pairwise(hidden)])
            turns = torch.cosine_similarity(changes[1:], changes[:-1], dim=-1).mean((0, 2))  # (K)
            sizes = (changes.norm(dim=-1) / torch.stack(hidden[:-1]).norm(dim=-1)).mean((0, 2))
            for seed in members:
                for quantity, values in ((LOSS, loss), (TURN, turns), (STEP, sizes)):
                    yield row(NAME, quantity, line, depth, seed, float(values[seed]))


def learn(
    target: Weights, learned: Weights, read: Tensor, samples: int, steps: int, rate: float
) -> tuple[Tensor, list[Tensor]]:
    """Train on new samples in each step. Return the divergence from the target (K) on eight times as many, and the states."""
    generator = torch.Generator().manual_seed(1)

    def compare(count: int) -> tuple[Tensor, list[Tensor]]:
        x = torch.randn(1, count, read.shape[1], generator=generator).expand(len(read), -1, -1)
        with torch.no_grad():
            taught = (normed(states(target, x)[-1]) @ read).log_softmax(-1)
        hidden = states(learned, x)
        logs = (normed(hidden[-1]) @ read).log_softmax(-1)
        return (taught.exp() * (taught - logs)).sum(-1).mean(-1), hidden

    for _ in descend(learned, lambda step: compare(samples)[0].sum(), steps, rate):
        pass
    with torch.no_grad():
        return compare(8 * samples)


def weights(members: list[int], depth: int, width: int, inner: int, name: str) -> Weights:
    """Draw the weights of all layers."""
    return (
        draw(members, depth, width, inner, name=f"{name} in", dtype=torch.float32) * width**-0.5,
        draw(members, depth, inner, width, name=f"{name} out", dtype=torch.float32) * inner**-0.5,
    )


def normed(x: Tensor) -> Tensor:
    """Scale rows to mean square 1."""
    return x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt()


def states(maps: Weights, x: Tensor) -> list[Tensor]:
    """Return the states (K, B, D) before the first layer and after each."""
    hidden = [x]
    for first, second in zip(maps[0].unbind(1), maps[1].unbind(1), strict=True):
        x = hidden[-1]
        hidden.append(x + torch.bmm(torch.bmm(normed(x), first).relu().square(), second))
    return hidden
