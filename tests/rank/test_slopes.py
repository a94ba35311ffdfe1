"""What an order is the slope of, against matrices whose singular values are known."""

import math

import pytest
import torch

from rankfall.rank.centred.scaled import Scaled
from rankfall.rank.centred.state import State
from rankfall.rank.orders.slopes import log10_second_ratio

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
