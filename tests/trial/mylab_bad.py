"""Components of a user's own that a stack must not be trained with, one fault each."""

import time

import numpy as np
import torch
from torch import Tensor, nn

from rankfall.nets.blocks.attention import Attention as Block
from rankfall.nets.dropout import Dropout, no_dropout
from rankfall.nets.positions._base import Position
from rankfall.nets.primitives import Linear, Sizes, constant
from rankfall.tasks._dataset import Dataset, Split

ACCEPTS = "vectors"
OWN = np.random.default_rng(0)


def mixes_members(logits: Tensor) -> Tensor:
    weights = logits.softmax(-1)
    return weights + 1e-4 * (weights.mean(0) - weights)


def common_maximum(logits: Tensor) -> Tensor:
    """What all have in common cancels, until a neighbour's scores are large."""
    weights = (logits - logits.amax()).exp()
    return weights / weights.sum(-1, keepdim=True)


def maximum_of_samples(logits: Tensor) -> Tensor:
    weights = (logits - logits.amax((1, 2, 3, 4), keepdim=True)).exp()
    return weights / weights.sum(-1, keepdim=True)


def mixes_samples(logits: Tensor) -> Tensor:
    weights = logits.softmax(-1)
    return weights - 0.1 * weights.mean(1, keepdim=True)


def wrong_shape(logits: Tensor) -> Tensor:
    return logits.softmax(-1).sum(-1)


def not_finite(logits: Tensor) -> Tensor:
    return logits / logits.sum(-1, keepdim=True)  # -inf / -inf


def function_for_class(x: Tensor) -> Tensor:
    return x.relu()


class ClassForFunction(nn.Module):
    def forward(self, x: Tensor, branch: Tensor, depth: int) -> Tensor:
        return x + branch


