"""The law's table: how far it reaches, that its exponents and floors are what they say, and that bounds bound."""

import math
import time
from typing import Any

import numpy as np
import pytest
import torch
from helpers import cells

from rankfall.measures import _bounds
from rankfall.measures._residual import matrix_norm
from rankfall.measures.centred.block import propagate
from rankfall.measures.law import law
from rankfall.nets.network import Network, Shape, build
from rankfall.train.loop import Data

ALONE = {"norm": "none", "residual": "none", "position": "none"}


def network(length: int = 8, members: int = 1, spread: float | None = None, **architecture: Any) -> Network:
    cell = cells(architecture=ALONE | architecture)[0]
    made = build(
        cell.architecture, Shape("tokens", "classes", length=length, size_in=10, size_out=10), members, torch.float32
    )
    made.initialise(list(range(members)))
    if spread:
        generator = torch.Generator().manual_seed(2)
        for value in made.parameters():
            value.data = spread * torch.randn(value.shape, generator=generator)
    return made.requires_grad_(False)


def measured(made: Network, members: int = 1, samples: int = 2, **options: Any) -> list[dict[str, Any]]:
    length = made.blocks[0].attention.allowed.shape[0] if made.blocks[0].attention.allowed is not None else 8
    inputs = torch.stack([torch.randperm(10, generator=torch.Generator().manual_seed(s))[:length] for s in range(4)])
    inputs = inputs.expand(members, 4, length)
    data = Data(inputs, inputs, inputs, inputs, torch.zeros(members))
    return law(made, data, [None] * members, samples=samples, **options)  # type: ignore[list-item]


def test_reaches_1e_1000_with_exponent_three() -> None:
    rows = measured(network(depth=8, width=48, heads=2))
    deep = [row for row in rows if row["log10_residual"] < -1000]
    assert deep
    assert all(abs(row["exponent"] - 3) < 0.01 for row in deep)
    assert all(row["float64_floor"] and row["float32_floor"] for row in deep)


def test_exponent_survives_any_depth() -> None:
    """At 40 layers the log itself is near 1e18, and a fixed small step would be lost beside it."""
    last = measured(network(depth=40, width=8, heads=2))[-1]
    assert last["log10_residual"] < -1e17
    assert last["exponent"] == pytest.approx(3, abs=1e-6)


def test_first_layers_are_the_plain_pass() -> None:
    """Where float64 still resolves the residual both ways agree, and float32 is not yet said to be at its floor too early."""
    rows = measured(network(depth=4, width=16, heads=2, spread=0.4, mlp="gelu"), samples=3)
    compared = 0
    for row in rows:
        if row["log10_float64"] is not None and row["log10_float64"] > -6:
            assert row["log10_residual"] == pytest.approx(row["log10_float64"], abs=1e-8)
            compared += 1
    assert compared >= 6


def test_rows_know_member_and_sample() -> None:
    """A member of a stack, measured in company, has the rows that it has alone."""
    together = measured(network(members=2, depth=2, width=16), members=2)
    alone = measured(network(members=1, depth=2, width=16))
    mine = [row for row in together if row["member"] == 0]
    assert [row["layer"] for row in mine] == [row["layer"] for row in alone]
    for a, b in zip(mine, alone):
        assert a["log10_residual"] == pytest.approx(b["log10_residual"], rel=1e-9)
    assert len({row["log10_residual"] for row in together}) == len(together)


@pytest.mark.parametrize("mlp", ["none", "relu", "gelu"])
@pytest.mark.parametrize("seed", range(4))
def test_proven_bound_bounds(seed: int, mlp: str) -> None:
    made = network(depth=3, width=12, heads=3, mlp=mlp)
    generator = torch.Generator().manual_seed(seed)
    for value in made.parameters():
        value.data = 0.3 * torch.randn(value.shape, generator=generator)
    held = 0
    for row in measured(made, samples=4):
        if row["theory_applies"] and row["condition"]:
            assert row["proven_slack"] > 0
            assert row["lemma_slack"] > 0
            held += 1
    assert held


def test_terms_by_hand() -> None:
    """Norms, range, gamma and beta of one layer, from numpy and the definitions."""
    made = network(depth=1, width=6, heads=2, spread=0.6).double()
    state = propagate(made, torch.tensor([[[0, 1, 2, 3, 4, 5, 6, 7]]]))[0]
    found = _bounds.bounds(made.blocks[0], state)
    x = made.embed(torch.tensor([[[0, 1, 2, 3, 4, 5, 6, 7]]]))[0, 0].numpy()
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
    for got, want in (
        (10**found.log10_beta, max(betas)),
        (found.gamma, max(gammas)),
        (found.score_range, max(spans)),
        (10**found.log10_lemma, lemma),
        (10**found.log10_proven, math.sqrt(first * second)),
    ):
        assert float(got) == pytest.approx(want, rel=1e-10)


def test_theorem_is_the_lemma_iterated() -> None:
    """a_{l+1} = c a_l^3 from a_0, written out."""
    c, a = 0.3, 0.7
    value = a
    for layers in range(1, 5):
        value = c * value**3
        got = _bounds.theorem(torch.tensor(math.log10(c)).double(), torch.tensor(math.log10(a)).double(), layers)
        assert float(got) == pytest.approx(math.log10(value), rel=1e-6)


def test_lipschitz_constant_holds() -> None:
    made = network(depth=1, width=6, mlp="gelu", spread=0.5).double()
    mlp, generator = made.blocks[0].mlp, torch.Generator().manual_seed(0)
    limit = float(_bounds.mlp_lipschitz(mlp))
    for _ in range(50):
        x, y = torch.randn(2, 1, 1, 5, 6, generator=generator, dtype=torch.float64)
        assert matrix_norm(mlp(x) - mlp(y), "composite") <= limit * matrix_norm(x - y, "composite")


@pytest.mark.parametrize(
    ("architecture", "why"),
    [
        ({"residual": "add"}, "skip"),
        ({"norm": "layer"}, "norm"),
        ({"mask": "causal"}, "place"),
        ({"position": "rope"}, "place"),
        ({"normaliser": "l2"}, "sum to one"),
        ({"sentinels": "bos"}, "sentinel"),
    ],
)
def test_no_bound_where_no_theorem_speaks(architecture: dict[str, Any], why: str) -> None:
    rows = measured(network(depth=2, width=8, **architecture))
    assert not any(row["theory_applies"] for row in rows)
    assert all(why in row["theory_reason"] for row in rows if row["layer"])
    assert not any("log10_lemma" in row for row in rows)


@pytest.mark.slow
def test_size_of_bert_takes_seconds() -> None:
    made = network(length=128, depth=12, width=768, heads=12).double()
    inputs = torch.randint(10, (1, 1, 128), generator=torch.Generator().manual_seed(0))
    start = time.process_time()
    states = propagate(made, inputs)
    assert time.process_time() - start < 40  # on two cores, processor time counts both
    assert float(states[-1].rest.log) < -1e5
