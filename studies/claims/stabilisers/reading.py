"""Read the evidence of `stabilisers` for the rules that share it."""

from itertools import pairwise
from typing import Any

from rankfall import Decision, Read, Threshold, band, band_of, evidence_rows, judge
from studies.claims.stabilisers.names import DEAD, DIFFERENTIAL, DISTINCT, GATE, LAMBDAS, LEFT, ORDER, SOFTPICK

EXACT = Threshold(0.05, "below", "distance of an order of contraction from the predicted one", "every seed")
PREDICTED = {  # orders without and with a causal mask; rows of twelve equal tokens, without position and with ALiBi
    GATE: ((1.0, 1.0), (1, 1)),
    SOFTPICK: ((3.0, 1.0), (1, 6)),
    DIFFERENTIAL: ((3.0, 1.0), (1, 1)),
}


def decide_shared(read: Read, claim: str) -> Decision:
    """Decide whether orders and distinct rows are the predicted ones."""
    rows = read("evidence")
    name = claim.removesuffix("_and_rank")
    orders, distinct = PREDICTED[claim]
    measured = [evidence_rows(rows, ORDER, name, place).value for place in (0, 1)]
    plain = [evidence_rows(rows, ORDER, "softmax", place).value for place in (0, 1)]
    counts = [sorted(evidence_rows(rows, DISTINCT, name, place).value.astype(int)) for place in (0, 1)]
    most_distinct = [by_draw[-1] for by_draw in counts]
    dead = [evidence_rows(rows, DEAD, name, place).value for place in (0, 1)]
    right = [
        len(values.dropna()) > 0 and bool(((values.dropna() - p).abs() < EXACT).all())
        for values, p in zip(measured, orders, strict=True)
    ]
    right += [a == b for a, b in zip(most_distinct, distinct, strict=True)]
    text = (
        f"Order {say(measured[0])} where every token is seen (softmax {say(plain[0])}), {say(measured[1])} where earlier ones are "
        f"({say(plain[1])}); predicted {orders[0]:g} and {orders[1]:g}. It tells at most {most_distinct[0]} of twelve equal tokens apart "
        f"without positions ({', '.join(map(str, counts[0]))} by draw), {most_distinct[1]} with ALiBi "
        f"({', '.join(map(str, counts[1]))}); predicted {distinct[0]} and {distinct[1]}. As they are drawn, before queries are changed, "
        f"{dead[0].sum():.0f} and {dead[1].sum():.0f} of {len(dead[0])} layers have no weight at all."
    )
    if claim == DIFFERENTIAL:
        shares = {share: band_of(rows, LEFT, "scores of deviation 1", share) for share in LAMBDAS}
        listed = ", ".join(f"{residual.mean:.2g} at lambda {share:g}" for share, residual in shares.items())
        text += f" Relative residual after a layer: {listed}."
        right.append(all(shares[a].high < shares[b].low for a, b in pairwise(LAMBDAS[::2])))
    known = measured[0].dropna()
    number = band(known) if len(known) else None
    return judge(text, number, holds=all(right), in_part=any(right), contradicted=True)


def say(values: Any) -> str:
    known = values.dropna()
    return f"{known.mean():.3f}" if len(known) else "unknown"
