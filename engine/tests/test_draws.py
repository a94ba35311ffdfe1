"""Guards that random numbers that a step draws are those of seed and step by each engine, and have the distributions of PyTorch."""

import math
from typing import Any

import pytest
import torch
from known_modules import Checkpointed, cross_entropy, images, mlp, vectors
from torch import Tensor, nn
from torch.distributions import Bernoulli, Normal
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from thousandfold import explain, train_many

SEEDS, STEPS = (3, 4, 9), 5


class Autoencoder(nn.Module):
    """A variational autoencoder. Its draws have gradients by the reparametrisation of `torch.distributions`."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = nn.Linear(5, 8), nn.Linear(4, 5)

    def forward(self, x: Tensor) -> Any:
        mean, log = self.encoder(x).chunk(2, -1)
        normal = Normal(mean, (0.5 * log).exp())
        return self.decoder(normal.rsample()), torch.distributions.kl_divergence(normal, Normal(0.0, 1.0)).mean()


def evidence(module: nn.Module, batch: Any) -> Any:
    reconstruction, divergence = module(batch[0])
    return F.mse_loss(reconstruction, batch[0]) + 0.1 * divergence


class NoisyLinear(nn.Linear):
    """A layer with factorised noise on its weights (Fortunato et al. 2018)."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs)
        self.size = nn.Parameter(torch.full((outputs, inputs), 0.5))

    def forward(self, x: Tensor) -> Any:
        left, right = (torch.randn(size, dtype=x.dtype) for size in self.weight.shape)
        left, right = (part.sign() * part.abs().sqrt() for part in (left, right))
        return F.linear(x, self.weight + self.size * left.outer(right), self.bias + left)


