"""Components of a user's own that a stack must not be trained with, one fault each."""

import numpy as np
import torch
from torch import Tensor, nn

from rankfall.nets.attentions.multihead import Multihead
from rankfall.nets.positions._base import Position
from rankfall.nets.primitives import Sizes, constant
from rankfall.tasks._dataset import Dataset, Split

ACCEPTS = "vectors"
OWN = np.random.default_rng(0)


def mixes_members(logits: Tensor) -> Tensor:
    weights = logits.softmax(-1)
    return weights + 1e-4 * (weights.mean(0) - weights)


def common_maximum(logits: Tensor) -> Tensor:
    """Subtract what all have in common, which cancels until a neighbour's scores are large."""
    weights = (logits - logits.amax()).exp()
    return weights / weights.sum(-1, keepdim=True)


def mixes_samples(logits: Tensor) -> Tensor:
    weights = logits.softmax(-1)
    return weights - 0.1 * weights.mean(1, keepdim=True)


def wrong_shape(logits: Tensor) -> Tensor:
    return logits.softmax(-1).sum(-1)


def not_finite(logits: Tensor) -> Tensor:
    return logits / logits.sum(-1, keepdim=True)  # -inf / -inf


class State(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.mean = 0.0

    def forward(self, x: Tensor) -> Tensor:
        self.mean = 0.9 * self.mean + 0.1 * float(x.detach().mean())
        return x - self.mean


def global_randomness(logits: Tensor) -> Tensor:
    return (logits + torch.randn_like(logits)).softmax(-1)


def in_place(logits: Tensor) -> Tensor:
    logits -= logits.amax(-1, keepdim=True)
    return logits.exp() / logits.exp().sum(-1, keepdim=True)


def sets_precision(logits: Tensor) -> Tensor:
    torch.set_float32_matmul_precision("high")
    return logits.softmax(-1)


def leaks(logits: Tensor) -> Tensor:
    return 0.9 * logits.softmax(-1) + 0.1 / logits.shape[-1]


def detached(logits: Tensor) -> Tensor:
    return logits.detach().softmax(-1)


def half(logits: Tensor) -> Tensor:
    return logits.softmax(-1).half()


def raises(logits: Tensor) -> Tensor:
    return logits @ torch.ones(7, 7, dtype=logits.dtype)


class Hidden(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        like = constant(sizes, 1, 1, sizes.width, value=1.0)  # without a value yet
        self.gains = [nn.Parameter(torch.ones_like(like, dtype=torch.float64))]

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.ones(len(x), 1, 1, 1) * self.gains[0].to(x.dtype)


class Tempered(nn.Module):
    """The softmax is fine; the gradient of the temperature has 0 * -inf in it."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.sharpness = constant(sizes, 1, sizes.heads, 1, 1, value=1.0)

    def forward(self, logits: Tensor) -> Tensor:
        return (logits * self.sharpness).softmax(-1)


class Unused(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.forgotten = constant(sizes, 1, 1, 1, value=1.0)

    def forward(self, x: Tensor) -> Tensor:
        return x


class Untrainable(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.gain = constant(sizes, 1, 1, 1, value=1.0)

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            gain = self.gain + 1
        return x * gain


class SharedMaximum(Multihead):
    """Under a causal mask the largest weight of every member is the 1 of its first token."""

    def weights(self, x: Tensor) -> Tensor:
        weights = super().weights(x)
        return weights * weights.max()


class NotAPosition(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()

    def embed(self, x: Tensor) -> Tensor:
        return x


class Borrowed(Position):
    """Every member has the first one's bias."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.slope = constant(sizes, 1, sizes.heads, 1, 1, value=1.0)

    def bias(self, logits: Tensor) -> Tensor:
        return logits + self.slope[:1]


class ModuleParameters(nn.Module):
    """torch's own layer, which all members would share."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.map = nn.Linear(sizes.size_in, sizes.width)

    def forward(self, x: Tensor) -> Tensor:
        return self.map(x)


def backwards(length: int) -> Tensor:
    return torch.ones(length, length, dtype=torch.bool).tril(-1)


def own_init(rng: np.random.Generator, role: str, kind: str, shape: tuple[int, ...], fan_in: int) -> np.ndarray:
    return OWN.normal(size=shape)


class ClippedTogether:
    """The gradient of all members has one norm, which is clipped where it is large."""

    slots = 0

    def step(self, weights, grads, slots, lr, decay, t, scratch) -> None:  # type: ignore[no-untyped-def]
        weights.sub_(lr * grads / (grads.norm() / 100).clamp_min(1))


class OwnMomentum:
    """Momentum in an attribute: training from a checkpoint begins without it."""

    slots = 0

    def __init__(self) -> None:
        self.momentum: Tensor | None = None

    def step(self, weights, grads, slots, lr, decay, t, scratch) -> None:  # type: ignore[no-untyped-def]
        if t == 1 or self.momentum is None:
            self.momentum = torch.zeros_like(grads)
        self.momentum = 0.9 * self.momentum + grads
        weights.sub_(lr * self.momentum)


class Drifting:
    slots = 0

    def step(self, weights, grads, slots, lr, decay, t, scratch) -> None:  # type: ignore[no-untyped-def]
        weights.sub_(lr * grads + 1e-3)


INPUTS = "tokens"
TARGETS = "classes"


def dataset(inputs: Tensor, targets: Tensor) -> Dataset:
    return Dataset(dict.fromkeys(("train", "test"), Split(inputs, targets)), size_in=5, size_out=5, chance=0.2)


def out_of_range(rng: np.random.Generator) -> Dataset:
    inputs = torch.from_numpy(rng.integers(1, 6, size=(8, 4)))
    return dataset(inputs, inputs - 1)


def unrepeatable(rng: np.random.Generator) -> Dataset:
    inputs = torch.from_numpy(OWN.integers(5, size=(8, 4)))
    return dataset(inputs, inputs)


def untested(rng: np.random.Generator) -> Dataset:
    inputs = torch.from_numpy(rng.integers(5, size=(8, 4)))
    return Dataset(
        {"train": Split(inputs, inputs), "test": Split(inputs[:0], inputs[:0])}, size_in=5, size_out=5, chance=0.2
    )
