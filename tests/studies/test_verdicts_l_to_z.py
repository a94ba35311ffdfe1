"""Guards that the rule of each claim (folders l to z, and `invertible_states`) can say that it holds, that it holds in part and that it is
contradicted, and that what the bench adds to the source's setting decides nothing."""

from collections.abc import Callable, Mapping

import pytest
from claim_verdicts import Values, check_verdicts

from rankfall.report.claim import claims
from studies.claims.invertible_states import names as inversion
from studies.claims.invertible_states import rule as inversion_rule
from studies.claims.last_tokens_converge import names as repeated
from studies.claims.last_tokens_converge import rule as repeated_rule
from studies.claims.layer_collapse import names as collapse
from studies.claims.layers_are_lazy_unless_branches_fall_as_depth import (
    rule as lazy_rule,
)
from studies.claims.lazy_branches import names as lazy
from studies.claims.length_and_scale import names as scaled
from studies.claims.log_n_scale_keeps_the_peak import rule as peak_rule
from studies.claims.lost_in_the_middle_at_birth import names as middle
from studies.claims.lost_in_the_middle_at_birth import rule as middle_rule
from studies.claims.masks import MASKS
from studies.claims.massive_token import names as massive
from studies.claims.norm_equilibria import names as equilibria
from studies.claims.norm_growth import names as growth
from studies.claims.norms_prevent_collapse import names as norms
from studies.claims.norms_prevent_collapse import rule as norms_rule
from studies.claims.order_without_positions import names as order
from studies.claims.pretrained_encoder import names as encoder
from studies.claims.rope_and_distance import names as rope
from studies.claims.score_scale_slows import names as slows
from studies.claims.score_scales import names as scales
from studies.claims.score_scales.limits import cosine_after, critical_of_cosines, critical_of_noise, squares_of_weights
from studies.claims.shaped_attention import names as shaped
from studies.claims.shaped_attention_keeps_rank import rule as shaped_rule
from studies.claims.sigmoid_matches_softmax import rule as sigmoid_rule
from studies.claims.sinks_need_normalisation import names as sinks
from studies.claims.sinks_need_normalisation import reading as sinks_reading
from studies.claims.sinks_need_normalisation import rule as sinks_rule
from studies.claims.stabilisers import names as stabilisers
from studies.claims.stabilisers.reading import PREDICTED
from studies.claims.stream_products import names as streams
from studies.claims.trained_bias import names as bias
from studies.claims.value_residuals import names as residuals
from studies.claims.value_spectrum import names as spectrum
from studies.claims.vanishing_gradients import names as vanishing
from studies.claims.width_collapse import names as width

THEIRS = {
    "query_gradients",
    "lambda_skip",
    "sinks_slow_mixing",
}  # folders whose rules another file of this folder covers
FREE = {"free_streams_explode"}
Table = dict[tuple[str, str], dict[float, float | None]]


def lines(quantity: str, values: Mapping[str, float | Mapping[float, float] | None], x: float = 1.0) -> Table:
    """Return the rows of a quantity: a line's values by x, or one of them at `x`."""
    return {(quantity, line): dict(one) if isinstance(one, Mapping) else {x: one} for line, one in values.items()}


def curve(function: Callable[[float], float], *xs: float) -> dict[float, float]:
    return {x: function(x) for x in xs}


def wide(theirs: tuple[float, float], added: float = 2.0) -> Table:
    """Stable ranks after a layer, of both kinds of weights where all see all."""
    first, second = width.WEIGHTS
    seen, causal = width.MASKS
    ranks = {f"{first}, {seen}": theirs[0], f"{second}, {seen}": theirs[1]} | {
        f"{one}, {causal}": added for one in width.WEIGHTS
    }
    usual = {f"{one}, {seen}": added for one in width.WEIGHTS}
    return (
        lines(width.FOURTH.format(1), ranks) | lines(width.USUAL.format(1), usual) | lines(width.USUAL.format(2), usual)
    )


def cured(first: float, second: float, causal: float = 0.1) -> Table:
    powers = dict(zip((f"{one}, {width.MASKS[0]}" for one in width.WEIGHTS), (first, second)))
    powers |= {f"{one}, {width.MASKS[1]}": causal for one in width.WEIGHTS}
    return lines(width.FOURTH.format(1), {line: curve(lambda x, p=p: x**p, 32, 64, 128) for line, p in powers.items()})


