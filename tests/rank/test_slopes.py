"""What an order is the slope of, against matrices whose singular values are known."""

import math

import pytest
import torch

from rankfall.rank.centred.scaled import Scaled, State
from rankfall.rank.orders.slopes import MIDDLE, log10_second_ratio, middle_ratio

TURN = torch.tensor([[0.6, 0.8, 0.0], [-0.8, 0.6, 0.0], [0.0, 0.0, 1.0]], dtype=torch.float64)
COLUMNS = torch.tensor(
    [[1.0, 0.25, 0.125], [-1.0, 0.25, -0.125], [1.0, -0.25, -0.125], [-1.0, -0.25, 0.125]], dtype=torch.float64
)  # at right angles, of lengths 2, 1/2 and 1/4


@pytest.mark.parametrize("size", [2.0, 2e-298])
def test_the_second_singular_value_is_of_what_is_at_right_angles_to_the_common_row(size: float) -> None:
    """x = size (1, 0, 0), turned; of R at the scales 10^-400 and zero the columns beside the first have the singular values 1/2 and 1/4."""
    common = (size * TURN[0]).expand(1, 2, 1, 3)
    rest = Scaled((COLUMNS @ TURN).expand(1, 2, 4, 3), torch.tensor([[-400 * math.log(10), -math.inf]]).double())
    state = State(common, rest, torch.zeros(1, 2, 0, 3), torch.arange(4), torch.arange(0))
    log, share = log10_second_ratio(state)
    assert log[0].tolist() == pytest.approx([-400 - math.log10(4 * size), -math.inf])
    assert share[0].tolist() == pytest.approx([0.25, 1.0])


def test_what_lies_beside_one_vector_is_without_what_only_turns_it() -> None:
    """Rows are multiples 1, 2, 3, 4 of one vector and, of size s, what is beside it: of that, what is in proportion to these multiples
    turns the vector, and is no second direction.
    """
    lengths = torch.tensor([[1.0], [2.0], [3.0], [4.0]], dtype=torch.float64)
    beside = torch.tensor(
        [[2.0, -1.0], [-1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]], dtype=torch.float64
    )  # columns sum to zero
    rest = torch.stack([torch.cat([lengths - lengths.mean(), 10**scale * beside], 1) for scale in MIDDLE])
    common = torch.tensor([2.5, 0.0, 0.0], dtype=torch.float64).expand(1, len(MIDDLE), 1, 3)
    state = State(
        common,
        Scaled(rest[None], torch.zeros(1, len(MIDDLE))),
        torch.zeros(1, len(MIDDLE), 0, 3),
        torch.arange(4),
        torch.arange(0),
    )
    found = middle_ratio(state)
    values = torch.linalg.svdvals(common[0, 8] + rest[8])  # at 10^-6 float64 shows both
    assert found is not None and found["order"] == pytest.approx(1, abs=1e-3)
    assert MIDDLE[8] == -6
    assert found["log10_constant"] - 6 * found["order"] == pytest.approx(math.log10(values[1] / values[0]), abs=1e-3)
