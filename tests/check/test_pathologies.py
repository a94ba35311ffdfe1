"""Bugs with a known cause, each in a real architecture: the first check that fails names the cause."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import unusual_models as models
from stream_kinds import through
from torch import Tensor, nn
from unusual_models import (
    DEPTH,
    MLP,
    Apply,
    Attention,
    Block,
    D,
    Language,
    Padded,
    T,
    V,
    causal,
    changed,
    every,
    ids,
    padded,
)

from rankfall.check.named import FAIL, ORDER, WARN
from rankfall.check.report import check


class Rectified(Block):
    """A block whose rectifier works in place, on the stream."""

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.mixer(self.norm1(x))
        return x + self.mlp(torch.relu_(x))


class Centred(nn.Module):
    """An embedding with a convolution that sees the next token."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.smooth = nn.Embedding(V, D), nn.Conv1d(D, D, 3, padding=1)

    def forward(self, numbers: Tensor) -> Tensor:
        return self.smooth(self.embed(numbers).mT).mT


def with_part(path: str, make: Callable[[nn.Module], nn.Module]) -> Callable[[], nn.Module]:
    return changed(lambda m: m.set_submodule(path, make(m.get_submodule(path))))


def of_attention(*mask: Callable[[int], Tensor], **options: Any) -> Callable[[], nn.Module]:
    return lambda: models.language(lambda: Attention(*mask, **options))


def no_row(count: int) -> Tensor:
    return causal(count) & (torch.arange(count)[:, None] != 5)


def no_rank(model: Any) -> None:
    for block in model.blocks:
        block.mlp[2].bias.normal_().mul_(8)


def plain_list(model: Any) -> None:
    blocks = list(model.blocks)
    del model.blocks
    model.__dict__["blocks"] = blocks


def saturated(function: nn.Module, bias: float) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        model = Language(lambda: Block(Attention(), MLP(function=function)))
        nn.init.constant_(model.blocks[1].mlp[0].bias, bias)  # type: ignore[index,union-attr]
        return model

    return make


def sharpen(model: Any) -> None:
    model.blocks[1].mixer.q.weight.mul_(40)
    model.blocks[1].mixer.kv.weight[:D].mul_(40)


class Between(Language):
    """The stream of a language model is detached before each block."""

    def forward(self, numbers: Tensor) -> Tensor:
        x = self.embed(numbers)
        for block in self.blocks:
            x = block(x.detach())
        return self.head(self.norm(x))


