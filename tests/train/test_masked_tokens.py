"""Masked language modelling: what is hidden, what is asked for, and that no part of it depends on who shares the stack or the memory."""

from typing import Any

import pytest
import torch
from helpers import cells
from torch import Tensor

from rankfall.nets.network import Network, Shape, build
from rankfall.train.objectives._base import Samples
from rankfall.train.objectives.masked_tokens import corrupt, masked_tokens

SYMBOLS, SPECIAL = 40, 5


def batch(seeds: list[int], step: int = 3, length: int = 20, inputs: Tensor | None = None) -> Samples:
    if inputs is None:
        rng = torch.Generator().manual_seed(0)
        inputs = torch.randint(SPECIAL, SYMBOLS, (1, 50, length), generator=rng).expand(len(seeds), -1, -1)
    return Samples(inputs, inputs, seeds, ("train", step), SYMBOLS, SPECIAL)


def network(seeds: list[int]) -> Network:
    (cell,) = cells(architecture={"position": "rope"})
    built = build(cell.architecture, Shape("tokens", "hidden", 20, SYMBOLS, SYMBOLS), len(seeds), torch.float64)
    built.initialise(seeds)
    return built


def test_fifteen_in_a_hundred_are_asked_and_most_of_them_hidden() -> None:
    given = batch(list(range(40)))
    seen, places, stood = corrupt(given, 0.15, 0.8, 0.1)
    assert places.shape == (40, 50, 3)
    assert (places.diff(dim=-1) > 0).all()  # no place twice
    assert torch.equal(given.inputs.gather(2, places), stood)
    untouched = torch.ones_like(seen, dtype=torch.bool).scatter(2, places, False)
    assert torch.equal(seen[untouched], given.inputs[untouched])
    put = seen.gather(2, places)
    hidden, kept = put == SPECIAL - 1, put == stood
    assert hidden.double().mean() == pytest.approx(0.8, abs=0.02)
    # Left as they are: one in ten, and of the random ones one in 35.
    assert kept.double().mean() == pytest.approx(0.1 + 0.1 / 35, abs=0.02)
    assert put[~hidden].min() >= SPECIAL
    everywhere = torch.zeros_like(seen).scatter_add(2, places, torch.ones_like(places)).double().mean((0, 1))
    assert (everywhere - 0.15).abs().max() < 0.04


def test_masks_belong_to_seed_and_place() -> None:
    together, alone = corrupt(batch([7, 8]), 0.15, 0.8, 0.1), corrupt(batch([8]), 0.15, 0.8, 0.1)
    assert all(torch.equal(one[1], other[0]) for one, other in zip(together, alone))
    assert not torch.equal(together[1][0], together[1][1])
    assert not torch.equal(alone[1], corrupt(batch([8], step=4), 0.15, 0.8, 0.1)[1])


def test_loss_is_the_cross_entropy_of_what_was_asked() -> None:
    """Against all logits, token by token."""
    seeds = [3, 4]
    built, given = network(seeds), batch(seeds)
    result = masked_tokens(built, given)
    seen, places, stood = corrupt(given, 0.15, 0.8, 0.1)
    scores = built(seen).log_softmax(-1)
    for k in range(2):
        each = [
            (-scores[k, b, t, w], scores[k, b, t].argmax() == w)
            for b in range(50)
            for t, w in zip(places[k, b].tolist(), stood[k, b].tolist())
        ]
        torch.testing.assert_close(result.loss[k], sum(loss for loss, _ in each) / 150, rtol=1e-12, atol=0)  # type: ignore[arg-type]
        assert int(result.sums["accuracy"][k]) == sum(bool(right) for _, right in each)
    assert result.asked.tolist() == [150, 150]


def test_parts_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same loss and gradients however few logits are there at once; and never more than that."""
    built, given = network([3, 4]), batch([3, 4])
    parameters, seen = list(built.parameters()), []
    head = built.head.forward

    def watched(x: Tensor) -> Tensor:
        scores: Tensor = head(x)
        seen.append(scores.numel())
        return scores

    monkeypatch.setattr(built.head, "forward", watched)

    def gradients(megabytes: Any) -> list[Tensor]:
        loss = masked_tokens(built, given, megabytes=megabytes).loss
        return [loss.detach(), *torch.autograd.grad(loss.sum(), parameters)]

    whole = gradients(128)
    assert seen == [2 * 150 * SYMBOLS]
    seen.clear()
    few = gradients(10 * 2 * SYMBOLS * 8 / 2**20)  # ten rows of both members
    assert set(seen) == {2 * 10 * SYMBOLS}
    assert len(seen) == 2 * 15  # again for the gradient
    for one, other in zip(whole, few):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)
