"""The table of states against a computation by hand, without tokens and channels, in a stack and alone."""

import numpy as np
import pytest
from helpers import by_member
from one_stack import chosen, stack

from rankfall.rank.residuals.measure import residuals
from rankfall.rank.states.measure import states


def test_values_by_hand() -> None:
    context = stack(sentinels="bos")
    rows = by_member(states, context, samples=3, channels=2)
    x = context.network.double().states(context.data.test.inputs[:, :3])[2][1].numpy()  # (B, T', D)
    largest = np.sqrt((x**2).mean((0, 1))).argsort()[-2:]
    parts = {
        "nothing": x,
        "first token": x[:, 1:],
        "largest channels": np.delete(x, largest, -1),
        "both": np.delete(x, largest, -1)[:, 1:],
    }
    for left_out, part in parts.items():
        spectra, units = np.linalg.svd(part, compute_uv=False), part / np.linalg.norm(part, axis=-1, keepdims=True)
        wanted = {
            "norm": np.sqrt((part**2).mean((1, 2))),
            "stable_rank": (spectra**2).sum(-1) / spectra[:, 0] ** 2,
            "stable_rank_gram": (spectra**4).sum(-1) / spectra[:, 0] ** 4,
            "cosine": [np.mean((unit @ unit.T)[np.tril_indices(len(unit), -1)]) for unit in units],
        }
        for quantity, values in wanted.items():
            (row,) = chosen(rows, member=1, layer=2, left_out=left_out, quantity=quantity)
            assert row["value"] == pytest.approx(np.mean(values)), (left_out, quantity)
            assert row["deviation"] == pytest.approx(np.std(values, ddof=1))
            assert row["tokens"] == 6
            assert row["channels"] == (2 if left_out in ("largest channels", "both") else 0)


def test_residual_is_that_of_the_other_table() -> None:
    context = stack(residual="none", norm="none", position="none", depth=5)
    found, known = by_member(states, context), by_member(residuals, context, norms=["composite"], best=False)
    floors = set()
    for row in chosen(found, quantity="residual", left_out="nothing"):
        (other,) = chosen(known, member=row["member"], layer=row["layer"], place="state", quantity="residual")
        assert row["value"] == pytest.approx(other["value"], rel=1e-6 if row["floor_share"] == 0 else 1)
        assert row["floor_share"] == other["floor_share"]
        floors.add(row["floor_share"])
    assert floors == {0.0, 1.0}