# bug -> model, inputs, the check that names it, where it is or what it says
SICK: dict[str, tuple[Callable[[], nn.Module], Any, str, str]] = {
    "root of negative numbers": (with_part("blocks.1.mlp.1", lambda _: Apply(torch.sqrt)), ids(), "numbers-hold", "blocks.1.mlp.1"),
    "a row that sees nothing": (of_attention(no_row), ids(), "numbers-hold", "blocks.0.mixer"),
    "cancellation": (with_part("norm", lambda one: nn.Sequential(one, Apply(lambda x: (x + 1e8) - 1e8))), ids(), "numbers-hold", "float32"),
    "norm over the batch, first": (
        with_part("embed", lambda one: nn.Sequential(one, Apply(models.over_samples))), ids(), "samples-independent", "first"),
    "shifted mask": (of_attention(lambda n: every(n).tril(1)), ids(), "no-future-leak", "sees 1 token ahead"),
    "an embedding that looks ahead": (
        with_part("embed", lambda _: Centred()), ids(), "no-future-leak", "before the first layer"),
    "mask is not used": (lambda: Padded(lambda mask: None), (padded(), padded() == 0), "mask-works", "hides no token"),
    "padding is attended": (
        lambda: Padded(lambda mask: None, padding=0), padded(), "mask-works", "padding is attended"),
    "pooled over padding": (
        lambda: Padded(pool=lambda x: x.mean(1)), (padded(), padded() == 0), "mask-works", "pooled over padding"),
    "dead branch": (
        changed(lambda m: [one.zero_() for one in m.blocks[1].mlp[2].parameters()]), ids(), "stream-whole", "blocks.1.mlp"),
    "exploding branch": (
        changed(lambda m: m.blocks[2].mlp[2].weight.mul_(300)), ids(), "activations-sane", "blocks.2.mlp"),
    "massive activation": (
        changed(lambda m: m.blocks[1].mlp[2].bias[3].fill_(3000)), ids(), "activations-sane", "blocks.1.mlp"),
    "dead units": (saturated(nn.ReLU(), -10), ids(), "activations-sane", "blocks.1.mlp"),
    "saturated units": (saturated(nn.Tanh(), 9), ids(), "activations-sane", "blocks.1.mlp"),
    "collapsed entropy": (changed(sharpen), ids(), "attention-alive", "blocks.1.mixer"),
    "tokens become one vector": (changed(no_rank), ids(), "rank-kept", "one vector"),
    "detached branch": (models.hooked("blocks.1.mlp", Tensor.detach), ids(), "gradients-flow", "blocks.1.mlp"),
    "mask behind the softmax": (
        of_attention(every, weigh=lambda s: s.softmax(-1) * causal(T)), ids(), "no-future-leak", "a triangular mask is made"),
    "softmax over heads": (
        of_attention(every, weigh=lambda s: s.masked_fill(~causal(T), -1e9).softmax(1)),
        ids(), "no-future-leak", "axis of the softmax"),
    "layers in a plain list": (changed(plain_list), ids(), "gradients-flow", "plain list"),
    "detached stream": (lambda: Between(lambda: Block(Attention())), ids(), "gradients-flow", "embed.weight"),
    "loud logits": (changed(lambda m: m.head.weight.mul_(40)), ids(), "initial-loss", "log 40"),
}  # fmt: skip


def decoder() -> nn.Module:
    return models.language(Attention)


def distributions() -> nn.Module:
    model: Any = decoder()
    model.head = nn.Sequential(model.head, nn.Softmax(-1))
    return model


def cross_entropy(reduction: str) -> Callable[[Tensor], Tensor]:
    return lambda y: nn.functional.cross_entropy(y.flatten(0, 1), ids().flatten(), reduction=reduction)


def test_a_loss_that_takes_another_softmax_fails_and_a_sum_warns() -> None:
    assert "takes another one" in first_failure(distributions(), ids(), loss=cross_entropy("mean")).sentence
    assert first_failure(decoder(), ids(), loss=cross_entropy("mean")) is None
    assert "fails on the output" in first_failure(decoder(), ids(), loss=lambda y: y.nothing()).sentence


# what may be meant -> model, options, the check that warns, where it is or what it says
DOUBTFUL: dict[str, tuple[Callable[[], nn.Module], dict[str, Any], str, str]] = {
    "a sum": (decoder, {"loss": cross_entropy("sum")}, "initial-loss", "a sum over tokens"),
    "distributions": (distributions, {}, "initial-loss", "takes logits"),
    "rectifier in place": (models.with_block(1, lambda: Rectified(Attention())), {}, "stream-whole", "in place"),
    "one layer many times": (
        changed(lambda m: setattr(m, "blocks", nn.ModuleList([m.blocks[0]] * DEPTH))),
        {}, "stream-whole", "3 entries of blocks are one module"),
    "frozen layer": (
        changed(lambda m: m.blocks[1].requires_grad_(False)), {}, "gradients-flow", "blocks.1.mixer.q.weight"),
}  # fmt: skip


@pytest.mark.parametrize("kind", DOUBTFUL)
def test_what_may_be_meant_warns(kind: str) -> None:
    make, options, name, words = DOUBTFUL[kind]
    torch.manual_seed(0)
    (report,) = check(make(), ids(), changes=False, **options)
    result = report.result(name)
    assert result.verdict == "warn" and words in f"{result.sentence} {result.where}"


def first_failure(model: nn.Module, inputs: Any, **options: Any) -> Any:
    results = [result for report in check(model, inputs, changes=False, **options) for result in report.results]
    failures = (result for result in results if result.verdict == FAIL)
    return min(failures, key=lambda result: ORDER.index(result.check), default=None)


