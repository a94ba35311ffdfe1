"""Check the cosine and the effective rank against matrices whose numbers are known, and by another way."""

import pytest
import torch

from rankfall.rank.spectrum import effective_rank, largest_channels, mean_cosine

DOUBLE = {"dtype": torch.float64}


def random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), **DOUBLE)


def test_cosine_is_the_mean_over_pairs() -> None:
    x = random(5, 3) * torch.tensor([[1.0], [1e-300], [5.0], [2.0], [1.0]], **DOUBLE)
    pairs = [
        float(torch.nn.functional.cosine_similarity(x[i] / x[i].abs().max(), x[j] / x[j].abs().max(), dim=0))
        for i in range(5)
        for j in range(i)
    ]
    assert mean_cosine(x).item() == pytest.approx(sum(pairs) / 10, rel=1e-12)
    assert mean_cosine(random(1, 3).expand(4, 3)).item() == pytest.approx(1)
    assert mean_cosine(torch.eye(3, **DOUBLE)).item() == pytest.approx(0, abs=1e-15)
    assert mean_cosine(torch.tensor([[1.0, 0], [0, 0]], **DOUBLE)).isnan()
    assert mean_cosine(random(1, 3)).isnan()


def test_largest_channels_are_of_all_samples() -> None:
    x = torch.ones(2, 3, 4, **DOUBLE)
    x[1, 2, 1] = 50
    x[:, :, 3] = 10
    assert largest_channels(x, 1).tolist() == [True, False, True, True]
    assert largest_channels(x, 2).tolist() == [True, False, True, False]


def test_the_effective_rank_of_known_matrices() -> None:
    assert effective_rank(torch.eye(5, **DOUBLE)).item() == pytest.approx(5)
    assert effective_rank(random(1, 7).expand(4, 7)).item() == pytest.approx(1)
    shares = torch.tensor([0.5, 0.25, 0.25], **DOUBLE)
    turned = torch.linalg.qr(random(6, 6))[0][:, :3] * shares @ torch.linalg.qr(random(4, 4))[0][:3]
    assert effective_rank(turned).item() == pytest.approx(2**1.5)  # entropy 1.5 bits
    assert effective_rank(torch.zeros(2, 3, **DOUBLE)).isnan()


@pytest.mark.parametrize("shape", [(9, 4), (4, 9)])
def test_the_effective_rank_is_that_of_singular_values(shape: tuple[int, int]) -> None:
    x = random(3, *shape) * 2.0**-400
    p = torch.linalg.svdvals(x * 2.0**400)
    p = p / p.sum(-1, keepdim=True)
    assert torch.allclose(effective_rank(x), (-(p * p.log()).sum(-1)).exp(), rtol=1e-12)


def test_what_is_rounding_of_the_largest_is_no_direction() -> None:
    """Equal rows up to a few units of rounding: a thousand of them would add up."""
    x = random(1, 900).expand(900, 900) * (1 + 1e-16 * random(900, 900).sign())
    assert effective_rank(x).item() == pytest.approx(1, abs=1e-9)
