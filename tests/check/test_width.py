"""The check of width and depth: standard parametrisation grows, muP does not, in an MLP and in a transformer."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from rankfall.check.report import check
from rankfall.testing import assert_width_transfers

TOKENS, VOCABULARY = 12, 50


class MLP(nn.Module):
    """A perceptron; in muP its logits are divided by the width."""

    def __init__(self, width: int, mup: bool) -> None:
        super().__init__()
        self.first, self.hidden, self.head = nn.Linear(16, width), nn.Linear(width, width), nn.Linear(width, 10)
        self.factor = 1 / width if mup else 1.0
        if mup:
            nn.init.normal_(self.head.weight)

    def forward(self, x):
        return self.head(self.hidden(self.first(x).relu()).relu()) * self.factor


class Transformer(nn.Module):
    """A decoder; in muP scores are divided by d instead of its root, and logits by the width."""

    def __init__(self, width: int, mup: bool = False, depth: int = 2) -> None:
        super().__init__()
        self.mup, self.embed = mup, nn.Embedding(VOCABULARY, width)
        self.blocks = nn.ModuleList(Block(width, mup) for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, VOCABULARY, bias=False)
        if mup:
            nn.init.normal_(self.head.weight)

    def forward(self, numbers):
        x = self.embed(numbers)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)) / (x.shape[-1] if self.mup else 1)


class Block(nn.Module):
    def __init__(self, width: int, mup: bool) -> None:
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mup = mup

    def forward(self, x):  # (B, T, D)
        q, k, v = (one.unflatten(-1, (4, -1)).transpose(1, 2) for one in self.qkv(self.norm(x)).chunk(3, -1))
        scores = q @ k.mT / q.shape[-1] ** (1 if self.mup else 0.5)
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        return x + self.out((scores.masked_fill(later, -math.inf).softmax(-1) @ v).transpose(1, 2).flatten(-2))


def optimizer_of(model: nn.Module, hidden: str, width: int) -> torch.optim.Optimizer:
    """Return Adam whose rate of hidden matrices is divided by the width."""
    scaled = [one for name, one in model.named_parameters() if hidden in name and one.dim() > 1]
    others = [one for one in model.parameters() if all(one is not other for other in scaled)]
    return torch.optim.Adam([{"params": scaled, "lr": 0.064 / width}, {"params": others, "lr": 1e-3}])


def random_batch() -> torch.Tensor:
    return torch.randint(0, VOCABULARY, (3, TOKENS), generator=torch.Generator().manual_seed(0))


def mlp(mup: bool) -> Callable[[int], Any]:
    x = torch.randn(4, 9, 16, generator=torch.Generator().manual_seed(0))

    def build(width: int) -> Any:
        model = MLP(width, mup)
        return (model, x, optimizer_of(model, "hidden", width)) if mup else (model, x)

    return build


def transformer(mup: bool) -> Callable[[int], Any]:
    def build(width: int) -> Any:
        model = Transformer(width, mup)
        return (model, optimizer_of(model, "blocks", width)) if mup else model

    return build


def result_of(build: Callable[..., Any], **options: Any) -> Any:
    (report,) = check(Transformer(32), random_batch(), changes=False, build=build, only=("width-transfers",), **options)
    return report.results[0]


@pytest.mark.parametrize("kind", [mlp, transformer])
def test_updates_grow_with_width_in_standard_parametrisation_and_not_in_mup(kind: Any) -> None:
    result = result_of(kind(False))
    assert result.verdict == "fail" and "updates grow as width^" in result.sentence
    assert result.where == ("hidden" if kind is mlp else "blocks.0.qkv")
    assert result_of(kind(True)).verdict == "pass"


def test_a_factor_that_is_wrong_is_seen() -> None:
    """The logits of muP without their factor, which is 1 at the width of the example."""

    def build(width: int) -> Any:
        model, x, optimizer = mlp(True)(width)
        model.factor = 1 / 32
        return model, x, optimizer

    with pytest.raises(AssertionError, match="grow as width"):
        assert_width_transfers(Transformer(32), random_batch(), build=build)


def test_updates_of_the_output_grow_with_depth() -> None:
    def loss(output: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(output.flatten(0, 1), random_batch().flatten())

    result = result_of(lambda depth: Transformer(32, depth=depth), loss=loss)
    assert result.verdict in ("warn", "fail") and "updates grow as depth^" in result.sentence


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda size: Transformer(32), "takes neither width nor depth"),
        (lambda width: Transformer(width + 1), "build(width=) or a step of what it returns fails: RuntimeError"),
        (lambda width: (Transformer(width), torch.randn(2, 3)), "fails: RuntimeError"),
    ],
)
def test_a_function_that_does_not_build_is_no_all_clear(build: Callable[..., Any], words: str) -> None:
    result = result_of(build)
    assert result.verdict == "fail" and words in result.sentence
