"""Every rule can say that its claim holds, holds in part, and is contradicted: one table of known answer for each verdict."""

import pytest
from claim_verdicts import Values, check_verdicts, decide_on

from rankfall.report.claim import claims
from rankfall.report.decision import UNDECIDED, Band
from studies.claims.affine_rank import names as affine
from studies.claims.alibi_peak import names as alibi
from studies.claims.alibi_peak import rule as alibi_rule
from studies.claims.attribution_truth import names as attribution
from studies.claims.causal_products import names as products
from studies.claims.causal_products import rule as products_rule
from studies.claims.clusters import names as clusters
from studies.claims.clusters_by_temperature import rule as by_temperature
from studies.claims.clusters_follow_values import rule as by_values
from studies.claims.cosine_recursion import names as cosine
from studies.claims.deep_norm import names as deep
from studies.claims.delta_erasure import names as delta
from studies.claims.delta_erasure import rule as erasing
from studies.claims.depth_amplifies_early_bias import rule as early_rule
from studies.claims.depth_scaling import names as scaling
from studies.claims.early_tokens_at_birth import names as early
from studies.claims.early_tokens_at_birth import reading as early_reading
from studies.claims.gain_control import names as gain
from studies.claims.gap_gradients import names as gap
from studies.claims.lambda_skip import names as skips
from studies.claims.query_gradients import names as query
from studies.claims.sinks_slow_mixing import names as sinks
from studies.claims.sinks_slow_mixing import rule as sinks_rule
from studies.claims.stream_products import names as streams

OF_OTHER_FOLDERS = ("free_streams_explode", "lambda_skip", "query_gradients", "sinks_slow_mixing")


def affine_rank(first: float, second: float) -> Values:
    """Changes of ranks 1 and 2, of at most 3."""
    return {
        (affine.CHANGE, affine.BESIDE): {1: first, 2: second, 3: 0},
        (affine.CHANGE, affine.THROUGH): {1: 0, 2: 0, 3: 0},
        (affine.RESIDUAL, affine.BESIDE): {1: 1.1, 2: 0.9},
    }


def alibi_peak(*off: float) -> Values:
    """By how many tokens the peak is off after 1 and 2 layers."""
    published = dict(zip((1, 2), (4.0, 8.0)))
    lines = {alibi_rule.EQUAL: off, alibi_rule.WEAK: (0, 0), alibi_rule.STRONG: (0, 0)}
    values: dict[tuple[str, str], dict[float, float | None]] = {(alibi.PEAK, alibi_rule.PUBLISHED): dict(published)}
    for line, moved in lines.items():
        values[alibi.PEAK, line] = {layer: at + by for (layer, at), by in zip(published.items(), moved, strict=True)}
        values[alibi.OFF, line] = dict.fromkeys(published, 0.01)
    return values


def ranks(methods: dict[str, tuple[float, float]], among: str = "") -> Values:
    """Rank correlations after layers 2 and 3 of each method, the first of which is right in all pairs by hand."""
    values: dict[tuple[str, str], dict[float, float | None]] = {}
    for number, (method, (second, third)) in enumerate(methods.items()):
        values[among + attribution.RANKS, method] = {1: 0.5, 2: second, 3: third}
        values[attribution.RIGHT, method] = values[among + attribution.RIGHT, method] = {1: 0.9 if number else 1}
    return values


def products_of(left: float, window: float) -> Values:
    """What is left outside the first token, and the factor a layer with a window; log10."""
    return {
        **{(products.LEFT, line): {1: 0, 2: left} for line in products_rule.NETWORKS},
        (products.RATE, "measured"): {0: -0.3, 1: -0.3, 2: window},
        (products.RATE, "published bound"): {0: -0.1, 1: -0.1, 2: -0.01},
    }


def groups(one: float, many: float) -> Values:
    ends = dict(zip(by_values.VALUES, (one, many, 2, 1), strict=True))
    return {(clusters.GROUPS, line): {0: 32, 200: end} for line, end in ends.items()}


def groups_by_scale(power: float, end: float) -> Values:
    return {
        (by_temperature.COUNT, "causal, V = 1"): {scale: scale**power for scale in (8, 64, 256)},
        (clusters.LAST, "causal, V = 1"): {0: 50, 4000: end},
    }


def recursion(*off: float) -> Values:
    """How far networks are from the recursion at beta .5 and 3."""
    values: dict[tuple[str, str], dict[float, float | None]] = {}
    for name, by in zip(("beta 0.5", "beta 3"), off, strict=True):
        values[cosine.COSINE, name] = {1: 0.3, 2: 0.5 + by}
        values[cosine.COSINE, f"recursion, {name}"] = {1: 0.3, 2: 0.5}
    return values


