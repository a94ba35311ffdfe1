"""The claim with its source, and the rule that decides it."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankfall.claims.answers import by_parts, lies_between
from rankfall.claims.score_scales.limits import (
    cosine_after,
    critical_of_cosines,
    critical_of_noise,
    decay_of_squares,
    squares_of_weights,
)
from rankfall.claims.score_scales.names import (
    ALONE,
    BOTH,
    COSINE,
    CRITICAL,
    LIKE,
    NOISE,
    OF_CRITICAL,
    OWN,
    RANDOM,
    SHARES,
    SLOWER,
    SQUARES,
    WRONG,
)
from rankfall.claims.trends import line, slopes
from rankfall.report.claim import (
    Band,
    Claim,
    Decision,
    Extension,
    Read,
    Threshold,
    band,
    band_of,
    compare,
    evidence_rows,
    is_on,
    judge,
    within,
)

CLOSE = Threshold(0.05, "below", "distance from the limit", "of every cosine, at the most tokens")
LOW, HIGH = within(1, 0.1, CRITICAL, "at the most tokens")
FALLS = Threshold(
    0.0, "below", "power of the number of tokens in the sum of squared weights", "under the critical scale"
)
REACHED = Threshold(
    CLOSE, "below", "distance of the extrapolated sum of squared weights from its limit", "over the critical scale"
)
AVERAGES = Threshold(0.2, "below", WRONG, SLOWER)
SPREADS = Threshold(0.8, "below", WRONG, NOISE)
LOW_OWN, HIGH_OWN = within(
    1, 0.1, "scale at which half of the weight is on the token itself, over the critical one", ALONE
)
CHEN = "Chen, Lin, Polyanskiy and Rigollet: Critical attention scaling in long-context transformers, 2025"
GOLDT = "Giorlandino and Goldt: Two failure modes of deep transformers and how to avoid them, 2025"


def lines_of(rows: Any, quantity: str) -> list[str]:
    return sorted(name for name in evidence_rows(rows, quantity).line.unique() if not name.startswith("limit"))


def rho_of(line_name: str) -> float:
    return float(line_name.split(",")[0].removeprefix("rho "))


def decide_cosines(read: Read) -> Decision:
    rows = read("evidence")
    last = float(evidence_rows(rows, COSINE).x.max())
    worst = 0.0
    parts: dict[str, bool | None] = {}
    for name in lines_of(rows, COSINE):
        rho = rho_of(name)
        limit = cosine_after(rho, OF_CRITICAL[name.split(", ")[1]] * critical_of_cosines(rho))
        found = band_of(rows, COSINE, name, last)
        worst = max(worst, abs(found.mean - limit))
        parts[f"{name}: {found} for {limit:.3g}"] = lies_between(found, limit - CLOSE, limit + CLOSE)
    critical = {rho_of(name): band_of(rows, CRITICAL, name, last) for name in lines_of(rows, CRITICAL)}
    parts |= {f"the critical scale at rho {rho:g}": lies_between(one, LOW, HIGH) for rho, one in critical.items()}
    wrong, unclear = ([name for name, answer in parts.items() if answer is what] for what in (False, None))
    middle = critical[sorted(critical)[len(critical) // 2]]
    text = (
        f"At {last:,.0f} tokens half of the weight is on the token itself from "
        + ", ".join(f"{found.mean:.3f} / (1 - rho) at rho {rho:g}" for rho, found in sorted(critical.items()))
        + f"; cosines after the layer differ from 1, 4 rho / (1 + 3 rho) and rho by at most {worst:.2g}"
        + (f" (not within bounds: {'; '.join(wrong)})" if wrong else "")
        + "."
    )
    return judge(text, middle, "more seeds: " + "; ".join(unclear), **by_parts(parts.values()))


def decide_noise(read: Read) -> Decision:
    rows = read("evidence")
    below, gaps, said, missed = [], [], [], []
    for name in lines_of(rows, SQUARES):
        rho, share = rho_of(name), SHARES[name.split(", ")[1]]
        found = evidence_rows(rows, SQUARES, name)
        if share < 1:
            fall = band(slopes(found, log=True))
            below.append(compare(fall, FALLS))
            theory = decay_of_squares(share * 2**0.5)
            missed += [name] * (not fall.low <= theory <= fall.high)
            said.append(f"n^{fall.mean:.2f} (theory {theory:.2f}) at {name}")
        else:
            limit = squares_of_weights(rho, share * critical_of_noise(rho))
            reached = band(line(1 / np.log(one.x), one.value)[1] for _, one in found.groupby("seed"))
            gaps.append(Band(reached.mean - limit, reached.low - limit, reached.high - limit, reached.seeds))
            missed += [name] * (not reached.low <= limit <= reached.high)
            said.append(f"{reached} (theory {limit:.3f}) at {name}")
    worst = max(gaps, key=lambda one: abs(one.mean))
    text = f"The sum of squared weights goes, over the number of tokens and extrapolated in 1 / log n, like {'; '.join(said)}."
    if missed:
        text += f" Intervals exclude theory's number at {'; '.join(missed)}."
    far = [one for one in gaps if one.low > REACHED or one.high < -REACHED]
    near = [one for one in gaps if one.low > -REACHED and one.high < REACHED]
    return judge(
        text,
        worst,
        "more seeds, or more tokens: corrections are of order 1 / log n",
        contradicted="above" in below,
        undecided="undecided" in below or len(far) + len(near) < len(gaps),
        in_part=bool(far),
        holds=True,
    )


def decide_both(read: Read) -> Decision:
    rows = read("evidence")
    last = float(evidence_rows(rows, WRONG).x.max())
    noise, like = (band_of(rows, WRONG, name, last) for name in (NOISE, SLOWER))
    crossings = {
        name: band(crossing(one) for _, one in evidence_rows(rows, OWN, name).groupby("seed"))
        for name in lines_of(rows, OWN)
    }
    answers = {name: lies_between(one, LOW_OWN, HIGH_OWN) for name, one in crossings.items()}
    said = (
        f"Cosines times sqrt(log n), at {last:,.0f} tokens and twice the critical factor, "
        f"have squared weights that sum to {like.mean:.2g}: "
        f"attention averages. Times log n, half of the weight is on the token itself at {crossings[ALONE].mean:.2f} times the scale that "
        "theory has."
    )
    extends = [
        Extension(
            f"independent scores: times log n, at twice what is critical for sqrt(log n), their sum of squared weights is "
            f"{noise.mean:.3f}, and attention sees one token",
            is_on(noise, SPREADS),
        ),
        *(
            Extension(
                f"cosines and {name} times sqrt(log n): {one.mean:.2f} times the scale that theory has", answers[name]
            )
            for name, one in crossings.items()
            if name != ALONE
        ),
    ]
    parts = (is_on(like, AVERAGES), answers[ALONE])
    return judge(said, crossings[ALONE], "more tokens", extends, **by_parts(parts))


def crossing(one: Any) -> float:
    """Return the scale at which the token's own share passes one half, interpolated between the measured scales."""
    ordered = one.sort_values("x")
    x, y = list(ordered.x), list(ordered.value)
    for i in range(1, len(x)):
        if y[i] >= 0.5:
            return float(x[i - 1] + (x[i] - x[i - 1]) * (0.5 - y[i - 1]) / (y[i] - y[i - 1]))
    return float("nan")