def converging(power: float, share: float, added: float = 0.0, same: float = 0.0) -> Table:
    """Distances that go like n^power, and shares of states that are equal."""
    found = lines(
        repeated.DISTANCE,
        {line: {2.0**k: 0.3 * power * k for k in range(4)} for line in repeated_rule.POSITIONS}
        | {line: {2.0**k: 0.3 * added * k for k in range(4)} for line in repeated_rule.OTHERS},
    )
    equal = {f"{line}, bfloat16": share for line in repeated_rule.POSITIONS}
    return found | lines(repeated.EQUAL, equal | {f"{line}, bfloat16": same for line in repeated_rule.OTHERS}, 512)


def counting(apart: float, told: float, behind: float = -0.2) -> Table:
    distances = {"softmax, no BOS": apart, "softmax, BOS": behind, "l2, no BOS": 1.0, "exp, no BOS": 2.0}
    digits = {"softmax, no BOS": {8.0: 0.0, 53.0: told}, "softmax, BOS": {8.0: 14.0, 53.0: 1024.0}}
    return lines(repeated.APART, distances, 4) | lines(repeated.READ, digits)


def inverted(exact: float, rounded: float, added: float = 0.5) -> Table:
    formats = dict(zip(inversion_rule.FORMATS, (exact, exact, rounded)))
    found = {
        f"{line}, {name}": {1.0: share, 24.0: share}
        for line in inversion_rule.THEIRS
        for name, share in formats.items()
    }
    found |= {f"{line}, {name}": {1.0: 1.0, 24.0: added} for line in inversion_rule.OTHERS for name in formats}
    near = {
        line: {0.0: 0.0, 1.0: -1.0, 24.0: -24.0}
        for line in (*inversion_rule.THEIRS, *inversion_rule.OTHERS, inversion_rule.AVERAGES)
    }
    return lines(inversion.FOUND, found) | lines(inversion.NEAREST, near)


def diagonal(twice: float, turned: float, apart: float = 1.0) -> Table:
    return lines(rope.OWN, {rope.TWICE: twice, rope.ROPE: turned, rope.DIFFER: apart}, 256)


def rotated(mean: float, size: float) -> Table:
    return (
        lines(rope.MEAN, {"independent": {0.0: mean, 1.0: 0.5}})
        | lines(rope.SIZE, {"independent": {0.0: 1.0, 1.0: size}})
        | lines(rope.ALIKE, {"mean of queries": {0.0: 8.0, 1.0: 2.0}})
    )


def fading(slower: float, own: float, noise: float = 0.9) -> Table:
    """`own`: where the share of the token itself passes one half."""
    shares = {name: {0.5: 0.0, own: 0.5, 2.0: 1.0} for name in ("noise 0", "noise 2")}
    return lines(scales.WRONG, {scales.SLOWER: slower, scales.NOISE: noise}, 65536) | lines(scales.OWN, shares)


def cosines(off: float, critical: float) -> Table:
    values = {
        f"rho 0.5, {name}": cosine_after(0.5, k * critical_of_cosines(0.5)) + off
        for name, k in scales.OF_CRITICAL.items()
    }
    return lines(scales.COSINE, values, 1024) | lines(scales.CRITICAL, {"rho 0.5": critical}, 1024)


def squares(power: float, off: float) -> Table:
    xs = (256.0, 1024.0, 4096.0)
    found: dict[str, Mapping[float, float]] = {}
    for name, share in scales.SHARES.items():
        limit = squares_of_weights(0.0, share * critical_of_noise(0.0)) + off
        found[f"rho 0, {name}"] = curve(lambda x: x**power, *xs) if share < 1 else dict.fromkeys(xs, limit)
    return lines(scales.SQUARES, found)


def grown(*functions: Callable[[float], float]) -> Table:
    """What layers add, for both starts; other starts grow otherwise."""
    both = dict(zip(growth.STARTS, functions))
    others = {growth.CURE: lambda x: x**0.2, growth.SHARED: lambda x: x**2}
    layers = [2.0**k for k in range(9)]
    return lines(growth.ADDED, {line: curve(one, *layers) for line, one in (both | others).items()})


