from itertools import pairwise

from rankfall import Band, Decision, Read, Threshold, band, compare, evidence_rows, judge
from studies.claims.parts import MASKS
from studies.claims.score_scale_slows.names import SCALES, SPREAD

SLOWER = Threshold(
    0.0, "above", "decades of spread that the larger of two scales keeps more", "every mask and step of the scale"
)


def decide(read: Read) -> Decision:
    rows = read("evidence")
    last = float(rows.x.max())

    def gain(mask: str, small: float, large: float) -> Band:
        """Return the decades that the larger scale keeps more, seed by seed."""
        larger, other = (
            evidence_rows(rows, SPREAD, f"{mask}, scores times {scale:g}", last) for scale in (large, small)
        )
        pairs = larger.merge(other, on="seed")
        return band(pairs.value_x - pairs.value_y)

    steps = {mask: [gain(mask, a, b) for a, b in pairwise(SCALES)] for mask in MASKS}
    total = {mask: gain(mask, SCALES[0], SCALES[-1]) for mask in MASKS}
    at = {
        mask: [band(evidence_rows(rows, SPREAD, f"{mask}, scores times {scale:g}", last).value) for scale in SCALES]
        for mask in MASKS
    }
    text = f"Spread of tokens after {last:.0f} layers at scores of deviation 1/8, 1 and 8: " + "; ".join(
        f"{mask} {', '.join(f'10^{spread.mean:,.4g}' for spread in at[mask])}" for mask in MASKS
    )
    slows = {mask: [compare(step, SLOWER) for step in gains] for mask, gains in steps.items()}
    first, second, third = (total[mask] for mask in MASKS)
    ordered = first.low > second.high and second.low > third.high
    unclear = [mask for mask, sides in slows.items() if "undecided" in sides]
    answers = {answer for sides in slows.values() for answer in sides}
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
