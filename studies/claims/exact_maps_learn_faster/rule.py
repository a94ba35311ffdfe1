from rankfall import DataFrame, Decision, Extension, Read, Threshold, band, evidence_rows, is_on, judge
from studies.claims.exact_maps_learn_faster.names import LEFT, ORTHOGONAL, PERMUTATIONS, SINKHORN, STEPS
from studies.claims.rules import by_need

FASTER = Threshold(
    0.0, "above", "decades of steps with Sinkhorn less those with orthogonal blocks, each at its best rate"
)
REACHES = Threshold(-6.0, "below", LEFT, f"{ORTHOGONAL}, at the rate of fewest steps")
TENFOLD = Threshold(1.0, "above", "decades of steps with Sinkhorn less those with orthogonal blocks", "for ten times")


def decide(read: Read) -> Decision:
    rows = read("evidence")
    rates = {line: best(rows, line) for line in (SINKHORN, PERMUTATIONS, ORTHOGONAL)}
    steps = {line: evidence_rows(rows, STEPS, line, rate).value.to_numpy() for line, rate in rates.items()}
    error = band(evidence_rows(rows, LEFT, ORTHOGONAL, rates[ORTHOGONAL]).value)
    gain = band(steps[SINKHORN] - steps[ORTHOGONAL])
    sentence = (
        ", ".join(f"{10 ** band(steps[line]).mean:.0f} steps with {line}, rate {rates[line]:g}" for line in rates)
        + f": orthogonal blocks are {10**gain.mean:.3g} times as fast as Sinkhorn ({10**gain.low:.3g} to {10**gain.high:.3g}), and leave "
        f"10^{error.mean:.1f}."
    )
    other = band(steps[PERMUTATIONS] - steps[ORTHOGONAL])
    beside = Extension(
        f"sums of permutations in place of Sinkhorn: {10**other.mean:.3g} times as fast", is_on(other, FASTER)
    )
    return judge(
        sentence,
        gain,
        "more targets",
        [beside, Extension(f"ten times fewer steps: {10**gain.mean:.3g} times", is_on(gain, TENFOLD))],
        **by_need(is_on(gain, FASTER), is_on(error, REACHES)),
    )


def best(rows: DataFrame, line: str) -> float:
    """Return the learning rate with the fewest steps, mean of logarithms."""
    return float(evidence_rows(rows, STEPS, line).groupby("x").value.mean().idxmin())