def around(first: float, second: float) -> Table:
    layers = [2.0**k for k in range(9)]
    return lines(
        growth.ADDED,
        {
            "norms around, Xavier": curve(lambda x: x**first, *layers),
            "norms around, N": curve(lambda x: x**second, *layers),
        },
    )


def stabilised(claim: str, off: float, more: int, left: float = 1.0) -> Table:
    name = claim.removesuffix("_and_rank")
    orders, counts = PREDICTED[claim]
    found = lines(stabilisers.LEFT, {"scores of deviation 1": curve(lambda x: left * x, *stabilisers.LAMBDAS)})
    for line in ("softmax", name):
        found |= lines(stabilisers.ORDER, {line: {float(k): p + off for k, p in enumerate(orders)}})
        found |= lines(stabilisers.DISTINCT, {line: {float(k): float(n + more) for k, n in enumerate(counts)}})
        found |= lines(stabilisers.DEAD, {line: {0.0: 1.0, 1.0: 1.0}})
    return found


def first_values(end: float, half: float, plain: float = -6.8, every: float | None = None) -> Table:
    """log10 of the residual of earlier tokens; of layers that see every token it is below rounding where nothing is said."""
    found = {
        "with first values, earlier tokens": {12.0: half, 24.0: end},
        f"{residuals.PLAIN}, earlier tokens": {12.0: plain / 2, 24.0: plain},
        "with first values, every token": {12.0: every, 24.0: every},
        f"{residuals.PLAIN}, every token": {12.0: None, 24.0: None},
    }
    table: Table = {(residuals.RESIDUAL, line): dict(one) for line, one in found.items()}
    return table | lines(residuals.AFTER, {line: {-1.0: -1.0, -2.0: -2.0} for line in found})


def peak(plain: float, kept: float, faded: float = 0.5, added: float = 0.5) -> Table:
    found = {f"softmax, gap {gap:g}": plain if gap == peak_rule.THEIRS else faded for gap in peak_rule.GAPS}
    found |= {f"{peak_rule.SCALED}, gap {gap:g}": kept if gap == peak_rule.THEIRS else added for gap in peak_rule.GAPS}
    return lines(scaled.LARGEST, found, 1e6)


def sigmoid(close: float, bare: float, added: float = 5.0) -> Table:
    found = {f"{size}, shift -log n": added for size in sigmoid_rule.SIZES} | {
        f"{sigmoid_rule.SIZES[0]}, shift -log n": close
    }
    found |= {f"{sigmoid_rule.SIZES[0]}, no shift": bare}
    return lines(scaled.OFF, found) | lines(scaled.SUM, found)


def at_birth(ranks: float, off: float, added: tuple[float, float] = (0.5, 0.5)) -> Table:
    found = {f"{line}, averaging": (ranks, off) for line in middle_rule.THEIRS}
    found |= {f"{line}, {form}": added for line in middle_rule.ALONE for form in ("averaging", "in squares")}
    return lines(middle.RANKS, {line: one for line, (one, _) in found.items()}) | lines(
        middle.OFF, {line: one for line, (_, one) in found.items()}
    )


def long_token(over: float, rank: float, without: float, drawn: float = 0.1) -> Table:
    return (
        lines(massive.SHARE, {"measured": {1.0: 0.5, 300.0: 0.9 + over}, "bound": {1.0: 0.5, 300.0: 0.9}})
        | lines(massive.ENTROPY, {"measured": {1.0: 1.0, 300.0: 0.1}, "bound": {1.0: 1.0, 300.0: 0.2}})
        | lines(
            massive.RANK, {"all tokens": {1.0: 2.5, 300.0: rank}, "without the first token": {1.0: 2.5, 300.0: without}}
        )
        | lines(massive.DRAWN, {"last layer": {1.0: 0.1, 300.0: drawn}})
    )


def kept_apart(*logs: float) -> Table:
    found = {
        f"{mask}, {how}": log for mask, log in zip(norms_rule.MASKS, logs) for how in ("without rounding", "float32")
    }
    return lines(norms.QUANTITY, found, 24)


