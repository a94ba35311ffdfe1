"""Guards the effective rank: known matrices, and singular values by another way."""

import pytest
import torch

from rankfall.rank.spectrum import effective_rank

DOUBLE = {"dtype": torch.float64}


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), **DOUBLE)


def test_the_effective_rank_of_known_matrices():
    assert effective_rank(torch.eye(5, **DOUBLE)).item() == pytest.approx(5)
    assert effective_rank(random(1, 7).expand(4, 7)).item() == pytest.approx(1)
    shares = torch.tensor([0.5, 0.25, 0.25], **DOUBLE)
    turned = torch.linalg.qr(random(6, 6))[0][:, :3] * shares @ torch.linalg.qr(random(4, 4, seed=1))[0][:3]
    assert effective_rank(turned).item() == pytest.approx(2**1.5)  # entropy 1.5 bits
    assert effective_rank(torch.zeros(2, 3, **DOUBLE)).isnan()


@pytest.mark.parametrize("shape", [(9, 4), (4, 9)])
def test_the_effective_rank_is_that_of_singular_values(shape):
    x = random(3, *shape) * 2.0**-400
    p = torch.linalg.svdvals(x * 2.0**400)
    p = p / p.sum(-1, keepdim=True)
    assert torch.allclose(effective_rank(x), (-(p * p.log()).sum(-1)).exp(), rtol=1e-12)


def test_what_is_rounding_of_the_largest_is_no_direction():
    """Equal rows up to a few units of rounding: a thousand of them would add up."""
    x = random(1, 900).expand(900, 900) * (1 + 1e-16 * random(900, 900, seed=1).sign())
    assert effective_rank(x).item() == pytest.approx(1, abs=1e-9)
