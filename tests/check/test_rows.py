"""Rows of tokens that are mixed up, and outputs that tell of a mistake in the head; the same models without the mistake do not warn."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import unusual_models as models
from torch import Tensor, nn
from unusual_models import Attention, Block, D, H, Language, T, every, heads, ids

from rankfall.check.report import check


def turned(x: Tensor, at: Tensor) -> Tensor:
    angle = at[:, None] * torch.tensor([1.0, 0.3])
    left, right = x.chunk(2, -1)  # (B, H, T, d / 2)
    return torch.cat([left * angle.cos() - right * angle.sin(), left * angle.sin() + right * angle.cos()], -1)


def grid(twice: bool) -> Any:
    row, column = torch.arange(T) // 4, torch.arange(T) % 4

    def turn(x: Tensor) -> Tensor:
        parts = x.chunk(2, -1)
        return torch.cat([turned(parts[0], row), turned(parts[1], row if twice else column)], -1)

    return turn


class Split(Attention):
    """Attention whose heads are split by a transpose, or not, with relative vectors in the sum of values."""

    def __init__(self, wrong: bool) -> None:
        super().__init__(every)
        self.wrong, self.relative = wrong, nn.Parameter(torch.randn(T, T, D // H))

    def forward(self, x: Tensor, other: Tensor | None = None) -> Tensor:
        q, k, v = self.q(x), *self.kv(x).chunk(2, -1)
        q, k = (y.reshape(len(x), H, T, -1) if self.wrong else heads(y) for y in (q, k))
        weights = (q @ k.mT * self.scale).softmax(-1)
        return self.out(
            (weights @ heads(v) + torch.einsum("bhij,ijd->bhid", weights, self.relative)).transpose(1, 2).flatten(-2)
        )


class Pairs(Attention):
    """Attention whose weights have the heads last, (B, T, T, H)."""

    def __init__(self, wrong: bool) -> None:
        super().__init__(every)
        self.axis = 1 if wrong else 2

    def forward(self, x: Tensor, other: Tensor | None = None) -> Tensor:
        q, k, v = (y.unflatten(-1, (H, -1)) for y in (self.q(x), *self.kv(x).chunk(2, -1)))
        weights = (torch.einsum("bihd,bjhd->bijh", q, k) * self.scale).softmax(self.axis)
        return self.out((weights[..., None] * v[:, None]).sum(2).flatten(-2))


class Patches(nn.Module):
    """A ViT whose patches are transposed, or reshaped."""

    def __init__(self, wrong: bool) -> None:
        super().__init__()
        self.patch, self.place = nn.Conv2d(3, D, 4, 4), nn.Parameter(torch.randn(16, D))
        self.blocks, self.wrong = nn.ModuleList(Block(Attention(every)) for _ in range(3)), wrong

    def forward(self, pictures: Tensor) -> Tensor:
        x = self.patch(pictures)
        return models.through(self.blocks, (x.reshape(len(x), 16, D) if self.wrong else x.flatten(2).mT) + self.place)


class Heads(Language):
    """An encoder with a head of two outputs, or queries that read the states."""

    def __init__(self, wrong: str) -> None:
        super().__init__(lambda: Block(Attention(every)), False)
        self.head, self.wrong = nn.Linear(D, 2), wrong
        self.reader, self.queries = Attention(every), nn.Parameter(torch.randn(3, D))

    def forward(self, numbers: Tensor) -> Any:
        x = models.through(self.blocks, self.embed(numbers))
        start, end = self.head(x).unbind(-1)
        queries = self.queries[:1] if self.wrong == "queries" else self.queries
        read = self.reader(queries.expand(len(x), 3, D), x)
        read = (torch.cat([read, x], 1)[:, 3:] if self.wrong == "class" else read) * 1
        return (
            start,
            self.head(x)[..., 0] if self.wrong == "twice" else start.exp() if self.wrong == "half" else end,
            read,
        )


BUGS: dict[str, tuple[str, str, Any, Any]] = {
    "one coordinate": (
        "positions-differ", "one coordinate", lambda wrong: models.language(lambda: Attention(every, turn=grid(wrong)), False), ids()),
    "split": ("positions-differ", "heads split", lambda wrong: models.language(lambda: Split(wrong)), ids()),
    "pairs": ("attention-alive", "over axis 1", lambda wrong: models.language(lambda: Pairs(wrong)), ids()),
    "picture": ("positions-differ", "first state", Patches, models.vectors(2, 3, 16, 16)),
    "twice": ("gradients-flow", "output 1 and output 2", lambda wrong: Heads("twice" * wrong), ids()),
    "half": ("gradients-flow", "1 of 2 outputs of head.weight", lambda wrong: Heads("half" * wrong), ids()),
    "class": ("gradients-flow", "matrices do not change", lambda wrong: Heads("class" * wrong), ids()),
    "queries": ("gradients-flow", "all 3 rows of output 3", lambda wrong: Heads("queries" * wrong), ids()),
}  # fmt: skip


@pytest.mark.parametrize("bug", BUGS)
def test_a_mistake_is_named_and_the_model_without_it_passes(bug: str) -> None:
    name, words, make, inputs = BUGS[bug]
    for wrong in (True, False):
        torch.manual_seed(0)
        (report,) = check(make(wrong), inputs, changes=False, only=(name,))
        result = report.result(name)
        assert (result.verdict in ("warn", "fail"), words in f"{result.sentence} {result.where}") == (wrong, wrong), (
            result
        )


def test_a_batch_that_is_flattened_into_one_sample_mixes_samples() -> None:
    """`check` stopped at the state of no samples that a pass with one changed sample compares."""

    class Block(nn.Module):
        def __init__(self, flat: bool) -> None:
            super().__init__()
            self.norm, self.map, self.flat = nn.LayerNorm(8), nn.MultiheadAttention(8, 2, batch_first=True), flat

        def forward(self, x: Tensor) -> Tensor:
            y = x.flatten(0, 1)[None] if self.flat else x  # (1, S T, D)
            h = self.norm(y)
            return (y + self.map(h, h, h, need_weights=False)[0]).view(x.shape)

    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(20, 8), Block(False), Block(False), Block(True), Block(False))
    results = [result for report in check(model, torch.randint(20, (4, 6)), changes=False) for result in report.results]
    assert "fail" in [result.verdict for result in results if result.check == "samples-independent"]
