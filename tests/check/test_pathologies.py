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
    ByPlace,
    Cancels,
    Centred,
    Decoder,
    Detached,
    Encoder,
    OverBatch,
    Rectified,
    Root,
    Twice,
    causal,
    scaled,
    tokens,
)  # fmt: skip
from torch import nn

from rankfall.check.named import FAIL, ORDER
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


def no_rank() -> nn.Module:
    return scaled(lambda m: [b.mlp.down.bias.normal_().mul_(8) for b in m.blocks])


def plain_list() -> nn.Module:
    model = Decoder()
    blocks = list(model.blocks)
    del model.blocks
    model.__dict__["blocks"] = blocks
    return model


def one_layer() -> nn.Module:
    model = Decoder()
    model.blocks = nn.ModuleList([model.blocks[0]] * DEPTH)
    return model


def frozen() -> nn.Module:
    model = Decoder()
    model.blocks[1].requires_grad_(False)
    return model


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
        no_rank,
        tokens(),
        "rank-kept",
        "one vector",
    ),
    "detached branch": (lambda: with_part("blocks.1.mlp", Detached), tokens(), "gradients-flow", "blocks.1.mlp"),
    "mask behind the softmax": (
        lambda: Decoder(weigh=lambda scores, mask: scores.softmax(-1) * mask),
        tokens(),
        "no-future-leak",
        "a triangular mask is made",
    ),
    "mask of small numbers": (
        lambda: Decoder(weigh=lambda scores, mask: scores.masked_fill(~mask, 1e-9).softmax(-1)),
        tokens(),
        "no-future-leak",
        "a triangular mask is made",
    ),
    "softmax over heads": (
        lambda: Decoder(weigh=lambda scores, mask: scores.masked_fill(~mask, -1e9).softmax(1)),
        tokens(),
        "no-future-leak",
        "axis of the softmax",
    ),
    "positions along the batch": (
        lambda: with_part("embed", lambda _: ByPlace()),
        tokens(),
        "samples-independent",
        "place in the batch",
    ),
    "pooled over padding": (
        lambda: Encoder(pool=lambda x: x.mean(1)),
        (padded(), mask_of()),
        "mask-works",
        "pooled over padding",
    ),
    "skip added twice": (lambda: with_block(1, lambda: Twice(causal)), tokens(), "stream-whole", "blocks.1"),
    "layers in a plain list": (plain_list, tokens(), "gradients-flow", "plain list"),
    "detached stream": (lambda: Decoder(between=torch.Tensor.detach), tokens(), "gradients-flow", "embed.weight"),
    "loud logits": (lambda: scaled(lambda m: m.head.weight.mul_(40)), tokens(), "initial-loss", "log 50"),
}


def distributions() -> nn.Module:
    return Decoder(end=lambda y: y.softmax(-1))


def cross_entropy(reduction: str) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda y: nn.functional.cross_entropy(y.flatten(0, 1), tokens().flatten(), reduction=reduction)


def test_a_loss_that_takes_another_softmax_fails_and_a_sum_warns() -> None:
    assert "takes another one" in first_failure(distributions(), tokens(), loss=cross_entropy("mean")).sentence
    assert first_failure(Decoder(), tokens(), loss=cross_entropy("mean")) is None
    assert "fails on the output" in first_failure(Decoder(), tokens(), loss=lambda y: y.nothing()).sentence


# what may be meant -> model, options, the check that warns, where it is or what it says
DOUBTFUL: dict[str, tuple[Callable[[], nn.Module], dict[str, Any], str, str]] = {
    "a sum": (Decoder, {"loss": cross_entropy("sum")}, "initial-loss", "a sum over tokens"),
    "distributions": (distributions, {}, "initial-loss", "takes logits"),
    "rectifier in place": (lambda: with_block(1, lambda: Rectified(causal)), {}, "stream-whole", "in place"),
    "one layer many times": (one_layer, {}, "stream-whole", "4 entries of blocks are one module"),
    "frozen layer": (frozen, {}, "gradients-flow", "blocks.1.attention.qkv.weight"),
}


@pytest.mark.parametrize("kind", DOUBTFUL)
def test_what_may_be_meant_warns(kind: str) -> None:
    make, options, name, said = DOUBTFUL[kind]
    torch.manual_seed(0)
    (report,) = check(make(), tokens(), changes=False, **options)
    found = report.result(name)
    assert found.verdict == "warn" and said in f"{found.sentence} {found.where}"


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
    "a head of zeros": (lambda: scaled(lambda m: m.head.weight.zero_()), tokens()),
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