@pytest.mark.parametrize("bug", SICK)
def test_the_first_check_that_fails_is_the_cause(bug: str) -> None:
    make, inputs, name, words = SICK[bug]
    torch.manual_seed(0)
    result = first_failure(make(), inputs, only=ORDER[: ORDER.index(name) + 1])
    assert result is not None and result.check == name, result
    assert words in f"{result.sentence} {result.where}"


class Overwrites(Block):
    """A block that adds to the normed copy in place, of which the maps of attention need the old value; or to a copy of it."""

    def __init__(self, right: bool) -> None:
        super().__init__(Attention())
        self.right = right

    def forward(self, x: Tensor) -> Tensor:
        h = self.norm1(x)
        y = self.mixer(h)
        h = h.clone() if self.right else h
        h += y
        return x + self.mlp(self.norm2(h))


class Fused(nn.Module):
    """Attention and an MLP from one joint map. The result of attention may be detached."""

    def __init__(self, right: bool) -> None:
        super().__init__()
        self.inside, self.out, self.right = nn.Linear(D, 5 * D), nn.Linear(3 * D, D), right

    def forward(self, x: Tensor) -> Tensor:
        q, k, v, inner = self.inside(x).split((D, D, D, 2 * D), -1)
        q, k, v = (models.heads(part) for part in (q, k, v))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(-2)
        return self.out(torch.cat([y if self.right else y.detach(), inner.relu()], -1))


class Translates(nn.Module):
    """An encoder and a decoder, whose causal mask hides later tokens or adds a small number to their scores."""

    def __init__(self, right: bool) -> None:
        super().__init__()
        self.embed, self.hidden = nn.Embedding(V, D), -1e9 if right else -1e-9
        self.encoder = nn.ModuleList(Block(Attention(every)) for _ in range(2))
        self.decoder = nn.ModuleList(models.CrossBlock() for _ in range(2))
        for block in self.decoder:
            block.mixer = Attention(every, weigh=self.weigh)

    def weigh(self, scores: Tensor) -> Tensor:
        return scores.masked_fill(~causal(scores.shape[-1]), self.hidden).softmax(-1)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        x, y = self.embed(source), self.embed(target)
        x = through(self.encoder, x)
        return through(self.decoder, y, x)


class Interleaved(nn.Module):
    """States and actions in turn, or all states before all actions, although the output is read in turn."""

    def __init__(self, right: bool) -> None:
        super().__init__()
        self.blocks, self.right = nn.ModuleList(Block(Attention()) for _ in range(2)), right

    def forward(self, states: Tensor, actions: Tensor) -> Tensor:
        x = torch.stack([states, actions], 1)  # (B, 2, T, D)
        x = (x.transpose(1, 2) if self.right else x).flatten(1, 2)
        x = through(self.blocks, x)
        return x.unflatten(1, (-1, 2))[:, :, 0]


class FirstToken(nn.Module):
    """The output reads a first token: by a map of zeros, or though it sees no other token."""

    def __init__(self, right: bool) -> None:
        super().__init__()
        self.first, self.head = nn.Parameter(torch.randn(1, 1, D)), nn.Linear(D, 3)
        self.blocks = nn.ModuleList(Block(Attention(every if right else causal)) for _ in range(2))
        if right:
            nn.init.zeros_(self.head.weight)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.cat([self.first.expand(len(x), -1, -1), x], 1)
        x = through(self.blocks, x)
        return self.head(x[:, 0])


class Scaled(Block):
    """Branches are small: by a learned factor, or by their weights."""

    def __init__(self, right: bool) -> None:
        super().__init__(Attention(), norm=lambda _: nn.Identity())
        self.factors, self.right = nn.ParameterList(torch.full((D,), 1e-4) for _ in range(2)), right

    def forward(self, x: Tensor) -> Tensor:
        for branch, factor in ((self.mixer, self.factors[0]), (self.mlp, self.factors[1])):
            x = x + (branch(x) * factor if self.right else 1e-4 * branch(x))
        return x


