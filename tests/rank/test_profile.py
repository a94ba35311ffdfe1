"""The metrics of `model_residuals`, computed sample by sample, against those of all samples from their definitions."""

import pytest
import torch

from rankfall.rank import residual as res
from rankfall.rank.residual import matrix_norm, relative_residual, residual
from rankfall.rank.residuals.models import WITHOUT_FIRST, WITHOUT_LARGEST, metrics

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
    found = {metric: (absolute, value) for metric, _, absolute, value in metrics(state, NORMS, 0)}
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


def test_a_large_first_token_and_large_channels_are_left_out():
    """Against the residual of what is left, with what hides it put on top."""
    state = torch.randn(2, 6, 12, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    plain = {metric: value for metric, *_, value in metrics(state, ("composite",), 0, parts=True)}
    first, channels = state.clone(), state.clone()
    first[:, 0] += 1e4
    for sample, chosen in enumerate(([1, 5, 7], [0, 2, 11])):
        channels[sample][:, chosen] = 1e4 + 1e-3 * state[sample][:, chosen]
    found = {metric: value for metric, *_, value in metrics(first, ("composite",), 0, parts=True)}
    assert found[WITHOUT_FIRST] == pytest.approx(plain[WITHOUT_FIRST], rel=1e-12)
    assert found[WITHOUT_FIRST] == pytest.approx(relative_residual(state[:, 1:]), rel=1e-12)
    found = {metric: (size, value) for metric, _, size, value in metrics(channels, ("composite",), 0, parts=True)}
    assert float(found["composite"][1].max()) < 1e-3
    for sample, chosen in enumerate(([1, 5, 7], [0, 2, 11])):
        kept = state[sample : sample + 1][:, :, [one for one in range(12) if one not in chosen]]
        assert found[WITHOUT_LARGEST][1][sample] == pytest.approx(float(relative_residual(kept)), rel=1e-12)
        assert found[WITHOUT_LARGEST][0][sample] == pytest.approx(
            float(matrix_norm(residual(kept), "composite")), rel=1e-12
        )
    small = {metric for metric, *_ in metrics(state[:, :2, :6], ("composite",), 0, parts=True)}
    assert small == {"composite"}
