"""The law's table: how far it reaches, that its exponents and floors are what they say, and that bounds bound."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from helpers import by_member, data_of, network_of

from rankfall.measure.context import Context
from rankfall.nets.network import Network
from rankfall.rank import bounds
from rankfall.rank.centred.attention import propagate
from rankfall.rank.law.measure import law
from rankfall.rank.residual import matrix_norm
from rankfall.report.schema import schema

LENGTH = 8
ALONE = {"norm": "none", "residual": "none", "position": "none"}
SLACKS = {
    "lemma_slack": "log10_lemma",
    "lemma_no_gamma_slack": "log10_lemma_no_gamma",
    "proven_slack": "log10_proven",
    "theorem_slack": "log10_theorem",
    "theorem_no_gamma_slack": "log10_theorem_no_gamma",
}


def network(spread: float = 0.0, **architecture: Any) -> Network:
    return network_of(1, LENGTH, 10, torch.float32, noise=spread, seed=2, **ALONE | architecture)


def measured(made: Network, samples: int = 2) -> list[dict[str, Any]]:
    inputs = torch.stack([torch.randperm(10, generator=torch.Generator().manual_seed(s))[:LENGTH] for s in range(4)])
    return by_member(law, Context(made, data_of(inputs[None])), samples=samples)


def test_the_exponent_is_three_at_1e_1000_and_at_any_depth() -> None:
    """At 40 layers the log itself is near 1e18, and a fixed small step would be lost beside it."""
    rows = measured(network(depth=8, width=48, heads=2))
    deep = [row for row in rows if row["log10_residual"] < -1000]
    assert deep
    assert all(abs(row["exponent"] - 3) < 0.01 for row in deep)
    assert all(row["float64_floor"] and row["float32_floor"] for row in deep)
    last = measured(network(depth=40, width=8, heads=2))[-1]
    assert last["log10_residual"] < -1e17 and last["log10_lemma"] < -1e17
    assert last["exponent"] == pytest.approx(3, abs=1e-6)
    assert last["lemma_slack"] is None  # a few decades beside 1e17 are less than its rounding


def test_first_layers_are_the_plain_pass() -> None:
    rows = measured(network(depth=4, width=16, heads=2, spread=0.4, mlp="gelu"), samples=3)
    compared = [row for row in rows if row["log10_float64"] is not None and row["log10_float64"] > -6]
    assert len(compared) >= 6
    for row in compared:
        assert row["log10_residual"] == pytest.approx(row["log10_float64"], abs=1e-8)


@pytest.mark.parametrize("mlp", ["none", "relu", "gelu"])
@pytest.mark.parametrize("seed", range(2))
def test_proven_bound_bounds(seed: int, mlp: str) -> None:
    made = network(depth=3, width=12, heads=3, mlp=mlp)
    generator = torch.Generator().manual_seed(seed)
    for value in made.parameters():
        value.data = 0.3 * torch.randn(value.shape, generator=generator)
    held = [row for row in measured(made, samples=4) if row["theory_applies"] and row["condition"]]
    assert held
    for row in held:
        assert all(row[slack] > 0 for slack in SLACKS if slack.startswith(("proven", "lemma")))
        assert not row["condition_all"] or min(row["theorem_slack"], row["theorem_no_gamma_slack"]) > 0


def test_no_bound_where_its_condition_fails() -> None:
    """In the first layer, whose scores are spread, and in bounds over layers from there on."""
    made = network(depth=3, width=12, heads=3, mlp="none", spread=0.2)
    made.blocks[0].attention.query.weight.data *= 100
    rows = measured(made)
    for row in rows:
        if row["layer"] == 1:
            assert row["theory_applies"]
            assert row["score_range"] > 1.256
            assert (row["condition"], row["condition_all"]) == (False, False)
            assert "1.256" in row["theory_reason"]
            assert all(row[name] is None for name in bounds.ONE_LAYER + bounds.ALL_LAYERS)
        if row["layer"] > 1:
            assert (row["condition"], row["condition_all"]) == (True, False)
            assert "in a layer before" in row["theory_reason"]
            assert all(row[name] is not None for name in bounds.ONE_LAYER)
            assert all(row[name] is None for name in bounds.ALL_LAYERS)
    assert {row["layer"] for row in rows} == {0, 1, 2, 3}
    declared = {column.name for column in schema("law").columns if column.nullable}
    assert declared.issuperset(bounds.ONE_LAYER + bounds.ALL_LAYERS)


def test_slack_is_bound_over_residual() -> None:
    """And all bounds are one another's: with gamma and without, of one layer and, in the first, of all."""
    rows = [row for row in measured(network(depth=3, width=12, heads=3, mlp="relu", spread=0.1)) if row["layer"]]
    for row in rows:
        assert row["condition_all"]
        for slack, bound in SLACKS.items():
            assert row[slack] == pytest.approx(row[bound] - row["log10_absolute"], rel=1e-12)
        for bound in ("log10_lemma", "log10_theorem") if row["layer"] == 1 else ("log10_lemma",):
            gain = row[bound] - row[bound + "_no_gamma"]
            assert gain == pytest.approx(math.log10(row["gamma"]), abs=1e-9)
        before = row["log10_lemma"] - row["log10_contraction"]  # log10 of |res(X_l-1)|
        assert row["log10_lemma"] == pytest.approx(row["log10_factor"] + 3 * before)
        assert row["vacuous"] == (row["log10_contraction"] >= 0)
        if row["layer"] == 1:
            assert row["log10_theorem"] == pytest.approx(row["log10_lemma"])
            assert row["theorem_contracts"] != row["vacuous"]