class Inside(nn.Module):
    """A map, then attention and an MLP with skips, as in a Set Transformer; or an MLP without a skip."""

    def __init__(self, right: bool) -> None:
        super().__init__()
        self.map, self.mixer, self.mlp, self.right = nn.Linear(D, D), Attention(every), MLP(), right

    def forward(self, x: Tensor) -> Tensor:
        x = self.map(x) if self.right else x
        x = x + self.mixer(x)
        return x + self.mlp(x) if self.right else self.mlp(x)


class RootNorm(nn.Module):
    """A norm by the root of the mean square, or without the root."""

    def __init__(self, right: bool) -> None:
        super().__init__()
        self.eps, self.power = 1e-6, -0.5 if right else -1.0

    def forward(self, x: Tensor) -> Tensor:
        return x * (x.pow(2).mean(-1, keepdim=True) + self.eps).pow(self.power)


def behind_softmax(right: bool) -> nn.Module:
    def weigh(scores: Tensor) -> Tensor:
        hidden = ~causal(T)
        return (
            scores.masked_fill(hidden, -torch.inf).softmax(-1) if right else scores.softmax(-1).masked_fill(hidden, 0.0)
        )

    return models.language(lambda: Attention(every, weigh=weigh))


def only_later(right: bool) -> nn.Module:
    """Two samples, of which the second has padding. The mask of what a token sees may be inverted."""

    def weigh(scores: Tensor) -> Tensor:
        seen = causal(T) & (torch.arange(T) < torch.tensor([[T], [T - 3], [T]]))[:, None, None]
        return scores.masked_fill(~seen if right else seen, -1e9).softmax(-1)

    return models.language(lambda: Attention(every, weigh=weigh))


# bug -> model (right or wrong), inputs, the check that fails or warns, where it is or what it says
TWINS: dict[str, tuple[Callable[[bool], nn.Module], Any, str, str]] = {
    "normed copy overwritten": (
        lambda right: Language(lambda: Overwrites(right)), ids(), "gradients-flow", "the output of blocks.0.norm1 is changed"),
    "part of a joint map detached": (
        lambda right: Language(lambda: Block(Fused(right))), ids(), "gradients-flow", "block of rows"),
    "mask of small numbers in a decoder": (
        Translates, (ids(), ids(2)[:, :9]), "no-future-leak", "a triangular mask is made"),
    "steps in another order": (
        Interleaved, (models.vectors(), models.vectors().flip(0)), "no-future-leak", "changes with step 12 of argument 1"),
    "mask inverted": (only_later, ids(), "no-future-leak", "is the mask inverted"),
    "masked weights": (behind_softmax, ids(), "no-future-leak", "behind the softmax"),
    "first token reads nothing": (FirstToken, models.vectors(), "samples-independent", "sees none of them"),
    "positions along samples": (lambda right: models.TokensFirst(int(not right)), ids().mT, "samples-independent", "positions"),
    "small branches": (
        lambda right: Language(lambda: Scaled(right)), ids(), "activations-sane", "add nothing"),
    "norm without its root": (
        lambda right: models.language(Attention, norm=lambda _: RootNorm(right)), ids(), "activations-sane", "square root"),
    "MLP without skip": (
        lambda right: models.vision(lambda: Inside(right)), models.vectors(), "stream-whole", "around 0.mlp, in 3 of 3"),
}  # fmt: skip


@pytest.mark.parametrize("bug", TWINS)
def test_a_bug_is_named_and_its_healthy_twin_is_not(bug: str) -> None:
    make, inputs, name, words = TWINS[bug]
    results = []
    for right in (True, False):
        torch.manual_seed(0)
        results.append([report.result(name) for report in check(make(right), inputs, changes=False, only=(name,))])
    healthy, sick = results
    assert not [result for result in healthy if result.verdict in (FAIL, WARN)]
    outcome = [result for result in sick if result.verdict in (FAIL, WARN)]
    assert any(words in f"{result.sentence} {result.where}" for result in outcome), sick
