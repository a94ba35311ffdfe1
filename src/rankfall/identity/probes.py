"""Probes: K maps g from hidden states back to input embeddings, with a leading member axis, trained by `fit` as one stack.

Each member starts at the ridge regression of its states, so a linear map with the L2 loss starts at its optimum. Training matters for
the other loss and for hidden units. States enter a probe centred and decorrelated, z = (e - mean) V (s + ridge)^(-1/2) with eigenvalues
s and eigenvectors V of their covariance. This does not change what linear maps and hidden units can express, and lets training converge
in a few epochs.
"""

import itertools
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu

from rankfall.random_streams import stream

RIDGES = (1e-6, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)  # times the mean eigenvalue; chosen on the validation sentences


@dataclass(frozen=True)
class Start:
    """Initial map of a probe of one network and layer."""

    mean: Tensor  # (D,) mean of the states
    basis: Tensor  # (D, D): z = (e - mean) @ basis
    slope: Tensor  # (D, D): the least-squares map of z
    offset: Tensor  # (D,)

    def enter(self, states: Tensor) -> Tensor:
        """Return the probe's input for states (..., D), in float32. The subtraction is in float64, since states may be nearly equal."""
        return ((states.double() - self.mean) @ self.basis).float()


def least_squares(train: tuple[Tensor, Tensor], validation: tuple[Tensor, Tensor]) -> Start:
    """Fit the best linear map of states (N, D) to targets (N, D), of the form c I + M with a ridge on M.

    c is zero or the best value for M = 0. The validation tokens choose c and the ridge.
    """
    x, y = (part.double() for part in train)
    seen, wanted = (part.double() for part in validation)
    mean, offset = x.mean(0), y.mean(0)
    x, y, seen = x - mean, y - offset, seen - mean
    covariance, cross = x.T @ x / len(x), x.T @ y / len(x)  # (D, D)
    values, vectors = torch.linalg.eigh(covariance)
    values = values.clamp_min(0.0)
    scale = values.mean().clamp_min(torch.finfo(torch.float64).tiny)
    turned = seen @ vectors  # (N', D)

    def slope(factor: float, ridge: float) -> Tensor:
        """Return V^T (c I + M), which maps states that are rotated by V."""
        rest = vectors.T @ (cross - factor * covariance)
        return factor * vectors.T + rest / (values + ridge * scale).unsqueeze(1)

    def loss(choice: tuple[float, float]) -> float:
        return float((turned @ slope(*choice) + offset - wanted).square().sum(-1).mean())

    same = float(cross.trace() / (values.sum() + torch.finfo(torch.float64).tiny))
    factor, ridge = min(itertools.product((0.0, same), RIDGES), key=loss)
    root = (values + ridge * scale).sqrt()
    return Start(mean, vectors / root, slope(factor, ridge) * root.unsqueeze(1), offset)


class Probes(nn.Module):
    """g(z) = z A + b, with `hidden` units + gelu(z U + u) W beside the linear part. W starts at zero, so member k starts as its `Start`."""

    def __init__(self, starts: list[Start], seeds: list[int], hidden: int = 0) -> None:
        super().__init__()
        self.slope = nn.Parameter(torch.stack([one.slope for one in starts]).float())  # (K, D, D)
        self.offset = nn.Parameter(torch.stack([one.offset for one in starts]).float().unsqueeze(1))  # (K, 1, D)
        self.hidden = hidden
        if hidden:
            size_in, size_out = starts[0].slope.shape
            drawn = [
                stream(seed, "token_identity", "hidden").normal(0.0, size_in**-0.5, (size_in, hidden)) for seed in seeds
            ]
            self.inner = nn.Parameter(torch.stack([torch.from_numpy(one).float() for one in drawn]))  # (K, D, H)
            self.bend = nn.Parameter(torch.zeros(len(starts), 1, hidden))
            self.outer = nn.Parameter(torch.zeros(len(starts), hidden, size_out))

    def forward(self, z: Tensor) -> Tensor:
        """Map (K, B, D) to the same shape."""
        y = torch.baddbmm(self.offset, z, self.slope)
        if self.hidden:
            y = y + torch.bmm(gelu(torch.baddbmm(self.bend, z, self.inner)), self.outer)
        return y

    def map_member(self, member: int, z: Tensor) -> Tensor:
        """Map z (R, D) by one member."""
        y = z @ self.slope[member] + self.offset[member]
        if self.hidden:
            y = y + gelu(z @ self.inner[member] + self.bend[member]) @ self.outer[member]
        return y