def slowed(*gains: float) -> Table:
    """Decades that a step of the scale keeps more, by mask."""
    return lines(
        slows.SPREAD,
        {
            f"{mask}, scores times {scale:g}": gain * k
            for mask, gain in zip(MASKS, gains)
            for k, scale in enumerate(slows.SCALES)
        },
        24,
    )


def collapsing(power: float, normed: float = 0.0) -> Table:
    etas = (0.03, 0.01, 0.003)
    powers = {collapse.ONE: power, collapse.NORMED: normed, collapse.NONE: 1.0}
    return lines(collapse.ERROR, {line: curve(lambda eta, p=p: eta**p, *etas) for line, p in powers.items()})


def shaping(both: float, causal: float, added: float = 0.1) -> Table:
    found = {f"{form}, mask {mask}": added for form in ("plain", *shaped_rule.FORMS) for mask in shaped_rule.MASKS}
    return lines(
        shaped.KEPT,
        found
        | {
            f"{shaped_rule.FORMS[0]}, mask none": both,
            f"{shaped_rule.FORMS[0]}, mask causal": causal,
        },
        32,
    )


def branches(whole: float, root: float) -> Table:
    powers = {
        lazy_rule.WHOLE: whole,
        lazy_rule.ROOT: root,
    }
    return lines(lazy.CURVED, {line: curve(lambda x, p=p: x**p, 4, 16, 64) for line, p in powers.items()})


def equilibrium(*ranks: float) -> Table:
    """Ranks 1 to 3, of which `ranks` stay."""
    moved = {float(k): -12.0 if k in ranks else -3.0 for k in (1, 2, 3)}
    exact = {float(k): float(k) for k in (1, 2, 3)}
    found = lines(equilibria.RANK, {equilibria.EXACT: exact, equilibria.DISTURBED: dict.fromkeys(exact, 1.0)})
    others: Table = {(equilibria.OTHERS, "random"): {0.0: 1.0, 1.0: 1.0, 2.0: 1.0}}
    return found | lines(equilibria.MOVED, {equilibria.EXACT: moved}) | others


def learned(causal: float, masked: float) -> Table:
    """Right answers without positions; with them nine tenths."""
    found = {"causal, learned positions": 0.9, "causal, no positions": causal}
    found |= {"masked, learned positions": 0.9, "masked, no positions": masked}
    return lines(order.RIGHT, found, 1500) | lines(order.LOSS, found, 1500)


def sinking(softmax: float, free: float, added: float = 0.9) -> Table:
    drawn = {sinks_reading.SOFTMAX: softmax, sinks_rule.SIGMOID: free} | dict.fromkeys(sinks_rule.SQUARED, added)
    return lines(sinks.DRAWN, drawn) | lines(sinks.COPIED, dict.fromkeys(drawn, 0.95))


def keyed(drawn: float, taken: float) -> Table:
    return lines(sinks.DRAWN, {sinks_reading.SOFTMAX: 0.6, sinks_reading.OWN_KEY: drawn}) | lines(
        sinks.TAKEN, {sinks_reading.OWN_KEY: taken}
    )


def biased(line: str, *gaps: float) -> Table:
    depths = {float(2**k): gap for k, gap in enumerate(gaps)}
    right = lines(bias.RIGHT, {line: dict.fromkeys(depths, 0.99)})
    return lines(bias.GAP, {line: depths}) | lines(bias.ENDS, {line: depths}) | right


def eigenvalues(*right: bool) -> Table:
    """Whether the residual goes as it should, in each kind of network."""
    found = {}
    for kind, well in zip((spectrum.SCALED, spectrum.NORMED), right):
        found[kind] = {h: (1.0 if abs(1 + h) < 1 else -1.0) * (1 if well else -1) for h in spectrum.EIGENVALUES}
    return lines(spectrum.GAIN, found | {spectrum.RANDOM: dict.fromkeys(spectrum.EIGENVALUES, -1.0)})


def gradients(queries: float, keys: float, others: float) -> Table:
    powers = dict.fromkeys(vanishing.WEIGHTS, others) | {"queries": queries, "keys": keys}
    return lines(vanishing.GRADIENT, {part: curve(lambda e, p=p: e**p, 0.1, 0.01) for part, p in powers.items()})


