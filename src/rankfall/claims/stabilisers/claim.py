"""The claim with its source, and the rule that decides it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from rankfall.claims.stabilisers.names import DEAD, DIFFERENTIAL, DISTINCT, GATE, LAMBDAS, LEFT, ORDER, SOFTPICK
from rankfall.report.claim import Claim, Decision, Read, Threshold, band, band_of, evidence_rows, judge

EXACT = Threshold(0.05, "below", "distance of an order of contraction from the predicted one", "every seed")
PREDICTED = {  # orders without and with a causal mask; rows of twelve equal tokens, without position and with ALiBi
    GATE: ((1.0, 1.0), (1, 1)),
    SOFTPICK: ((3.0, 1.0), (1, 6)),
    DIFFERENTIAL: ((3.0, 1.0), (1, 1)),
}


def decide(read: Read, claim: str) -> Decision:
    rows = read("evidence")
    name = claim.removesuffix("_and_rank")
    orders, distinct = PREDICTED[claim]
    found = [evidence_rows(rows, ORDER, name, place).value for place in (0, 1)]
    plain = [evidence_rows(rows, ORDER, "softmax", place).value for place in (0, 1)]
    counts = [sorted(evidence_rows(rows, DISTINCT, name, place).value.astype(int)) for place in (0, 1)]
    apart = [one[-1] for one in counts]
    dead = [evidence_rows(rows, DEAD, name, place).value for place in (0, 1)]
    right = [
        len(one.dropna()) > 0 and bool(((one.dropna() - p).abs() < EXACT).all())
        for one, p in zip(found, orders, strict=True)
    ]
    right += [a == b for a, b in zip(apart, distinct, strict=True)]
    text = (
        f"Order {say(found[0])} where every token is seen (softmax {say(plain[0])}), {say(found[1])} where earlier ones are "
        f"({say(plain[1])}); predicted {orders[0]:g} and {orders[1]:g}. Of equal tokens it tells at most {apart[0]} apart without "
        f"positions ({', '.join(map(str, counts[0]))} by draw), {apart[1]} with ALiBi ({', '.join(map(str, counts[1]))}); predicted "
        f"{distinct[0]} and {distinct[1]}. As they are drawn, before queries are changed, {dead[0].sum():.0f} and {dead[1].sum():.0f} of "
        f"{len(dead[0])} layers have no weight at all."
    )
    if claim == DIFFERENTIAL:
        shares = {share: band_of(rows, LEFT, "scores of deviation 1", share) for share in LAMBDAS}
        listed = ", ".join(f"{one.mean:.2g} at lambda {share:g}" for share, one in shares.items())
        text += f" Relative residual after a layer: {listed}."
        right.append(all(shares[a].high < shares[b].low for a, b in pairwise(LAMBDAS[::2])))
    known = found[0].dropna()
    number = band(known) if len(known) else None
    return judge(text, number, holds=all(right), in_part=any(right), contradicted=True)


def say(values: Any) -> str:
    known = values.dropna()
    return f"{known.mean():.3f}" if len(known) else "unknown"


SETTING = (
    "One layer without skip and norm for orders (fitted over 32 decades, 6 tokens), one with both for 12 equal tokens at random "
    "weights, 8 draws. For orders, queries change their sign and become up to four times as long until a token's score with itself is "
    "at least .6: a layer whose weights are all zero has no order."
)
THRESHOLD = (
    "It holds if every order lies within .05 of the predicted one in all draws, and the most rows that a draw tells apart are the "
    "predicted ones; in part if some are."
)

CLAIMS = (
    Claim(
        GATE,
        "Prediction for a sigmoid gate behind attention: it passes what tokens differ by on, so rank is lost exponentially (order 1) "
        "and not doubly "
        "so (3); it cannot tell equal tokens apart, whose gates are equal.",
        "Derived here, for Qiu et al.: Gated attention for large language models, 2025",
        "https://arxiv.org/abs/2505.06708",
        ("code",),
        SETTING,
        THRESHOLD,
        lambda read: decide(read, GATE),
        thresholds=(EXACT,),
        place=55,
        shown=ORDER,
    ),
    Claim(
        SOFTPICK,
        "Prediction for softpick: it loses rank like softmax (order 3), and with a position that gives scores both signs its rows of "
        "weights sum to "
        "different numbers, so it can tell equal tokens apart where softmax cannot.",
        "Derived here, for Zuhri et al.: Softpick, 2025",
        "https://arxiv.org/abs/2504.20966",
        ("code",),
        SETTING,
        THRESHOLD,
        lambda read: decide(read, SOFTPICK),
        thresholds=(EXACT,),
        place=56,
        shown=ORDER,
    ),
    Claim(
        DIFFERENTIAL,
        "Prediction for differential attention: its rows sum to 1 - lambda, so it loses rank like softmax (order 3) and cannot tell "
        "equal tokens "
        "apart, and as lambda goes to 1 the common row cancels: what tokens differ by is a larger share of the output.",
        "Derived here, for Ye et al.: Differential transformer, 2024",
        "https://arxiv.org/abs/2410.05258",
        ("second-hand",),
        SETTING + " Lambda 0 to 1 without the norm of heads, for tokens that share half of their variance.",
        THRESHOLD + " And the relative residual has to grow with lambda (intervals at 0, .5 and .9 apart).",
        lambda read: decide(read, DIFFERENTIAL),
        thresholds=(EXACT,),
        place=57,
        shown=LEFT,
    ),
)