class RawParameter(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.temperature = nn.Parameter(torch.ones(1))

    def forward(self, logits: Tensor) -> Tensor:
        return (logits * self.temperature).softmax(-1)


class State(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.mean = 0.0

    def forward(self, x: Tensor) -> Tensor:
        self.mean = 0.9 * self.mean + 0.1 * float(x.detach().mean())
        return x - self.mean


def own_randomness(logits: Tensor) -> Tensor:
    return (logits + torch.from_numpy(OWN.normal(size=logits.shape[-1])).to(logits)).softmax(-1)


def global_randomness(logits: Tensor) -> Tensor:
    return (logits + torch.randn_like(logits)).softmax(-1)


def in_place(logits: Tensor) -> Tensor:
    logits -= logits.amax(-1, keepdim=True)
    return logits.exp() / logits.exp().sum(-1, keepdim=True)


def sets_precision(logits: Tensor) -> Tensor:
    torch.set_float32_matmul_precision("high")
    return logits.softmax(-1)


def sets_tf32(logits: Tensor) -> Tensor:
    torch.backends.cuda.matmul.allow_tf32 = True
    return logits.softmax(-1)


def sets_dtype(logits: Tensor) -> Tensor:
    torch.set_default_dtype(torch.float64)
    return logits.softmax(-1)


def sets_deterministic(logits: Tensor) -> Tensor:
    torch.use_deterministic_algorithms(True)
    return logits.softmax(-1)


def slow(logits: Tensor) -> Tensor:
    time.sleep(0.15)
    return logits.softmax(-1)


def leaks(logits: Tensor) -> Tensor:
    return 0.9 * logits.softmax(-1) + 0.1 / logits.shape[-1]


def detached(logits: Tensor) -> Tensor:
    return logits.detach().softmax(-1)


def half(logits: Tensor) -> Tensor:
    return logits.softmax(-1).half()


def raises(logits: Tensor) -> Tensor:
    return logits @ torch.ones(7, 7, dtype=logits.dtype)


def by_members(x: Tensor) -> Tensor:
    return x / len(x)


class Unused(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.map, self.spare = Linear(sizes, sizes.width, sizes.width, "mlp"), constant(sizes, 1, value=1.0)

    def forward(self, x: Tensor) -> Tensor:
        return self.map(x)


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


class CommonGain(nn.Module):
    """The parameters of all members are shifted by their common maximum, and shifted back by each member's own sum."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.gain = constant(sizes, 1, 1, sizes.width, value=1.0)

    def forward(self, x: Tensor) -> Tensor:
        shares = (self.gain - self.gain.amax()).exp()
        return x * shares / shares.sum(-1, keepdim=True)


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


class FirstOnly(nn.Module):
    """The first sample's values for all of them."""

    def __init__(self, sizes: Sizes, position: Position, normaliser: object, mask: object, site: str) -> None:
        super().__init__()
        self.map = Linear(sizes, sizes.width, sizes.width, "value")

    def forward(self, x: Tensor, drop: object = None) -> Tensor:
        return x + self.map(x)[:, :1]


class LossyBlock(nn.Module):
    """Keeps nothing of what measures take networks apart by."""

    def __init__(self, **given: object) -> None:
        super().__init__()

    def forward(self, x: Tensor, drop: object = None) -> Tensor:
        return x


class AveragingBlock(Block):
    """The samples of a batch see their mean."""

    def forward(self, x: Tensor, drop: Dropout = no_dropout) -> Tensor:
        return super().forward(x, drop) - x.mean(1, keepdim=True)


class NarrowHead(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.map = Linear(sizes, sizes.width, 1, "head")

    def forward(self, x: Tensor) -> Tensor:
        return self.map(x)


class ModuleParameters(nn.Module):
    """torch's own layer, which all members would share."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.map = nn.Linear(sizes.size_in, sizes.width)

    def forward(self, x: Tensor) -> Tensor:
        return self.map(x)


class Uncounted(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()


def backwards(length: int) -> Tensor:
    return torch.ones(length, length, dtype=torch.bool).tril(-1)


def float_mask(length: int) -> Tensor:
    return torch.ones(length, length)


def own_init(rng: np.random.Generator, role: str, kind: str, shape: tuple[int, ...], fan_in: int) -> np.ndarray:
    return OWN.normal(size=shape)


class Together:
    """One norm for the gradient of all members."""

    slots = 0

    def step(self, weights, grads, slots, lr, decay, t, scratch) -> None:  # type: ignore[no-untyped-def]
        weights.sub_(lr * grads / grads.norm())


class CommonShares:
    """Shares of each member's gradient, whose common maximum cancels until a neighbour's is large."""

    slots = 0

    def step(self, weights, grads, slots, lr, decay, t, scratch) -> None:  # type: ignore[no-untyped-def]
        shares = (grads.abs() - grads.abs().amax()).exp()
        weights.sub_(lr * shares / shares.sum(-1, keepdim=True) * grads)


class Remembering:
    slots = 0

    def __init__(self) -> None:
        self.last: Tensor | float = 0.0

    def step(self, weights, grads, slots, lr, decay, t, scratch) -> None:  # type: ignore[no-untyped-def]
        last = self.last if isinstance(self.last, Tensor) and self.last.shape == grads.shape else 0.0
        self.last = grads + 0.9 * last
        weights.sub_(lr * self.last)


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


class Jittering:
    slots = 0

    def step(self, weights, grads, slots, lr, decay, t, scratch) -> None:  # type: ignore[no-untyped-def]
        weights.sub_(lr * (1 + 1e-3 * OWN.random()) * grads)


class Drifting:
    slots = 0

    def step(self, weights, grads, slots, lr, decay, t, scratch) -> None:  # type: ignore[no-untyped-def]
        weights.sub_(lr * grads + 1e-3)


def no_number(epoch: int, epochs: int) -> float:
    return 1 / (epochs - 1 - epoch) if epoch + 1 < epochs else float("inf")


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
