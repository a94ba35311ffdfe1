"""The claim with its source, and the rule that decides it."""

from __future__ import annotations

from itertools import pairwise

from rankfall.claims.masks import MASKS
from rankfall.claims.score_scale_slows.names import NAME, SCALES, SPREAD
from rankfall.report.claim import Band, Claim, Decision, Read, Threshold, band, compare, evidence_rows, judge

SLOWER = Threshold(
    0.0, "above", "decades of spread that the larger of two scales keeps more", "every mask and step of the scale"
)


def decide(read: Read) -> Decision:
    rows = read("evidence")
    last = float(rows.x.max())

    def gain(mask: str, small: float, large: float) -> Band:
        """Return the decades that the larger scale keeps more, seed by seed."""
        one, other = (evidence_rows(rows, SPREAD, f"{mask}, scores times {scale:g}", last) for scale in (large, small))
        pairs = one.merge(other, on="seed")
        return band(pairs.value_x - pairs.value_y)

    steps = {mask: [gain(mask, a, b) for a, b in pairwise(SCALES)] for mask in MASKS}
    whole = {mask: gain(mask, SCALES[0], SCALES[-1]) for mask in MASKS}
    at = {
        mask: [band(evidence_rows(rows, SPREAD, f"{mask}, scores times {scale:g}", last).value) for scale in SCALES]
        for mask in MASKS
    }
    text = f"Spread of tokens after {last:.0f} layers at scores of deviation 1/8, 1 and 8: " + "; ".join(
        f"{mask} {', '.join(f'10^{one.mean:,.4g}' for one in at[mask])}" for mask in MASKS
    )
    slows = {mask: [compare(one, SLOWER) for one in found] for mask, found in steps.items()}
    first, second, third = (whole[mask] for mask in MASKS)
    ordered = first.low > second.high and second.low > third.high
    unclear = [mask for mask, found in slows.items() if "undecided" in found]
    answers = {answer for found in slows.values() for answer in found}
    faster = "below" in answers  # somewhere larger scores make it faster for sure: it cannot hold
    return judge(
        text + ".",
        first,
        f"more seeds: {', '.join(unclear)}",
        contradicted=faster and "above" not in answers,
        undecided=bool(unclear) and not faster,
        holds=ordered and not faster,
        in_part=True,
    )


CLAIMS = (
    Claim(
        NAME,
        "Larger scores slow the loss of rank, and more so where every token sees every other than with sparse masks.",
        "Wu, Ajorlou, Wang, Jegelka and Jadbabaie: On the role of attention masks and LayerNorm in transformers, 2024",
        "https://arxiv.org/abs/2405.18781",
        ("second-hand",),
        "Attention with a layer norm and nothing else, one head, width 64, 24 random tokens, 24 layers, scores of deviation 1/8, 1 and "
        "8 at the "
        "first layer, without a rounding floor, 12 seeds.",
        "It holds if for every mask both steps of the scale leave more spread after the last layer (intervals of the difference in "
        "decades, "
        "seed by seed, above 0), and the gain is larger for masks that see more (intervals apart); in part if only some do. The "
        "number is the gain, in "
        "decades, where every token is seen.",
        decide,
        thresholds=(SLOWER,),
        place=45,
        changed="8 layers became 24, since 8 lose next to nothing where the mask is sparse, and 8 seeds 12. What is faster for sure "
        "decides before what is unclear: one mask under which larger scores make it faster is enough not to hold.",
    ),
)
