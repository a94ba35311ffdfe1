"""Read the evidence of `cosine_recursion` for the rules that share it."""

from rankfall import Decision, Read, Threshold, band, evidence_rows, judge
from studies.claims.cosine_recursion.names import COSINE

GAP = "size of network minus recursion at the layer where it is largest"
# What the difference reaches in the source's own figures, read to .01: .075 (beta 3, layer 30) where all see all; .04 (beta 3, layer 20)
# under a causal mask, whose bound is the one that was fixed first.
CLOSE, CLOSE_CAUSAL = Threshold(0.08, "below", GAP), Threshold(0.05, "below", GAP)


def decide_shared(read: Read, close_to: Threshold) -> Decision:
    """Decide whether networks follow the recursion, up to a bound on the largest difference."""
    rows = read("evidence")
    worst, close, wants, sentences = band([0.0]), 0, [], []
    names = sorted(name for name in evidence_rows(rows, COSINE).line.unique() if name.startswith("beta"))
    for name in names:
        both = evidence_rows(rows, COSINE, name).merge(
            evidence_rows(rows, COSINE, f"recursion, {name}"), on=["x", "seed"]
        )
        both["gap"] = both.value_x - both.value_y
        layer = both.groupby("x").gap.mean().abs().idxmax()
        gap = band(both[both.x == layer].gap)
        worst = max(worst, gap, key=lambda difference: abs(difference.mean))
        sentences.append(f"{gap} at layer {layer:.0f} for {name}")
        if gap.low > -close_to and gap.high < close_to:
            close += 1
        elif gap.low < close_to and gap.high > -close_to:
            away = abs(abs(gap.mean) - close_to)  # from the bound
            # intervals shrink with the root of the number of seeds
            needed = gap.seeds * ((gap.high - gap.low) / 2 / max(away, 1e-9)) ** 2
            wants.append(
                f"{float(f'{needed:.1g}'):,.0f} seeds for {name}, whose difference lies {away:.1g} from the bound"
            )
    text = f"Network minus recursion, where they differ most: {'; '.join(sentences)}."
    needs = f"about {', '.join(wants)}"
    everywhere = close == len(names)
    return judge(text, worst, needs, undecided=bool(wants), holds=everywhere, in_part=close > 0, contradicted=True)