class NoisyMlp(nn.Module):
    """An MLP with noise, dropout and dropped samples between its layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(5, 16), nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Any:
        h = F.dropout(self.first(x).tanh(), 0.2)
        h = h + 0.1 * torch.randn_like(h) * torch.rand_like(h[:, :1])
        return self.second(F.dropout(h, 0.1) * torch.bernoulli(h.new_full((len(h), 1), 0.9)))


class NoisyCnn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.head = nn.Conv2d(1, 2, 3), nn.Linear(32, 3)

    def forward(self, x: Tensor) -> Any:
        h = self.layer(x)
        return self.head((Normal(h, 0.5).rsample() + torch.randn_like(h)).flatten(1))


MODULES: dict[str, tuple[Any, Any, Any, str]] = {
    "autoencoder": (Autoencoder, evidence, vectors, "program"),
    "noisy weights": (
        lambda: nn.Sequential(NoisyLinear(5, 8), nn.ReLU(), NoisyLinear(8, 3)),
        cross_entropy,
        vectors,
        "program",
    ),
    "noisy mlp": (NoisyMlp, cross_entropy, vectors, "program"),
    "noisy cnn": (NoisyCnn, cross_entropy, images, "stack"),
}


@pytest.mark.parametrize("name", MODULES)
def test_each_engine_draws_the_same_for_each_member_as_if_it_were_alone(name: str) -> None:
    make, loss, batches, engine = MODULES[name]
    arguments = lambda seed: make().double(), loss, batches
    result = train_many(*arguments, seeds=SEEDS, steps=STEPS)
    assert result.engine == engine, result.reason
    alone = [train_many(*arguments, seeds=[seed], steps=STEPS, engine="loop") for seed in SEEDS]
    for k, other in enumerate(alone):
        torch.testing.assert_close(result.losses[:, k], other.losses[:, 0], rtol=1e-9, atol=1e-12)
        torch.testing.assert_close(result.state["weights"][k], other.state["weights"][0], rtol=1e-9, atol=1e-12)
    begun = train_many(*arguments, seeds=SEEDS, steps=2)
    assert torch.equal(train_many(*arguments, seeds=SEEDS, steps=STEPS, resume=begun.state).losses, result.losses[2:])


COUNT = 20_000
# What is drawn, and its mean and variance.
DRAWN: dict[str, tuple[Any, float, float]] = {
    "randn": (lambda x: torch.randn(len(x), COUNT, dtype=x.dtype), 0, 1),
    "rand": (lambda x: torch.rand((len(x), COUNT), dtype=x.dtype), 1 / 2, 1 / 12),
    "randn_like": (lambda x: torch.randn_like(x), 0, 1),
    "rand_like": (lambda x: torch.rand_like(x), 1 / 2, 1 / 12),
    "normal": (lambda x: torch.normal(3 + 0 * x, 2.0), 3, 4),
    "normal of a size": (lambda x: torch.normal(3.0, 2.0, (len(x), COUNT)), 3, 4),
    "bernoulli": (lambda x: torch.bernoulli(x, 0.3), 0.3, 0.21),
    "bernoulli by tensors": (lambda x: (0 * x + 0.3).bernoulli(), 0.3, 0.21),
    "bernoulli_": (lambda x: torch.empty_like(x, dtype=torch.bool).bernoulli_(0.3).to(x.dtype), 0.3, 0.21),
    "normal_": (lambda x: torch.empty_like(x).normal_(3, std=2), 3, 4),
    "uniform_": (lambda x: x.new_empty(x.shape).uniform_(-1, 5), 2, 3),
    "exponential_": (lambda x: torch.empty_like(x).exponential_(0.5), 2, 4),
    "gumbel": (lambda x: -torch.empty_like(x).exponential_().log(), 0.5772, math.pi**2 / 6),
    "samples": (lambda x: Normal(3 + 0 * x, 2 + 0 * x).sample(), 3, 4),
    "samples of booleans": (lambda x: Bernoulli(0.3 + 0 * x).sample(), 0.3, 0.21),
}


@pytest.mark.parametrize("name", DRAWN)
def test_numbers_have_the_distribution_that_pytorch_draws(name: str) -> None:
    draw, mean, variance = DRAWN[name]

    def loss(module: nn.Module, x: Tensor) -> Any:
        drawn = draw(x)
        assert drawn.shape == x.shape
        return module(x[:, :1]).square().mean(), {"mean": drawn.mean(), "square": (drawn - mean).square().mean()}

    batches = lambda step, seed: torch.zeros(2, COUNT) + step  # noqa: E731
    arguments = lambda seed: nn.Linear(1, 1), loss, batches
    result = train_many(*arguments, seeds=SEEDS, steps=2)
    assert result.engine == "program", result.reason
    bound = 5 * (variance / (2 * COUNT)) ** 0.5  # five deviations
    assert ((result.metrics["mean"] - mean).abs() < bound).all()
    assert (result.metrics["square"] / variance - 1).abs().max() < 0.1
    assert len(set(result.metrics["mean"].flatten().tolist())) == 6, "each member and step draws its own numbers"
    looped = train_many(*arguments, seeds=SEEDS, steps=2, engine="loop")
    torch.testing.assert_close(looped.metrics["mean"], result.metrics["mean"], rtol=1e-5, atol=1e-6)


def test_numbers_of_a_generator_of_the_user_and_complex_ones_are_left_to_pytorch() -> None:
    def loss(module: nn.Module, batch: Any) -> Any:
        own = torch.randn(3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        spin = torch.randn(COUNT, dtype=torch.complex128)
        return cross_entropy(module, batch) * own.square().sum(), {"spin": spin.imag.square().mean()}

    result = train_many(lambda seed: mlp().double(), loss, vectors, seeds=SEEDS, steps=1)
    alone = train_many(lambda seed: mlp().double(), cross_entropy, vectors, seeds=SEEDS, steps=1)
    size = torch.randn(3, generator=torch.Generator().manual_seed(1), dtype=torch.float64).square().sum()
    assert result.engine == "loop"
    torch.testing.assert_close(result.losses, alone.losses * size)
    assert (result.metrics["spin"] - 0.5).abs().max() < 0.05


def test_integers_stand_in_the_way() -> None:
    def loss(module: nn.Module, batch: Any) -> Any:
        return cross_entropy(module, batch) * torch.randint(1, 3, ())

    explanation = explain(lambda seed: mlp().double(), loss, vectors(0, 0))
    assert explanation.engine == "loop" and "randint" in explanation.reason and "test_draws.py" in explanation.where


@pytest.mark.parametrize("draw", [lambda h: F.dropout(h, 0.3), lambda h: h + torch.randn_like(h)])
def test_a_part_that_runs_again_in_the_backward_pass_draws_the_same_again(draw: Any) -> None:
    class Again(Checkpointed):
        def __init__(self, again: bool) -> None:
            super().__init__()
            self.again = again

        def forward(self, x: Tensor) -> Any:
            part = lambda state: draw(self.layer(draw(state)).tanh())  # noqa: E731
            return self.head(draw(x) + (checkpoint(part, x, use_reentrant=False) if self.again else part(x)))

    def train(again: bool) -> Any:
        return train_many(lambda seed: Again(again).double(), cross_entropy, vectors, seeds=SEEDS, steps=STEPS)

    again, once = train(True), train(False)
    assert (again.engine, once.engine) == ("loop", "program")
    torch.testing.assert_close(again.state["weights"], once.state["weights"], rtol=1e-9, atol=1e-12)