def deep_norm(decades: float, end: float) -> Values:
    return {
        **{(deep.GRADIENT, kind): {1: 10**decades, 1000: 1} for kind in deep.KINDS},
        **{(deep.COSINE, kind): {1000: end} for kind in deep.KINDS},
    }


def erasure(added: tuple[float, float], erased: tuple[float, float]) -> Values:
    """Decades after half and all of the layers."""
    ends = {delta.ADDED: added, delta.ERASED: erased, delta.REFLECTED: erased}
    return {(delta.RESIDUAL, kind): {0: 0, 64: half, 128: end} for kind, (half, end) in ends.items()}


def branches(scaled: float, plain: float) -> Values:
    lines = {scaling.SCALED: scaled, scaling.PLAIN: plain}
    return {(scaling.COSINE, line): {256: value, 512: value} for line, value in lines.items()}


def bias(*grown: float) -> Values:
    return {
        (early.BIAS, f"{line}, {skips}"): {
            early_rule.SHALLOW: 1,
            early_rule.DEEP: 1 + by,
        }
        for line, by in zip(early_reading.NETWORKS, grown, strict=True)
        for skips in ("no skips", "skips")
    }


def first_shares(*ends: float, before: float = 0.4) -> Values:
    """The first token's share after the most layers, by positions; `before`: at half as many."""
    return {
        **{
            (early.FIRST, f"{line}, {early.DECODER}"): {64: before, 128: end}
            for line, end in zip(early_reading.NETWORKS, ends, strict=True)
        },
        **{
            (early.FIRST, f"{line}, {kind}"): {32: 0.9}
            for line in early_reading.NETWORKS
            for kind in ("no skips", "skips")
        },
    }


def control(plain: float, cured: float, strong: float) -> Values:
    norms = ("norms after", "norms before")
    return {
        **{(gain.COSINE, name): {100: plain} for name in norms},
        **{(gain.COSINE, f"mean off, {name}"): {100: cured} for name in norms},
        **{(gain.STRONG, f"mean off, {name}"): {100: strong} for name in norms},
        **{(gain.STRONG, name): {100: 1} for name in norms},
        (gain.COSINE, "no attention, norms after"): {100: 0.5},
    }


def factors(plain: float, skip: float, cured: float) -> Values:
    """By what a layer multiplies the gradient."""
    of_kind = {kind: cured if "mean off" in kind else plain if kind == "A" else skip for kind in gap.KINDS}
    return {(gap.GRADIENT, kind): {layer: factor**layer for layer in (2, 5, 10)} for kind, factor in of_kind.items()}


def lambdas(attention: float, state_space: float) -> Values:
    """A layer loses a number of decades over lambda^2."""
    sizes = dict.fromkeys(skips.KINDS, attention) | {"state space model": state_space}
    return {(skips.LOSS, kind): {one: -size / one**2 for one in skips.LAMBDAS} for kind, size in sizes.items()}


def gradients(powers: tuple[float, ...]) -> Values:
    """Powers of the number of tokens at beta .43, 1, 2 and 3."""
    betas = (*query.BELOW, *query.ABOVE)
    values: dict[tuple[str, str], dict[float, float | None]] = {}
    for tokens in (1024, 2048):
        line = f"{tokens} tokens"
        values[query.GRADIENT, line] = {beta: tokens**power for beta, power in zip(betas, powers, strict=True)}
        values[query.FIXED, line] = values[query.GRADIENT, line]
        values[query.SHARE, line] = {0.43: 0.05, 1: 0.2, 3: 1}
    return values


def mixing(kept: float, reached: float) -> Values:
    """Residual and share of a change in others at the highest score, where both are .5 at score 0."""
    values: dict[tuple[str, str], dict[float, float | None]] = {}
    for line in sinks_rule.LINES:
        values[sinks.KEPT, line] = {0: 0.5, 8: kept}
        values[sinks.REACHED, line] = {0: 0.5, 8: reached}
        values[sinks.DRAWN, line] = {0: 0.1, 8: 0.9}
    return values


def products_of_free_maps(*rates: float) -> Values:
    return {
        (streams.RATE, "1 + d N"): dict(zip(streams.DEVIATIONS, rates, strict=True)),
        **{(streams.GAIN, f"1 + {d:g} N"): {1: 0.01, 64: 0.1} for d in streams.DEVIATIONS},
    }


