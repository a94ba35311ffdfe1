"""What is said where networks at random weights differ from theory, on weights written by hand."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from rankfall.design import Architecture, Component
from rankfall.position.agreement import (
    AGREE,
    FEWER,
    MORE,
    OPEN,
    agreement,
    are_rows_alike,
    explain_untrained,
    rests_on,
    why_fewer,
)
from rankfall.position.rows import TOLERANCE, Distinct
from rankfall.position.theory import Verdict

DESIGN = Architecture(name="probed", position=Component("none"), depth=1, heads=1, width=2)
EQUAL = torch.full((2, 1, 1, 3, 3), 1 / 3, dtype=torch.float64)
CLOSE_BY, APART = 9.5e-9, 2e-8  # differences of rows


class Mixer(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x


def network_of(weights: Tensor | None, placement: str = "post", **more: Any) -> Any:
    """One block, whose weights are these if they are computed from what the attention reads: the embedding, or what a norm makes of it."""
    mixer, state = Mixer(), torch.zeros(2, 1, 3, 2) if placement == "post" else torch.ones(2, 1, 3, 2)

    def weights_of(x: Tensor) -> Tensor:
        assert weights is not None
        return weights if torch.equal(x, state) else torch.full_like(weights, torch.nan)

    if weights is not None:
        more["weights"] = weights_of
    for name, value in more.items():
        setattr(mixer, name, value)
    lifted = torch.zeros(2, 1, 3, 2)
    return SimpleNamespace(
        blocks=[SimpleNamespace(attention=mixer)],
        parameters=lambda: iter([torch.zeros(2, 1)]),
        lift=lambda x: lifted if x.shape == (2, 1, 3) and not x.any() else lifted + 9,
        run=lambda x: mixer(x if placement == "post" else x + 1),
    )


def rows_of(rows: list[int], narrowest: list[float]) -> Distinct:
    return Distinct(torch.tensor(rows), torch.zeros(2), torch.tensor(narrowest, dtype=torch.float64), torch.zeros(2, 3))


def test_counts_are_compared() -> None:
    assert [agreement(theory, 3) for theory in (None, 3, 4, 2)] == [OPEN, AGREE, FEWER, MORE]


@pytest.mark.parametrize("placement", ["post", "pre"])
def test_why_there_are_fewer_rows(placement: str) -> None:
    mixed = EQUAL.clone()
    mixed[1, 0, 0, 2] = torch.tensor([0.0, 0.0, 1.0])
    far, bound = rows_of([1, 2], [torch.inf, APART]), "theory is an upper bound"
    assert why_fewer(rows_of([0, 0], [torch.inf] * 2), network_of(EQUAL, placement), 3).startswith(
        "the rows of every draw"
    )
    close = why_fewer(rows_of([1, 2], [APART, CLOSE_BY]), network_of(EQUAL, placement), 3)
    assert close.endswith("of their size, close to the tolerance 1e-12")
    assert why_fewer(far, network_of(EQUAL, placement), 3).startswith("all rows of weights are the same")
    assert why_fewer(far, network_of(mixed, placement), 3).startswith(bound)  # hidden by a mask, for all that is known
    assert why_fewer(far, network_of(mixed + 0.1, placement), 3).startswith(bound)
    assert why_fewer(far, network_of(None), 3).startswith(bound)


def test_weights_that_are_zero_although_the_mask_shows_them_are_counted() -> None:
    mixed = EQUAL.clone()
    mixed[1, 0, 0, 2] = torch.tensor([0.0, 0.0, 1.0])
    logits = torch.zeros_like(mixed)
    logits[:, 0, 0, 2, 0] = -torch.inf  # hidden in both draws: of the other 16 one is zero
    why = why_fewer(rows_of([1, 2], [torch.inf, APART]), network_of(mixed, logits=lambda x: logits), 3)
    assert why == "6% of the weights that the mask lets through are zero at these draws"


def test_rows_of_weights_are_alike_up_to_a_tolerance_of_the_largest() -> None:
    for factor, same in ((0.9, True), (1.1, False)):
        weights = 50 * torch.ones(2, 2, 2, dtype=torch.float64)
        weights[..., 1] = 1
        weights[1, 1, 0] -= factor * 50 * TOLERANCE
        assert are_rows_alike(weights) is same


@pytest.mark.parametrize("placement", ["post", "pre"])
def test_a_declaration_that_is_wrong_is_named(placement: str) -> None:
    softmax, zero_sum = (replace(DESIGN, normaliser=Component(name)) for name in ("softmax", "zero_sum"))
    wrong, rounded = EQUAL.clone(), EQUAL.clone()
    wrong[1, 0, 0, 1, 1] += 2e-6
    rounded[1, 0, 0, 1, 1] += 1e-10
    said = rests_on(softmax, network_of(wrong, placement), 3)
    assert "ROWS = 'one' of normaliser 'softmax', which is wrong: rows of these weights sum to 1 to 1" in said
    assert rests_on(softmax, network_of(rounded, placement), 3).endswith("rounding is taken for a difference")
    assert "which is wrong: rows of these weights sum to 1 to 1" in rests_on(zero_sum, network_of(EQUAL, placement), 3)
    wrong[1, 0, 0, 1, 2] += 0.25
    assert rests_on(softmax, network_of(wrong, placement), 3).endswith("rows of these weights sum to 1 to 1.25")
    one_column = torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64).expand_as(EQUAL)  # whose columns sum to 3 and to 0
    assert rests_on(softmax, network_of(one_column, placement), 3).endswith("rounding is taken for a difference")
    for more, ends in (
        (1.5e-9, "rounding is taken for a difference"),
        (2.5e-9, "sum to 1 to 1"),
    ):  # sums of one may be off by 2e-9
        assert rests_on(softmax, network_of(EQUAL + more / 3, placement), 3).endswith(ends)
    differing = EQUAL - 1 / 3
    assert rests_on(zero_sum, network_of(differing, placement), 3).endswith("rounding is taken for a difference")


def test_of_the_draws_the_best_is_compared_with_theory() -> None:
    found, network = rows_of([1, 2], [torch.inf, APART]), network_of(EQUAL)
    said = {rows: explain_untrained(Verdict(rows, "", "open"), found, network, 3, DESIGN) for rows in (None, 1, 2, 3)}
    assert said[None] == (OPEN, "open") and said[2] == (AGREE, "")
    assert said[1][0] == MORE and said[1][1].startswith("theory rests on ROWS")
    assert said[3][0] == FEWER and said[3][1].startswith("all rows of weights are the same")