def gains(first: float, second: float) -> Table:
    values = iter((first, second))
    return lines(streams.GAIN, {name: 1.0 if "one round" in name else next(values) for name in streams.STOCHASTIC}, 64)


def equal_streams(first: float, second: float) -> Table:
    found = {"near the identity": {1.0: 0.0, 64.0: first}, "random": {1.0: 0.0, 64.0: second}}
    return lines(streams.APART, found) | lines(streams.OUT, {"streams": {-1.0: -1.0, -2.0: -2.0}})


def states(share: float, smallest: float, cosine: float, added: tuple[float, float, float] = (0.5, 1.0, 0.0)) -> Table:
    parts = dict.fromkeys(encoder.PARTS, added) | {encoder.ALL: (share, smallest, cosine)}
    ends = {
        part: [{0.0: 1.0, 6.0: one[0]}, {0.0: 0.0, 6.0: one[1]}, {0.0: 0.1, 6.0: one[2]}] for part, one in parts.items()
    }
    found: Table = {}
    for k, quantity in enumerate((encoder.SHARE, encoder.SMALLEST, encoder.COSINE)):
        found |= lines(quantity, {part: one[k] for part, one in ends.items()})
    return found


def spikes(first: float, last: float) -> Table:
    """Sinks at layers 1 and 2, and the largest entries there."""
    drawn = {
        encoder.EVERY: {1.0: 0.5, 2.0: 0.6},
        encoder.FIRST: {1.0: 0.5, 2.0: 0.6},
        encoder.SEPARATOR: {1.0: 0.1, 2.0: 0.1},
    }
    return lines(encoder.SINK, drawn) | lines(encoder.SPIKE, {encoder.STATES: {1.0: first, 2.0: last}})


def cut(kept: float, lost: float, added: float = 0.1) -> Table:
    found = dict.fromkeys(encoder.PARTS, added) | {encoder.ALL: kept, encoder.CUT: lost}
    return lines(encoder.RESIDUAL, found, 6)


def linear(x: float) -> float:
    return x


def exponential(x: float) -> float:
    return 2.0**x


