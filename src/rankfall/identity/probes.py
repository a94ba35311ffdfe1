"""Probes: maps g from hidden states back to input embeddings, with a leading member axis.

Each member starts at the ridge regression of its states, so a linear map with the L2 loss starts at its optimum. Training matters for
the other loss and for hidden units. States enter a probe centred and decorrelated, z = (e - mean) V (s + ridge)^(-1/2) with eigenvalues
s and eigenvectors V of their covariance. This does not change what linear maps and hidden units can express, and lets training converge
in a few epochs.

Probes of all networks, layers and losses are trained in one stack, or in several if memory requires it. The weights of the best
validation epoch are kept.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity, gelu

from rankfall.nets.primitives import Dropout, no_dropout
from rankfall.random_streams import stream
from rankfall.tasks._dataset import Split
from rankfall.train.data import Data, steps_per_epoch
from rankfall.train.loop import (
    Checkpoint,
    Course,
    TrainingHistory,
    add_prefix,
    evaluate,
    fit,
    restore,
    state_of,
    strip_prefix,
)
from rankfall.train.members import Hyperparameters, Members
from rankfall.train.objectives._base import Graded, Samples
from rankfall.train.optimizers.adam import Adam
from rankfall.train.schedules.cosine import cosine

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
    held_out, expected = (part.double() for part in validation)
    mean, offset = x.mean(0), y.mean(0)
    x, y, held_out = x - mean, y - offset, held_out - mean
    covariance, cross = x.T @ x / len(x), x.T @ y / len(x)  # (D, D)
    values, vectors = torch.linalg.eigh(covariance)
    values = values.clamp_min(0.0)
    scale = values.mean().clamp_min(torch.finfo(torch.float64).tiny)
    turned = held_out @ vectors  # (N', D)

    def slope(factor: float, ridge: float) -> Tensor:
        """Return V^T (c I + M), which maps states that are rotated by V."""
        correction = vectors.T @ (cross - factor * covariance)
        return factor * vectors.T + correction / (values + ridge * scale).unsqueeze(1)

    def loss(choice: tuple[float, float]) -> float:
        return float((turned @ slope(*choice) + offset - expected).square().sum(-1).mean())

    same = float(cross.trace() / (values.sum() + torch.finfo(torch.float64).tiny))
    factor, ridge = min(itertools.product((0.0, same), RIDGES), key=loss)
    root = (values + ridge * scale).sqrt()
    return Start(mean, vectors / root, slope(factor, ridge) * root.unsqueeze(1), offset)


class Probes(nn.Module):
    """g(z) = z A + b, with `hidden` units + gelu(z U + u) W beside the linear part. W starts at zero, so member k starts as its `Start`."""

    def __init__(self, starts: list[Start], seeds: list[int], hidden: int = 0) -> None:
        super().__init__()
        self.slope = nn.Parameter(torch.stack([start.slope for start in starts]).float())  # (K, D, D)
        self.offset = nn.Parameter(torch.stack([start.offset for start in starts]).float().unsqueeze(1))  # (K, 1, D)
        self.hidden = hidden
        if hidden:
            size_in, size_out = starts[0].slope.shape
            drawn = [
                stream(seed, "token_identity", "hidden").normal(0.0, size_in**-0.5, (size_in, hidden)) for seed in seeds
            ]
            self.inner = nn.Parameter(torch.stack([torch.from_numpy(x).float() for x in drawn]))  # (K, D, H)
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


LOSSES = ("cosine", "l2")
VALIDATION = "validation"
STACK_BYTES = 2**29  # limit on the tensors that training holds for a stack of probes


@dataclass(frozen=True)
class Recipe:
    """Training recipe of probes."""

    epochs: int = 10
    batch: int = 256  # tokens
    lr: float = 3e-4
    hidden: int = 0  # units of the hidden layer; 0: a linear map


@dataclass(frozen=True)
class KnownTokens:
    """Training data of the probes of one network: the states of its tokens in every layer, and their embeddings."""

    seed: int  # seeds the order of the tokens and the initial values of hidden units
    states: Tensor  # (L, N, D): first the tokens to train on, then those to validate on
    embeddings: Tensor  # (N, D)
    train: int  # how many tokens to train on

    def parts(self, layer: int, scale: float) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        """Return (states, scaled embeddings) to train on and to validate on."""
        x, y = self.states[layer], self.embeddings / scale
        return (x[: self.train], y[: self.train]), (x[self.train :], y[self.train :])


@dataclass(frozen=True)
class Probe:
    """One member of a trained stack. `epoch` is the one with the best validation loss, 0 the start."""

    source: int
    layer: int
    loss: str
    epoch: int
    start: Start
    scale: float  # size of the embeddings of its source


@dataclass(frozen=True)
class Trained:
    """Trained probes of one kind, in stacks of one size; the last may be smaller."""

    stacks: list[Probes]
    probes: list[Probe]

    @torch.no_grad()
    def map(self, member: int, states: Tensor) -> Tensor:
        """Return g(e) of one member for states (..., D) of any layer, in the units of the embeddings."""
        probe = self.probes[member]
        z = probe.start.enter(states)
        stack, place = divmod(member, len(self.stacks[0].slope))
        mapped = self.stacks[stack].map_member(place, z.flatten(0, -2)).unflatten(0, z.shape[:-1])
        return mapped * probe.scale


@dataclass(frozen=True)
class Recovery:
    """Objective of the probes. A batch holds token numbers that index states and embeddings, so that members of one source share them."""

    seen: Tensor  # (S, N, D) states as they enter the probes
    wanted: Tensor  # (networks, N, D) embeddings of size one
    layer: Tensor  # (K,): row of `seen`
    network: Tensor  # (K,): row of `wanted`
    angular: Tensor  # (K, 1): True for the cosine distance, False for the squared distance

    def __call__(self, module: nn.Module, batch: Samples, drop: Dropout = no_dropout) -> Graded:
        index = batch.inputs.squeeze(-1)  # (K, B)
        mapped = module(self.seen[self.layer.unsqueeze(1), index])  # (K, B, D)
        wanted = self.wanted[self.network.unsqueeze(1), index]
        square = (mapped - wanted).square().mean(-1)
        loss = torch.where(self.angular, 1 - cosine_similarity(mapped, wanted, dim=-1), square)  # (K, B)
        return Graded(loss.mean(1), torch.full((len(loss),), loss.shape[1], device=loss.device))


def recover(
    sources: Sequence[KnownTokens], recipes: Mapping[str, Recipe], checkpoint: Checkpoint
) -> dict[str, Trained]:
    """Train, for each recipe, a probe for every network, layer and loss. All sources have the same shapes.

    In the checkpoint, a stack is named by its recipe in `recipes` and by the number of its first probe.
    """
    layers = range(len(sources[0].states))
    scales = [size(source.embeddings[: source.train]) for source in sources]
    starts = [least_squares(*source.parts(layer, scale)) for source, scale in zip(sources, scales) for layer in layers]
    probes = [
        Probe(number, layer, loss, 0, starts[number * len(layers) + layer], scales[number])
        for number in range(len(sources))
        for layer in layers
        for loss in LOSSES
    ]
    states = [source.states[layer] for source in sources for layer in layers]
    objective = Recovery(
        seen=torch.stack([start.enter(x) for start, x in zip(starts, states)]),
        wanted=torch.stack([(source.embeddings / scale).float() for source, scale in zip(sources, scales)]),
        layer=torch.tensor([probe.source * len(layers) + probe.layer for probe in probes]),
        network=torch.tensor([probe.source for probe in probes]),
        angular=torch.tensor([[probe.loss == "cosine"] for probe in probes]),
    )
    train, tokens = sources[0].train, len(sources[0].embeddings)
    trained = {}
    for name, recipe in recipes.items():
        count = at_once(len(sources[0].states[0, 0]), recipe.hidden)
        stacks, ended = [], []
        for first in range(0, len(probes), count):
            part = probes[first : first + count]
            seeds = [sources[probe.source].seed for probe in part]
            module = Probes([probe.start for probe in part], seeds, recipe.hidden)
            numbers = torch.arange(tokens).view(1, -1, 1).expand(len(part), -1, -1)  # tokens by number
            splits = {"train": numbers[:, :train], VALIDATION: numbers[:, train:]}
            data = Data({split: Split(indices, indices) for split, indices in splits.items()})
            fields = {
                field: getattr(objective, field)[first : first + count] for field in ("layer", "network", "angular")
            }
            stack_objective = replace(objective, **fields)
            kept = train_stack(module, seeds, stack_objective, data, recipe, checkpoint, f"{name} {first}")
            stacks.append(module)
            ended += [replace(probe, epoch=epoch) for probe, epoch in zip(part, kept.tolist())]
        trained[name] = Trained(stacks, ended)
    return trained


def at_once(width: int, hidden: int) -> int:
    """Return how many probes are trained together: each has weights, the best weights, two gradients, two moments and a scratch tensor."""
    parameters = width * (width + 1) + hidden * (2 * width + 1)
    return max(1, STACK_BYTES // (7 * 4 * parameters))


def size(values: Tensor) -> float:
    """Return the root mean square, or 1 if it is zero."""
    return float(values.double().square().mean().sqrt()) or 1.0


def train_stack(
    module: Probes,
    seeds: Sequence[int],
    objective: Recovery,
    data: Data,
    recipe: Recipe,
    checkpoint: Checkpoint,
    name: str,
) -> Tensor:
    """Train a stack. Leave each member with the weights of its best validation epoch, and return these epochs (K,)."""
    members = Members(module, seeds, Adam(), [Hyperparameters(lr=recipe.lr, schedule=cosine)] * len(seeds))
    history = TrainingHistory(len(members), recipe.epochs, members.device)
    best = {
        "weights": members.weights.clone(),
        "loss": validate(members, data, objective),
        "epoch": torch.zeros(len(seeds), dtype=torch.int64),
    }
    saved = checkpoint.load(name)
    if saved is not None:
        restore(members, history, saved)
        best = strip_prefix("best", saved)
    steps = steps_per_epoch(data.samples, recipe.batch)

    def after_step() -> None:
        if members.step_count % steps == 0:
            loss = validate(members, data, objective)
            better = loss < best["loss"]
            best["weights"][better], best["loss"][better] = members.weights[better], loss[better]
            best["epoch"][better] = members.step_count // steps
        checkpoint.after_step(name, members.step_count, lambda: state_of(members, history) | add_prefix("best", best))

    fit(members, data, objective, Course(recipe.epochs, recipe.batch), history, after_step)
    members.weights.copy_(best["weights"])
    return best["epoch"]


def validate(members: Members, data: Data, objective: Recovery) -> Tensor:
    """Return the validation losses (K,)."""
    sums = evaluate(members, data, objective, VALIDATION)
    return sums["loss"] / sums["asked"]
