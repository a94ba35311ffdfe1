"""The regression on choices: it finds effects that were put in, knows how sure it is, and says which it cannot tell."""

from typing import Any

import numpy as np

from rankfall.census.choices import explain, out_of_sample


def types(count: int, causal: float, behind: float, noise: float, seed: int = 0) -> list[dict[str, Any]]:
    """Rows whose kept residual is a product of two factors and noise, one folder for every three."""
    rng = np.random.default_rng(seed)
    rows = []
    for n in range(count):
        mask, place = int(rng.integers(2)), int(rng.integers(2))
        kept = causal**mask * behind**place * 10 ** (noise * rng.normal())
        rows.append(
            {
                "type": f"t{n}", "family": f"f{n // 3}", "skips": True, "residual_first": 0.5, "residual_last": 0.5 * kept, "floor": 1e-15,
                "mask": "causal" if mask else "bidirectional", "mixer": "attention", "norm": "layer", "parallel": False, "layers": 12,
                "norm_place": "before the branch and behind the branch" if place else "before the branch", "position": "none",
                "init_std_scaled": 0.1,
            }
        )  # fmt: skip
    return rows


def test_factors_that_were_put_in_are_found_exactly_without_noise() -> None:
    found = explain(types(60, causal=0.5, behind=0.25, noise=0.0), draws=200)
    effects = {one.choice: one for one in found.effects}
    for name, factor in (("causal mask", 0.5), ("norm behind the branch", 0.25)):
        one = effects[name]
        assert one.effect is not None and one.low is not None and one.high is not None
        assert (
            abs(one.effect / factor - 1) < 1e-9
            and abs(one.low / factor - 1) < 1e-6
            and abs(one.high / factor - 1) < 1e-6
        )
    assert found.share is not None and found.share > 1 - 1e-9
    assert (found.rows, found.families) == (60, 20)


def test_intervals_hold_the_factor_and_a_choice_that_does_nothing_holds_one() -> None:
    found = explain(types(300, causal=0.5, behind=1.0, noise=0.1), draws=400)
    effects = {one.choice: one for one in found.effects}
    causal, behind = effects["causal mask"], effects["norm behind the branch"]
    assert causal.low is not None and causal.high is not None and causal.low < 0.5 < causal.high < 0.6
    assert behind.low is not None and behind.high is not None and behind.low < 1 < behind.high
    assert causal.gain is not None and behind.gain is not None and causal.gain > 0.3 > 0.05 > behind.gain


def test_what_does_not_vary_has_a_reason_instead_of_a_number() -> None:
    found = {one.choice: one for one in explain(types(60, 0.5, 0.5, 0.1), draws=100).effects}
    assert found["twice as many layers"].effect is None and "fewer than" in found["twice as many layers"].reason
    few = explain(types(4, 0.5, 0.5, 0.1), draws=100)
    assert all(one.effect is None and "too few" in one.reason for one in few.effects) and few.share is None


def test_noise_is_not_explained_out_of_sample() -> None:
    rng = np.random.default_rng(1)
    x = np.column_stack([np.ones(200), rng.normal(size=(200, 5))])
    assert out_of_sample(x, rng.normal(size=200), np.arange(200) // 2) < 0.1
