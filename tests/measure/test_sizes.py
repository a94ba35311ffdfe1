"""Check that measures give the same numbers for states of any size, or none, with a reason; never another number."""

import functools
from typing import Any

import pytest
import torch
from helpers import by_member, cells, data_of, network_of
from resized import resized

from rankfall.identity.attention_identity.measure import attention_identity
from rankfall.identity.attribution.measure import attribution
from rankfall.identity.cell_influence.measure import cell_influence
from rankfall.measure.context import Context, Rows
from rankfall.nets.network import Network
from rankfall.rank.decomposition.measure import decomposition
from rankfall.rank.law.measure import law

DATA = data_of(torch.randint(7, (2, 6, 5), generator=torch.Generator().manual_seed(1)))
NUMBERS = {
    law: ("log10_residual", "exponent", "log10_float64"),
    attention_identity: ("value", "deviation"),
    attribution: ("value", "median", "deviation"),
    cell_influence: ("share",),
    decomposition: ("norm_share", "output_share", "relative_residual", "error"),
}
REASONS = {law: "log10_residual", attention_identity: "value", attribution: "value", cell_influence: "share"}
ALL_KNOWN = ((100, 100, 100), (-90, 60, -100))


PARTS = {"width": 6, "norm": "none", "position": "none", "residual": "none", "mask": "causal"}
PLAIN, CELLS = network_of(**PARTS), cells(architecture=PARTS)[:1] * 2


def rows_of(measure: Any, network: Network) -> Rows:
    return by_member(measure, Context(network, DATA, CELLS), samples=2)


@functools.cache
def plain_rows(measure: Any) -> Rows:
    return rows_of(measure, PLAIN)


@pytest.mark.parametrize("powers", [*ALL_KNOWN, (0, 400, 400), (0, -530, -530), (-500, -500, -500), (0, -1000, -1000)])
def test_states_of_any_size_have_the_same_numbers_or_none(powers: tuple[int, ...]) -> None:
    lost: dict[str, int] = {}
    for measure, columns in NUMBERS.items():
        for row, again in zip(plain_rows(measure), rows_of(measure, resized(PLAIN, powers)), strict=True):
            for column in columns:
                expected, number = row.get(column), again.get(column)
                if number is None:
                    lost[measure.__name__] = lost.get(measure.__name__, 0) + (expected is not None)
                else:
                    assert number == pytest.approx(expected, rel=1e-6, abs=1e-9), (measure.__name__, column, row)
            if measure in REASONS and again[REASONS[measure]] is None:
                assert again["value_reason"]
    assert not (powers in ALL_KNOWN and any(lost.values()))
    assert bool(lost.get("cell_influence")) is (powers[-1] - powers[0] < -500)
