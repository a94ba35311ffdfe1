"""Muon (Jordan et al. 2024): matrices step by the orthogonal matrix nearest to their running gradient, all other parameters by Adam.

    V <- m V + G,   O = NS(G + m V),   W <- (1 - lr decay) W - lr s O

NS brings all singular values near one: from X = M / |M|, `rounds` times X <- a X + (b A + c A^2) X with A = X X^T and (a, b, c) = (3.4445,
-4.7750, 2.0315), which leaves them between .7 and 1.2. The factor s depends on `scale`. For `rms` it is .2 sqrt(max(in, out)), so that
entries step as far as Adam's and one learning rate serves all (Liu et al. 2025). For `spectral` it is sqrt(max(1, out / in)), as first
published.

A matrix is a weight with two dimensions greater than one: maps of queries, keys, values, outputs, MLPs and gates. Matrices with a role in
`others` are moved by Adam.
"""

import math
from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

if TYPE_CHECKING:
    from rankfall.train.members import ParameterEntry

LIMITS = {"rounds": (1, None)}
A, B, C = 3.4445, -4.7750, 2.0315  # of the published iteration


class Muon:
    slots = 3  # velocity, and Adam's running means of the gradient and of its square

    def __init__(
        self,
        *,
        momentum: float = 0.95,
        rounds: int = 5,
        scale: Literal["rms", "spectral"] = "rms",
        others: list[str] = ["embedding", "embedding_map", "position", "head", "share"],  # noqa: B006  (read from the source)
        beta1: float = 0.9,
        beta2: float = 0.95,
        eps: float = 1e-8,
    ) -> None:
        self.momentum, self.rounds, self.scale, self.others = momentum, rounds, scale, tuple(others)
        self.beta1, self.beta2, self.eps = beta1, beta2, eps
        self.matrices: tuple[tuple[int, int, int], ...] = ()  # the start of each, and its dimensions in and out

    def of(self, entries: "Sequence[ParameterEntry]") -> "Muon":
        """Return the optimiser for a row of these parameters."""
        optimizer = copy(self)
        optimizer.matrices = tuple(
            (entry.start, entry.shape[0], entry.shape[1]) for entry in entries if self.is_matrix(entry)
        )
        return optimizer

    def is_matrix(self, entry: "ParameterEntry") -> bool:
        """Return whether a parameter is a matrix to orthogonalise."""
        return (
            entry.kind == "weight" and entry.role not in self.others and len(entry.shape) == 2 and min(entry.shape) > 1
        )

    def step(
        self,
        weights: Tensor,
        grads: Tensor,
        slots: tuple[Tensor, ...],
        lr: Tensor,
        decay: Tensor | None,
        t: int,
        scratch: Tensor,
    ) -> None:
        """Take one step. Tensors are (K, P), except lr and decay (K, 1). t counts from 1."""
        velocity, mean, square = slots
        if decay is not None:
            weights.mul_(1 - lr * decay)
        velocity.mul_(self.momentum).add_(grads)
        ahead = grads + self.momentum * velocity
        mean.lerp_(grads, 1 - self.beta1)
        square.mul_(self.beta2).addcmul_(grads, grads, value=1 - self.beta2)
        root = (square.sqrt() / math.sqrt(1 - self.beta2**t)).add_(self.eps)
        steps = mean / root / (1 - self.beta1**t)  # of Adam
        orthogonal_steps, parts, at = self.orthogonalise(ahead), [], 0
        for start, size_in, size_out in self.matrices:
            parts += [steps[:, at:start], orthogonal_steps[start]] if start > at else [orthogonal_steps[start]]
            at = start + size_in * size_out
        if at < weights.shape[1]:
            parts.append(steps[:, at:])
        weights.addcmul_(torch.cat(parts, 1), lr, value=-1)

    def orthogonalise(self, ahead: Tensor) -> dict[int, Tensor]:
        """Return start of a matrix -> its step (K, in * out), from rows (K, P). Matrices of one shape are orthogonalised together."""
        steps: dict[int, Tensor] = {}
        for shape in dict.fromkeys((size_in, size_out) for _, size_in, size_out in self.matrices):
            starts, size = [matrix[0] for matrix in self.matrices if matrix[1:] == shape], math.prod(shape)
            batch = torch.cat([ahead[:, start : start + size] for start in starts], 1).reshape(-1, *shape)
            moves = orthogonal(batch, self.rounds, self.eps).reshape(-1, len(starts), size) * self.factor(*shape)
            steps |= {start: moves[:, i] for i, start in enumerate(starts)}
        return steps

    def factor(self, size_in: int, size_out: int) -> float:
        """Return s for a matrix of this shape."""
        return (
            0.2 * math.sqrt(max(size_in, size_out)) if self.scale == "rms" else math.sqrt(max(1.0, size_out / size_in))
        )


def orthogonal(x: Tensor, rounds: int, eps: float) -> Tensor:
    """Return matrices (K, m, n) with the same singular vectors, and singular values near one."""
    tall = x.shape[1] > x.shape[2]
    x = x.transpose(1, 2) if tall else x  # the smaller of the two products
    x = x / (x.square().sum((1, 2), keepdim=True).sqrt() + eps)
    for _ in range(rounds):
        square = torch.bmm(x, x.transpose(1, 2))
        x = A * x + torch.bmm(B * square + C * torch.bmm(square, square), x)
    return x.transpose(1, 2) if tall else x