TABLES: dict[str, tuple[Values, Values, Values]] = {
    "width_collapse": (wide((1.01, 1.0)), wide((1.01, 2.0)), wide((3.0, 2.0), added=1.0)),
    "width_collapse_cured": (cured(0.9, 0.85), cured(0.9, 0.1), cured(0.1, 0.1, causal=0.9)),
    "last_tokens_converge": (converging(-1, 0.9), converging(-1, 0.0), converging(0.1, 0.0, added=-1, same=0.9)),
    "counting_needs_positions": (counting(-14, 0), counting(-14, 9), counting(-1, 9, behind=-14)),
    "invertible_states": (inverted(1, 1), inverted(1, 0.9), inverted(0.9, 0.9, added=1)),
    "diagonal_heads_need_positions": (diagonal(0.5, 1), diagonal(0.5, 0.6), diagonal(1, 1, apart=0.5)),
    "rope_scores_do_not_decay": (rotated(1, 1.01), rotated(1, 1.2), rotated(9, 1)),
    "log_n_against_fading": (fading(0.01, 1.0), fading(0.01, 1.5), fading(0.9, 1.5, noise=0.1)),
    "log_n_for_cosines": (cosines(0, 1), cosines(0, 1.3), cosines(0.2, 1.3)),
    "root_log_n_for_random_scores": (squares(-0.5, 0), squares(-0.5, 0.2), squares(0.5, 0)),
    "prenorm_grows_exponentially": (
        grown(exponential, exponential), grown(lambda x: x**2, lambda x: x**2), grown(linear, linear)
    ),
    "prenorm_grows_linearly": (
        grown(lambda x: x**2, lambda x: x**2), grown(linear, linear), grown(linear, lambda x: x**3)
    ),
    "peri_norm_grows_linearly": (around(1, 1), around(1, 2), around(2, 2)),
    "gate_and_rank": tuple(stabilised("gate_and_rank", *one) for one in ((0, 0), (0, 1), (1, 1))),
    "softpick_and_rank": tuple(stabilised("softpick_and_rank", *one) for one in ((0, 0), (0, 1), (1, 1))),
    "differential_and_rank": tuple(
        stabilised("differential_and_rank", *one) for one in ((0, 0), (0, 0, -1), (1, 1, -1))
    ),
    "first_values_mixed": (first_values(-0.5, -0.5), first_values(-5, -2), first_values(-9, -4, every=-0.1)),
    "first_values_added": (
        first_values(-0.5, -0.5, every=-0.1), first_values(-5, -2, every=-0.1), first_values(-9, -4, every=-13.5)
    ),
    "log_n_scale_keeps_the_peak": (peak(0.01, 1), peak(0.01, 0.5), peak(0.5, 0.5, faded=0.01, added=0.99)),
    "sigmoid_matches_softmax": (sigmoid(0.01, 500), sigmoid(0.01, 0.1), sigmoid(0.9, 500, added=0.01)),
    "lost_in_the_middle_at_birth": (at_birth(0.99, 0.01), at_birth(0.99, 0.4), at_birth(0.5, 0.4, added=(0.99, 0.01))),
    "massive_token_forces_low_rank": (
        long_token(0.01, 1.01, 2.5), long_token(0.01, 1.01, 1.2), long_token(-0.01, 1.01, 2.5, drawn=0.9)
    ),
    "norms_prevent_collapse": (kept_apart(1, 1, 1), kept_apart(-9, 1, 1), kept_apart(-9, -9, -9)),
    "score_scale_slows": (slowed(3, 2, 1), slowed(3, -2, 1), slowed(-3, -2, -1)),
    "layer_collapse": (collapsing(2), collapsing(0.5), collapsing(-1, normed=2)),
    "shaped_attention_keeps_rank": (shaping(0.9, 0.9), shaping(0.9, 0.2), shaping(0.2, 0.2, added=0.9)),
    "layers_are_lazy_unless_branches_fall_as_depth": (branches(0, -0.5), branches(0, 0), branches(-0.5, 0)),
    "norm_equilibria": (equilibrium(1, 2, 3), equilibrium(1, 2), equilibrium(1)),
    "order_without_positions": (learned(0.88, 0.3), learned(0.88, 0.8), learned(0.5, 0.8)),
    "sinks_need_normalisation": (sinking(0.6, 0.1), sinking(0.6, 0.4), sinking(0.6, 0.7)),
    "a_key_of_its_own_takes_the_sink": (keyed(0.1, 0.5), keyed(0.1, 0.1), keyed(0.5, 0.1)),
    "trained_bias_grows_with_depth": (
        biased("no skips", 0.1, 0.2, 0.3), biased("no skips", 0.1, 0.4, 0.3), biased("no skips", 0.3, 0.2, 0.1)
    ),
    "trained_bias_turns_with_skips": (
        biased("skips", 0.4, 0.5, 0.2), biased("skips", 0.1, 0.4, 0.41), biased("skips", 0.1, 0.4, 0.7)
    ),
    "value_spectrum": (eigenvalues(True, True), eigenvalues(True, False), eigenvalues(False, False)),
    "vanishing_gradients": (gradients(2, 2, 0), gradients(2, 0, 0), gradients(0, 0, 0)),
    "stochastic_streams_keep_gain": (gains(0, 0.1), gains(0, 1), gains(1, 1)),
    "stochastic_streams_become_equal": (equal_streams(-3, -30), equal_streams(-1, -30), equal_streams(-1, -1)),
    "pretrained_states_keep_full_rank": (states(1, -1, 0.4), states(1, 1, 0.4), states(0.5, -1, 0.4, added=(1, -1, 0.4))),
    "sinks_and_spikes_come_apart": (spikes(50, 60), spikes(50, 2000), spikes(2000, 2000)),
    "trained_skips_keep_rank": (cut(0.9, 0.01), cut(0.9, 0.5), cut(0.2, 0.01, added=0.9)),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_a_rule_can_say_each_verdict(name: str) -> None:
    check_verdicts(name, *TABLES[name])


def test_every_claim_has_its_tables() -> None:
    folders = {
        claim.name
        for claim in claims()
        if "." not in claim.table and (claim.table >= "l") and claim.table not in THEIRS
    }
    assert set(TABLES) == (folders | {"invertible_states"}) - FREE
