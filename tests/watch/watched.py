"""Small models that are trained while they are watched, and a training of a few steps."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import rankfall


class SelfAttention(nn.Module):
    """In the shape of nanoGPT: one matrix for queries, keys and values."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.heads = heads

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.c_attn(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).flatten(2))


class GptBlock(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.ln_1, self.attn, self.ln_2 = nn.LayerNorm(width), SelfAttention(width, heads), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.drop = nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.drop(self.attn(self.ln_1(x)))
        return x + self.drop(self.mlp(self.ln_2(x)))


class Gpt(nn.Module):
    def __init__(self, depth: int = 3, width: int = 16, heads: int = 2, words: int = 11) -> None:
        super().__init__()
        parts = {"wte": nn.Embedding(words, width), "h": nn.ModuleList(GptBlock(width, heads) for _ in range(depth))}
        self.transformer = nn.ModuleDict({**parts, "ln_f": nn.LayerNorm(width)})
        self.lm_head = nn.Linear(width, words, bias=False)
        self.lm_head.weight = self.transformer["wte"].weight  # tied

    def forward(self, tokens: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        x = self.transformer["wte"](tokens)
        for block in self.transformer["h"]:
            x = block(x)
        logits = self.lm_head(self.transformer["ln_f"](x))
        return logits, None if targets is None else F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def gpt(**sizes: int) -> Gpt:
    torch.manual_seed(0)
    return Gpt(**sizes)


def words(step: int, batch: int = 4, tokens: int = 6) -> Tensor:
    return torch.randint(0, 11, (batch, tokens), generator=torch.Generator().manual_seed(step))


def train(
    model: nn.Module, steps: int, begin: Callable[[nn.Module], Any] = lambda model: None, accumulate: int = 1
) -> tuple[list[Tensor], Any]:
    """Return losses and gradients of all steps, the weights at the end and the state of the generator; and what `begin` returns."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    begun = begin(model)
    torch.manual_seed(1)
    seen = []
    for step in range(steps):
        optimizer.zero_grad()
        for part in range(accumulate):
            loss = model(words(step * accumulate + part), words(99))[1]
            (loss / accumulate).backward()
            seen.append(loss.detach())
        seen += [weight.grad.clone() for weight in model.parameters()]
        optimizer.step()
    return [*seen, *(weight.detach().clone() for weight in model.parameters()), torch.get_rng_state()], begun


def train_watched(
    model: nn.Module, steps: int, accumulate: int = 1, **options: Any
) -> tuple[list[Tensor], list[dict[str, Any]]]:
    """Return what a watched training computes, and its rows."""
    rows: list[dict[str, Any]] = []
    options = {"every": 2, "to": rows.extend} | options
    computed, watcher = train(model, steps, lambda model: rankfall.watch(model, **options), accumulate)
    watcher.close()
    return computed, rows


def same(first: list[Tensor], second: list[Tensor]) -> bool:
    return len(first) == len(second) and all(torch.equal(one, other) for one, other in zip(first, second))


def watch_step(model: nn.Module, *given: Any, rate: float = 0.1, **options: Any) -> list[dict[str, Any]]:
    """Take one step down the loss that a model returns, or down the squares of its output, and return its rows."""
    rows: list[dict[str, Any]] = []
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    with rankfall.watch(model, **{"to": rows.extend} | options):
        descend(model, optimizer, *given)
    return rows


def descend(model: nn.Module, optimizer: torch.optim.Optimizer, *given: Any, **named: Any) -> None:
    output = model(*given, **named)
    output, loss = output if isinstance(output, tuple) else (output, None)
    optimizer.zero_grad()
    (output.square().sum() if loss is None else loss).backward()
    optimizer.step()