ROLLOUT, RAW = (0.7, 0.6), (0.3, 0.2)
CASES: dict[str, tuple[Values, Values, Values]] = {
    "affine_rank": (affine_rank(0, 0), affine_rank(1, 0), affine_rank(1, 1)),
    "alibi_peak": (alibi_peak(0, 5), alibi_peak(0, 6), alibi_peak(6, 6)),
    "rollout_beats_raw_attention": (
        ranks({"rollout": ROLLOUT, "flow": ROLLOUT, "raw attention": RAW}),
        ranks({"rollout": ROLLOUT, "flow": RAW, "raw attention": (0.4, 0.3)}),
        ranks({"rollout": RAW, "flow": RAW, "raw attention": ROLLOUT}),
    ),
    "alti_beats_gradients": (
        ranks({"ALTI": (0.6, 0.6), "Jacobian": (0.5, 0.5)}),
        ranks({"ALTI": (0.9, 0.4), "Jacobian": (0.5, 0.5)}),
        ranks({"ALTI": (0.2, 0.2), "Jacobian": (0.5, 0.5)}),
    ),
    "value_zeroing_beats_weights": (
        ranks({"value zeroing": ROLLOUT, "raw attention": RAW, "rollout": RAW}, attribution.AMONG),
        ranks({"value zeroing": (0.4, 0.4), "raw attention": RAW, "rollout": ROLLOUT}, attribution.AMONG),
        ranks({"value zeroing": RAW, "raw attention": ROLLOUT, "rollout": ROLLOUT}, attribution.AMONG),
    ),
    "decomposition_is_faithful": (
        ranks({"decomposed": (0.6, 0.6), "norms": (0.5, 0.5)}),
        ranks({"decomposed": (0.9, 0.4), "norms": (0.5, 0.5)}),
        ranks({"decomposed": (0.2, 0.2), "norms": (0.5, 0.5)}),
    ),
    "causal_products": (products_of(-10, -0.2), products_of(-10, -0.3), products_of(-1, -0.2)),
    "clusters_follow_values": (groups(1, 32), groups(1, 5), groups(5, 5)),
    "clusters_by_temperature": (groups_by_scale(0.5, 1), groups_by_scale(0.5, 3), groups_by_scale(1, 1)),
    "cosine_recursion": (recursion(0.01, -0.07), recursion(0.01, -0.2), recursion(0.2, -0.2)),
    "cosine_recursion_causal": (recursion(0.01, -0.02), recursion(0.01, -0.2), recursion(0.2, -0.2)),
    "deep_norm": (deep_norm(0.2, 0), deep_norm(3, 0), deep_norm(3, 1)),
    "delta_erasure": (
        erasure((-2, -4), (-0.2, -0.2)),
        erasure((-2, -4), (-1, -2)),
        erasure((-0.1, -0.2), (-1, -2)),
    ),
    "depth_scaling": (branches(0.3, 1), branches(0.3, 0.5), branches(1, 1)),
    "depth_amplifies_early_bias": (bias(1, 2, 3), bias(1, -1, 1), bias(-1, -1, -1)),
    "only_the_first_token_is_left": (
        first_shares(0.9, 0.8, 0.7),
        first_shares(0.9, 0.3, 0.9),
        first_shares(0.3, 0.3, 0.3),
    ),
    "gain_control": (control(1, 0.5, 1), control(0.5, 0.5, 0.1), control(1, 1, 0.1)),
    "gap_gradients": (factors(1.5, 1.5, 1), factors(0.9, 1.5, 1), factors(1, 1, 1)),
    "lambda_skip": (lambdas(0.3, 0), lambdas(3, 0), lambdas(3, 3)),
    "query_gradients": (
        gradients((-0.9, -0.1, 0.1, 0.1)),
        gradients((-0.9, 0.1, 0.1, 0.1)),
        gradients((0.1, 0.1, 0.1, 0.1)),
    ),
    "sinks_slow_mixing": (mixing(0.9, 0.01), mixing(0.9, 0.6), mixing(0.1, 0.6)),
    "free_streams_explode": (
        products_of_free_maps(1e-5, 1e-4, 1e-3, 1e-2),
        products_of_free_maps(-1e-5, 1e-4, 1e-3, 1e-2),
        products_of_free_maps(-1e-5, -1e-4, -1e-3, -1e-2),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_rule_can_say_each_verdict(name: str) -> None:
    check_verdicts(name, *CASES[name])


def test_no_claim_is_left_out() -> None:
    ours = {claim.name for claim in claims() if "." not in claim.table and claim.table < "invertible_states"}
    assert {*CASES} == ours | {*OF_OTHER_FOLDERS}


def test_a_share_that_still_rises_decides_nothing_of_the_limit() -> None:
    found = decide_on("only_the_first_token_is_left", first_shares(0.3, 0.3, 0.3, before=0.2))
    assert found.verdict == UNDECIDED and "still rises" in found.wants


def test_a_change_that_may_be_nothing_is_no_end_of_a_loss() -> None:
    """An interval around zero, wide enough for the loss that adding has, counted as no loss."""
    none, loss = Band(-0.05, -0.3, 0.2, 8), Band(-0.3, -0.4, -0.2, 8)
    assert erasing.stays(none, Band(0.1, -0.1, 0.3, 8)) is None
    assert erasing.stays(none, Band(0.25, 0.1, 0.4, 8)) is True
    assert erasing.stays(loss, Band(0.25, 0.1, 0.4, 8)) is False
