"""Bugs with a known cause, each in a real architecture: the first check that fails names the cause. Healthy models fail none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from sick_models import (
    DEPTH,
    TOKENS,
    WIDTH,
    Bare,
    Block,
    Cancels,
    Centred,
    Decoder,
    Detached,
    Encoder,
    OverBatch,
    Root,
    causal,
    scaled,
    tokens,
)  # fmt: skip
from torch import nn

from rankfall.check.named import FAIL, ORDER, all_checks, explain
from rankfall.check.report import check


def with_block(place: int, make: Callable[[], nn.Module]) -> nn.Module:
    model = Decoder()
    model.blocks[place] = make()
    return model


def with_part(path: str, make: Callable[[nn.Module], nn.Module]) -> nn.Module:
    model = Decoder()
    model.set_submodule(path, make(model.get_submodule(path)))
    return model


def no_row(count: int) -> torch.Tensor:
    return causal(count) & (torch.arange(count)[:, None] != 5)


def padded() -> torch.Tensor:
    numbers = tokens()
    numbers[:, 9:] = 0
    return numbers


def mask_of(inverted: bool = False) -> torch.Tensor:
    return (padded() == 0) ^ inverted


# bug -> model, inputs, the check that names it, where it is or what it says
SICK: dict[str, tuple[Callable[[], nn.Module], Any, str, str]] = {
    "root of negative numbers": (
        lambda: with_part("blocks.1.mlp.function", lambda _: Root()),
        tokens(),
        "numbers-hold",
        "blocks.1.mlp.function",
    ),
    "a row that sees nothing": (lambda: Decoder(no_row), tokens(), "numbers-hold", "blocks.0.attention"),
    "cancellation": (
        lambda: with_part("norm", lambda one: nn.Sequential(one, Cancels())),
        tokens(),
        "numbers-hold",
        "float32",
    ),
    "norm over the batch": (
        lambda: with_part("blocks.2.mlp.norm", lambda _: OverBatch()),
        tokens(),
        "samples-independent",
        "blocks.2",
    ),
    "norm over the batch, first": (
        lambda: with_part("embed", lambda one: nn.Sequential(one, OverBatch())),
        tokens(),
        "samples-independent",
        "first",
    ),
    "reversed mask": (lambda: Decoder(lambda n: causal(n).mT), tokens(), "no-future-leak", "reversed"),
    "shifted mask": (
        lambda: Decoder(lambda n: torch.ones(n, n).tril(1).bool()),
        tokens(),
        "no-future-leak",
        "sees 1 token ahead",
    ),
    "one layer without a mask": (
        lambda: with_block(3, lambda: Block(lambda n: torch.ones(n, n).bool())),
        tokens(),
        "no-future-leak",
        "causal except layer 4",
    ),
    "an embedding that looks ahead": (
        lambda: with_part("embed", lambda _: Centred()),
        tokens(),
        "no-future-leak",
        "before the first layer",
    ),
    "mask is not used": (lambda: Encoder(lambda mask: None), (padded(), mask_of()), "mask-works", "hides no token"),
    "mask is inverted": (Encoder, (padded(), mask_of(inverted=True)), "mask-works", "is it inverted"),
    "padding is attended": (
        lambda: Encoder(lambda mask: None, padding=0),
        padded(),
        "mask-works",
        "padding is attended",
    ),
    "forgotten skip": (lambda: with_block(2, lambda: Bare(causal)), tokens(), "stream-whole", "blocks.2"),
    "dead branch": (
        lambda: scaled(lambda m: [one.zero_() for one in m.blocks[1].mlp.down.parameters()]),
        tokens(),
        "stream-whole",
        "blocks.1.mlp",
    ),
    "exploding branch": (
        lambda: scaled(lambda m: m.blocks[2].mlp.down.weight.mul_(300)),
        tokens(),
        "activations-sane",
        "blocks.2.mlp",
    ),
    "massive activation": (
        lambda: scaled(lambda m: m.blocks[1].mlp.down.bias[3].fill_(3000)),
        tokens(),
        "activations-sane",
        "blocks.1.mlp",
    ),
    "dead units": (
        lambda: scaled(lambda m: m.blocks[1].mlp.up.bias.fill_(-10), function=nn.ReLU()),
        tokens(),
        "activations-sane",
        "blocks.1.mlp",
    ),
    "saturated units": (
        lambda: scaled(lambda m: m.blocks[1].mlp.up.bias.fill_(9), function=nn.Tanh()),
        tokens(),
        "activations-sane",
        "blocks.1.mlp",
    ),
    "collapsed entropy": (
        lambda: scaled(lambda m: m.blocks[1].attention.qkv.weight[: 2 * WIDTH].mul_(40)),
        tokens(),
        "attention-alive",
        "blocks.1.attention",
    ),
    "tokens become one vector": (
        lambda: scaled(lambda m: [b.mlp.down.bias.normal_().mul_(8) for b in m.blocks]),
        tokens(),
        "rank-kept",
        "one vector",
    ),
    "detached branch": (lambda: with_part("blocks.1.mlp", Detached), tokens(), "gradients-flow", "blocks.1.mlp"),
    "loud logits": (lambda: scaled(lambda m: m.head.weight.mul_(40)), tokens(), "initial-loss", "log 50"),
}


def first_failure(model: nn.Module, inputs: Any, **options: Any) -> Any:
    results = [one for report in check(model, inputs, changes=False, **options) for one in report.results]
    return min((one for one in results if one.verdict == FAIL), key=lambda one: ORDER.index(one.check), default=None)


@pytest.mark.parametrize("bug", SICK)
def test_the_first_check_that_fails_is_the_cause(bug: str) -> None:
    make, inputs, name, said = SICK[bug]
    torch.manual_seed(0)
    found = first_failure(make(), inputs)
    assert found is not None and found.check == name, found
    assert said in f"{found.sentence} {found.where}"


def test_each_check_says_its_formula_and_where_its_limits_come_from() -> None:
    assert [one.name for one in all_checks()] == list(ORDER)
    for one in all_checks():
        assert one.question.endswith("?") and len(one.explanation.splitlines()) > 2
        assert all(limit.meaning in explain(one.name) and limit.origin in explain(one.name) for limit in one.limits)


HEALTHY: dict[str, tuple[Callable[[], nn.Module], Any]] = {
    "decoder": (Decoder, tokens()),
    "encoder with padding": (lambda: Encoder(padding=0), padded()),
    "encoder with a mask": (Encoder, (padded(), mask_of())),
    "vectors": (
        lambda: nn.TransformerEncoder(
            nn.TransformerEncoderLayer(WIDTH, 4, 64, batch_first=True, norm_first=True),
            DEPTH,
            enable_nested_tensor=False,
        ),
        torch.randn(2, TOKENS, WIDTH, generator=torch.Generator().manual_seed(0)),
    ),
    "encoder and decoder": (
        lambda: nn.Transformer(WIDTH, 4, 2, 2, 64, batch_first=True),
        tuple(torch.randn(2, n, WIDTH, generator=torch.Generator().manual_seed(n)) for n in (9, 7)),
    ),
    "rectifiers": (lambda: Decoder(function=nn.ReLU()), tokens()),
    "gates of zero": (
        lambda: scaled(lambda m: [one.zero_() for b in m.blocks for one in b.mlp.down.parameters()]),
        tokens(),
    ),
}


@pytest.mark.parametrize("kind", HEALTHY)
def test_healthy_models_fail_no_check(kind: str) -> None:
    torch.manual_seed(0)
    make, inputs = HEALTHY[kind]
    assert first_failure(make(), inputs) is None
