"""Ordinary modules, their losses and batches, and their training alone in plain PyTorch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

SYMBOLS, LENGTH, SAMPLES = 23, 7, 6


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.embedding = nn.Embedding(SYMBOLS, 8)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(8, SYMBOLS)

    def forward(self, x: Tensor) -> Any:
        return self.head(self.layers(self.embedding(x)))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(SYMBOLS, 6, padding_idx=0)
        self.layers = nn.LSTM(6, 8, batch_first=True)
        self.head = nn.Linear(8, SYMBOLS)

    def forward(self, x: Tensor) -> Any:
        return self.head(self.layers(self.embedding(x))[0])


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 3))


def cnn() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(16, 3))


def bert() -> nn.Module:
    from transformers import BertConfig, BertForMaskedLM

    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return BertForMaskedLM(BertConfig(vocab_size=SYMBOLS, max_position_embeddings=16, **sizes, **dropout))


def gpt2() -> nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel

    sizes = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 16, "bos_token_id": 0, "eos_token_id": 0}
    dropout = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    return GPT2LMHeadModel(GPT2Config(vocab_size=SYMBOLS, **sizes, **dropout))


class Sets(nn.Module):
    """Deep Sets with one output: its last product has a single column and no batch."""

    def __init__(self) -> None:
        super().__init__()
        self.each, self.all = nn.Linear(5, 8), nn.Linear(24, 1)

    def forward(self, x: Tensor) -> Any:
        h = self.each(x).relu()
        return self.all(torch.cat([h.mean(1), h.amax(1), h.std(1)], -1)).squeeze(-1)


class Contrastive(nn.Module):
    """Pairs of normalised vectors, with a temperature, which is a parameter without an axis."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.temperature = nn.Linear(5, 4), nn.Parameter(torch.tensor(1.0))

    def forward(self, x: Tensor) -> Any:
        one, other = (F.normalize(self.layer(part), dim=-1) for part in (x, x.roll(1, -1)))
        return one @ other.T * self.temperature.exp()


class Checkpointed(nn.Module):
    """A layer that runs again in the backward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.head = nn.Linear(5, 5), nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Any:
        return self.head(x + checkpoint(lambda state: self.layer(state).tanh(), x, use_reentrant=False))


def generator(step: int, seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(1000 * seed + step)


def vectors(step: int, seed: int) -> tuple[Tensor, Tensor]:
    x = torch.randn(SAMPLES, 5, generator=generator(step, seed), dtype=torch.float64)
    return x, (x.sum(1) > 0).long()


def images(step: int, seed: int) -> tuple[Tensor, Tensor]:
    x = torch.randn(SAMPLES, 1, 6, 6, generator=generator(step, seed), dtype=torch.float64)
    return x, (x.sum((1, 2, 3)) > 0).long()


def tokens(step: int, seed: int) -> tuple[Tensor, Tensor]:
    x = torch.randint(SYMBOLS, (SAMPLES, LENGTH), generator=generator(step, seed))
    return x, x.flip(1)


def cross_entropy(module: nn.Module, batch: Any) -> Any:
    x, y = batch
    return F.cross_entropy(module(x).flatten(0, -2), y.flatten())


def sets(step: int, seed: int) -> tuple[Tensor, Tensor]:
    x = torch.randn(SAMPLES, LENGTH, 5, generator=generator(step, seed), dtype=torch.float64)
    return x, x.amax((1, 2))


def squared_error(module: nn.Module, batch: Any) -> Any:
    x, y = batch
    return F.mse_loss(module(x), y)


def match_pairs(module: nn.Module, batch: Any) -> Any:
    scores = module(batch[0])
    return F.cross_entropy(scores, torch.arange(len(scores)))


def pick_rows(module: nn.Module, batch: Any) -> Any:
    """Return a loss with scores picked by range and index, one-hot rows of an argmax, and a distribution that checks its arguments."""
    x, y = batch
    scores = module(x)
    chosen = F.one_hot(scores.argmax(-1), 3).to(scores.dtype)
    away = torch.distributions.Normal(scores, 1.0).log_prob(chosen)
    return scores.log_softmax(-1)[range(len(y)), y].square().mean() - away.mean()


def solve_equation(module: nn.Module, batch: Any) -> Any:
    """Return how far from a solution of u' = -u the first output is. The derivative is taken in the loss."""
    x = batch[0].requires_grad_()
    u = module(x)[:, 0]
    (slope,) = torch.autograd.grad(u.sum(), x, create_graph=True)
    return (slope[:, 0] + u).square().mean()


def spread_out(module: nn.Module, batch: Any) -> Any:
    """Return a contrastive loss of distances, some of which are 0."""
    x, y = batch
    apart = torch.cdist(module(x), module(x))
    return torch.where(y[:, None] == y, apart.square(), (1 - apart).relu().square()).mean()


def adapted(module: nn.Module, batch: Any) -> Any:
    """Return the loss after a step of an inner optimiser."""
    x, y = batch
    weight = module[0].weight
    weight = weight - torch.autograd.grad((x @ weight.T).square().mean(), weight, create_graph=True)[0]
    return F.cross_entropy(x @ weight.T, y)


def of_hugging_face(module: nn.Module, batch: Any) -> Any:
    x, y = batch
    return module(input_ids=x, labels=y).loss


@dataclass(frozen=True)
class Known:
    make: Callable[[], nn.Module]
    loss: Callable[[nn.Module, Any], Any]
    batches: Callable[[int, int], Any]
    engine: str = "program"
    dtype: torch.dtype = torch.float64
    bound: float = 1e-10  # of weights after some steps, by rounding

    def build(self, seed: int) -> nn.Module:
        return self.make().to(self.dtype)


KNOWN = {
    "mlp": Known(mlp, cross_entropy, vectors),
    "encoder": Known(Encoder, cross_entropy, tokens),
    "lstm": Known(Recurrent, cross_entropy, tokens),
    "cnn": Known(cnn, cross_entropy, images, "stack"),
    "sets": Known(Sets, squared_error, sets),
    "contrastive": Known(Contrastive, match_pairs, vectors),
    "picked": Known(mlp, pick_rows, vectors),
    "grouped": Known(
        lambda: nn.Sequential(nn.Linear(5, 8), nn.GroupNorm(2, 8), nn.Linear(8, 3)), cross_entropy, vectors
    ),
    # Without a bias in the end, which changes no distance: its gradient would be rounding.
    "distances": Known(
        lambda: nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 3, bias=False)), spread_out, vectors
    ),
    "adapted": Known(mlp, adapted, vectors, "loop"),
    "checkpointed": Known(Checkpointed, cross_entropy, vectors, "loop"),
    "equation": Known(mlp, solve_equation, vectors, "loop"),
    "bert": Known(bert, of_hugging_face, tokens),
    # Its loss is computed in float32, whatever the weights are.
    "gpt2": Known(gpt2, of_hugging_face, tokens, dtype=torch.float32, bound=1e-4),
}


def train_alone(
    known: Known, seed: int, steps: int, make: Callable[[Sequence[Tensor]], torch.optim.Optimizer], clip: float = 0.0
) -> tuple[nn.Module, Tensor]:
    """The module and its losses by plain PyTorch."""
    torch.manual_seed(seed)
    module, losses = known.build(seed), []
    optimizer = make(list(module.parameters()))
    for step in range(steps):
        loss = known.loss(module, known.batches(step, seed))
        optimizer.zero_grad()
        loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(module.parameters(), clip)
        optimizer.step()
        losses.append(loss.detach())
    return module, torch.stack(losses)
