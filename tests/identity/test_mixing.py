"""Check shares, rollout, mixing ratios and rank correlations: each against a loop over its formula."""

from typing import Any

import numpy as np
import pytest
import torch
from helpers import each_network
from moved_weights import INPUTS, network
from scipy.stats import spearmanr

from rankfall.identity.attribution.layers import compute_layers
from rankfall.identity.attribution.mixing import mixing
from rankfall.identity.cells import cell_views
from rankfall.identity.shares import NOT_FIRST, OWN, correlations, quantities

BLOCKS: list[dict[str, Any]] = [
    {},
    {"norm_placement": "pre", "residual": "depth_scaled"},
    {"norm": "rms", "residual": {"name": "scaled", "scale": 0.3}},
    {"norm": "column", "residual": "depth_scaled"},
    {"norm": "none", "residual": "none", "mask": "causal"},
]


@pytest.mark.parametrize("architecture", BLOCKS, ids=str)
def test_contributions_and_ratios_by_a_loop(architecture: dict[str, Any]) -> None:
    """f_ji + [i = j] x_j, vector by vector, through the norm; sizes, and what others add against what the token itself adds."""
    for view in cell_views(network(**architecture), INPUTS):
        join, found = view.join, mixing(view)
        assert not isinstance(join, str)
        skip = torch.zeros_like(view.inputs) if join.skip is None else join.skip
        vectors = torch.einsum("bhji,bhid->bjid", view.weights, view.map_values())
        whole = join.factor * view.attend() + skip
        if join.norm is not None and join.norm.over != -1:
            assert found.norms is None and "tokens" in found.reason
            continue
        for sample in range(len(whole)):
            for j in range(view.tokens):
                parts = [
                    join.factor * vectors[sample, j, i] + (skip[sample, j] if i == j else 0) for i in range(view.tokens)
                ]
                if join.norm is not None:  # by hand: mean off, divided by the whole's deviation, times the gain
                    norm, total = join.norm, whole[sample, j]
                    middle = total - total.mean() * norm.centred
                    scale = norm.gain.flatten() / (middle.square().mean() + norm.eps).sqrt()
                    normed = [(part - part.mean() * norm.centred) * scale for part in parts]
                else:
                    normed = parts
                sizes = torch.stack([part.norm() for part in normed])
                assert found.norms is not None
                torch.testing.assert_close(found.norms[sample, j], sizes / sizes.sum(), rtol=1e-9, atol=1e-12)
                plain = [vectors[sample, j, i] for i in range(view.tokens)]
                for name, each in (("norms", plain), ("norms and skip", parts), ("norms, skip and norm", normed)):
                    others = sum(part for i, part in enumerate(each) if i != j)
                    others = others if isinstance(others, torch.Tensor) else torch.zeros(1)
                    expected = others.norm() / (others.norm() + each[j].norm())
                    torch.testing.assert_close(found.ratios[name][sample, j], expected, rtol=1e-9, atol=1e-12)


def test_rollout_by_a_loop() -> None:
    views = list(cell_views(list(each_network(network(depth=3)))[1], INPUTS[1:]))
    matrices, missing, ratios = compute_layers(views)
    product = np.eye(views[0].tokens)
    for view, found, ratio in zip(views, matrices, ratios):
        layer = np.zeros_like(product)
        for head in range(view.heads):
            layer += view.weights[2, head].numpy() / view.heads
        np.testing.assert_allclose(ratio["attention"][2], 1 - layer.diagonal(), rtol=1e-12)
        np.testing.assert_allclose(ratio["attention and skip"][2], (1 - layer.diagonal()) / 2, rtol=1e-12)
        product = (0.5 * layer + 0.5 * np.eye(len(layer))) @ product
        np.testing.assert_allclose(found["rollout"][2], product, rtol=1e-12)
    assert not any(missing)
    for found in matrices:
        for matrix in found.values():
            torch.testing.assert_close(matrix.sum(-1), torch.ones_like(matrix[..., 0]), rtol=1e-12, atol=0)


def test_shares_by_hand() -> None:
    contributions = torch.tensor([[4.0, 1, 1, 2], [1, 1, 6, 0], [0, 0, 0, 0]], dtype=torch.float64)
    tokens = torch.tensor([0, 1, 2])
    found = quantities(contributions, tokens)
    assert found[OWN][:2].tolist() == [0.5, 0.125]
    assert found[NOT_FIRST][:2].tolist() == [0.0, 1.0]
    assert found["distance 1"][:2].tolist() == [0.125, 0.875]
    assert found["distance 3"][:2].tolist() == [0.25, 0.0]
    assert all(value[2].isnan() for value in found.values())  # nothing contributes


def test_rank_correlations_are_scipys() -> None:
    rng = np.random.default_rng(0)
    tied, distinct = torch.from_numpy(rng.integers(5, size=(4, 9)) * 1.0), torch.from_numpy(rng.normal(size=(4, 9)))
    counted = torch.from_numpy(rng.random((4, 9)) < 0.8)
    (values,) = correlations({"tied": tied, "distinct": distinct}, counted).values()
    for x, y, kept, value in zip(tied, distinct, counted, values):
        assert float(value) == pytest.approx(spearmanr(x[kept], y[kept]).statistic, rel=1e-12)