CLAIMS = (
    Claim(
        LIKE,
        "Where queries, keys and values are the tokens, of cosine rho, the critical scale of scores is log(n) / (1 - rho): below it tokens "
        "become equal in one layer, at it their cosine is 4 rho / (1 + 3 rho), above it they stay as they are.",
        CHEN,
        "https://arxiv.org/abs/2510.05554",
        ("abstract", "second-hand"),
        "One layer without skip, tokens sqrt(rho) z_0 + sqrt(1 - rho) z_i of length one in 1,024 dimensions, rho .2, .5, .8, up to 1,024 "
        "tokens, 10 seeds. The paper has n to infinity.",
        "It holds if at the largest n every interval of a cosine after the layer, at half, once and 1.5 times the critical scale, "
        "lies within "
        ".05 of its limit, and the scale at which half of the weight is on the token itself within 10% of the published one: what is "
        "left of order 1 / log n at a thousand tokens. In part if some of them do, contradicted if none does.",
        decide_cosines,
        thresholds=(CLOSE, LOW, HIGH),
        place=20,
        changed="10 seeds instead of 5. The critical scale is judged by its interval, as cosines are, and not by its mean.",
    ),
    Claim(
        RANDOM,
        "With random query and key maps the critical scale of scores is sqrt(2 log(T) / (1 - rho)): below it attention averages, "
        "above it a "
        "share 1 - beta_c / beta of the squared weights stays on single tokens.",
        GOLDT,
        "https://arxiv.org/abs/2505.24333",
        ("code",),
        "Scores of deviation beta sqrt(log T) from random maps of 1,024 dimensions, tokens of cosine 0 and .5, 256 to 16,384 tokens, up "
        "to 512 rows a seed, 32 seeds. The paper has T to infinity.",
        "It holds if below (half and three quarters of the critical scale) the sum of squared weights falls with T in all seeds' interval, "
        "and above (1.5 and 2 times) its value extrapolated in 1 / log T lies within .05 of the limit.",
        decide_noise,
        thresholds=(FALLS, REACHED),
        place=21,
        changed="Maps have 1,024 dimensions instead of 256, at which the largest of 65,536 scores are not normal any more, and an "
        "extrapolation takes that for a limit; 32 seeds instead of 5. Intervals decide, where the mean alone did.",
    ),
    Claim(
        BOTH,
        "Scores have to grow with log n, so that attention does not fade in long contexts: log n is the critical scale.",
        f"{CHEN}; against {GOLDT}",
        "https://arxiv.org/abs/2510.05554",
        ("abstract", "second-hand", "code"),
        "One row of scores of tokens of cosine rho .5, as in the source, times log n and times sqrt(log n), up to 65,536 tokens, 10 "
        "seeds. Ours: independent scores, and sums g log n <x_i, x_j> + b sqrt(log n) N, b .7 to 2.",
        "Two parts, for cosines: times sqrt(log n), at twice the critical factor, attention averages (a sum of squared weights below .2); "
        "and times log n half of the weight is on the token itself within 10% of the critical scale that theory has. It holds if both "
        "are so, in part if one is. Independent scores, whose scale is sqrt(log n) by the other source, and sums of both decide nothing.",
        decide_both,
        thresholds=(AVERAGES, LOW_OWN, HIGH_OWN, SPREADS),
        place=22,
        shown=OWN,
        changed="It was called `log_n_for_all_scores`, and held only in part because independent scores decided; the source has cosines "
        "alone. 10 seeds instead of 5.",
    ),
)