def test_terms_by_hand() -> None:
    """Norms, range, gamma and beta of one layer, from numpy and the definitions."""
    made, tokens = network(depth=1, width=6, heads=2, spread=0.6).double(), torch.arange(8)[None, None]
    before, after = propagate(made, tokens)
    terms, *_ = bounds.bounds(made.blocks[0], before, bounds.log10_norm(after.rest, "composite"))
    x = made.lift(tokens)[0, 0].numpy()
    rest = x - x.mean(0)
    attention, betas, gammas, spans, first, second = made.blocks[0].attention, [], [], [], 0.0, 0.0
    for h in range(2):
        part = slice(3 * h, 3 * h + 3)
        q, k, v = (m.weight[0].numpy()[:, part] for m in (attention.query, attention.key, attention.value))
        w = v @ attention.output.weight[0].numpy()[part]
        e = rest @ q @ k.T @ rest.T / math.sqrt(3)
        span = e.max(1) - e.min(1)
        composite = math.sqrt(np.linalg.norm(w, 1) * np.linalg.norm(w, np.inf))
        betas.append(np.linalg.norm(q @ k.T, 1) * composite)
        gammas.append(math.sqrt(span.sum() / (2 * np.linalg.norm(e, 1))))
        spans.append(span.max())
        first += 4 * np.linalg.norm(e, 1) * np.linalg.norm(rest, 1) * np.linalg.norm(w, 1)
        second += 4 * np.abs(e).max() * np.linalg.norm(rest, np.inf) * np.linalg.norm(w, np.inf)
    size = math.sqrt(np.linalg.norm(rest, 1) * np.linalg.norm(rest, np.inf))
    lemma = 4 * max(gammas) * max(betas) * 2 / math.sqrt(3) * size**3
    for term, expected in (
        (10 ** terms["log10_beta"], max(betas)),
        (terms["gamma"], max(gammas)),
        (terms["score_range"], max(spans)),
        (10 ** terms["log10_lemma"], lemma),
        (10 ** terms["log10_proven"], 2 * (1 - 1 / 8) * math.sqrt(first * second)),
    ):
        assert float(term) == pytest.approx(expected, rel=1e-10)


def test_theorem_is_the_lemma_iterated() -> None:
    """a_{l+1} = c a_l^3 from a_0, written out."""
    c, a = 0.3, 0.7
    value = a
    for layers in range(1, 5):
        value = c * value**3
        theorem = bounds.theorem(torch.tensor(math.log10(c)).double(), torch.tensor(math.log10(a)).double(), layers)
        assert float(theorem) == pytest.approx(math.log10(value), rel=1e-6)


def test_lipschitz_constant_holds() -> None:
    made = network(depth=1, width=6, mlp="gelu", spread=0.5).double()
    mlp, generator = made.blocks[0].mlp, torch.Generator().manual_seed(0)
    limit = float(bounds.mlp_lipschitz(mlp))
    for _ in range(50):
        x, y = torch.randn(2, 1, 1, 5, 6, generator=generator, dtype=torch.float64)
        assert matrix_norm(mlp(x) - mlp(y), "composite") <= limit * matrix_norm(x - y, "composite")


@pytest.mark.parametrize(
    ("architecture", "why"),
    [
        ({"residual": "add"}, "skip"),
        ({"norm": "layer"}, "norm"),
        ({"mask": "causal"}, "position"),
        ({"position": "rope"}, "position"),
        ({"normaliser": "l2"}, "sum to one"),
        ({"sentinels": "bos"}, "sentinel"),
    ],
)
def test_no_bound_where_no_theorem_speaks(architecture: dict[str, Any], why: str) -> None:
    rows = measured(network(depth=2, width=8, **architecture))
    assert not any(row["theory_applies"] for row in rows)
    assert all(why in row["theory_reason"] for row in rows if row["layer"])
    assert not any("log10_lemma" in row for row in rows)
