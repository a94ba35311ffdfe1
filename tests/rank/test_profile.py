"""The metrics of `model_residuals`, computed sample by sample, against those of all samples from their definitions."""

import torch

from rankfall.rank import residual as res
from rankfall.rank.model_residuals.profile import metrics

NORMS = ("composite", "l1", "linf", "frobenius")


def states() -> torch.Tensor:
    """(B, T, D): rows at random, rows that are nearly equal, and nothing at all."""
    drawn = torch.randn(3, 7, 12, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    drawn[1] = drawn[1, :1] + 1e-9 * drawn[1]
    drawn[2] = 0.0
    return drawn


def test_every_sample_has_the_norms_that_it_has_alone() -> None:
    state = states()
    rest = res.residual(state)
    found = {metric: (absolute, value) for metric, _, absolute, value in metrics(state, NORMS, 0, 0)}
    assert list(found) == list(NORMS)
    for norm in NORMS:
        absolute, value = found[norm]
        expected = res.matrix_norm(rest, norm)
        assert absolute is not None
        assert torch.equal(absolute, expected)
        torch.testing.assert_close(
            value, res.share(expected, res.matrix_norm(state, norm)), rtol=0, atol=0, equal_nan=True
        )
        assert value[2].isnan() and value[0] > 0.1 > 1e-6 > value[1] > 0


def test_singular_values_of_the_first_samples_are_those_of_the_states() -> None:
    state = states()
    found = {metric: (absolute, value) for metric, _, absolute, value in metrics(state, (), 0, 2)}
    values = torch.linalg.svdvals(state[:2])
    absolute, ratio = found["sigma_ratio"]
    assert absolute is not None
    torch.testing.assert_close(ratio, values[:, 1] / values[:, 0], rtol=1e-6, atol=1e-15)
    torch.testing.assert_close(absolute, values[:, 1], rtol=1e-6, atol=1e-15)
    torch.testing.assert_close(found["stable_rank"][1], res.stable_rank(state[:2]), rtol=1e-12, atol=0)
    assert ratio[1] < 1e-8 < 0.1 < ratio[0]
