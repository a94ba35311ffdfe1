"""Build and train small language models for the experiments of claims: one network at a time, on new texts for every step."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from rankfall import Network, Shape, build_network
from studies.claims.descent import descend
from studies.claims.parts import PRE_NORM
from studies.claims.untrained import design

Draw = Callable[[int], tuple[Tensor, Tensor]]  # step -> inputs and targets (B, T); a target of -1 is ignored


def model(seed: int, tokens: int, symbols: int, **fields: Any) -> Network:
    """Return a pre-norm transformer of one layer in float32, for texts of `symbols` symbols. `fields` override its architecture."""
    defaults = PRE_NORM | {"embedding": "token", "head": "classifier", "mlp": "gelu"}
    shape = Shape("tokens", "classes", length=tokens, size_in=symbols, size_out=symbols)
    network = build_network(design(defaults | fields), shape, 1, torch.float32)
    network.initialise([seed])
    return network


def train(network: Network, draw: Draw, steps: int, rate: float = 3e-3) -> Iterator[int]:
    """Train on the cross-entropy, and yield the number of steps taken, 0 first."""
    return descend(network.parameters(), lambda step: grade(network, *draw(step))[0], steps, rate)


def grade(network: Network, inputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean cross-entropy in nats, and the share of right answers, over the targets."""
    scores = network(inputs[None])[0].flatten(0, 1)  # (B T, symbols)
    counted = targets.flatten() >= 0
    scores, labels = scores[counted], targets.flatten()[counted]
    return cross_entropy(scores, labels), (scores.argmax(-1) == labels).float().mean()
