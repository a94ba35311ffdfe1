from rankfall import Decision, Read, Threshold, band, band_of, compare, evidence_rows, judge
from studies.claims.depth_scaling.names import COSINE, PLAIN, SCALED

ONE = Threshold(0.99, "split at", COSINE, f"at the greatest depth: below it {SCALED}, above it {PLAIN}")
STILL = Threshold(0.02, "below", "size of the change of the cosine over the last doubling of layers", SCALED)


def decide(read: Read) -> Decision:
    rows = read("evidence")
    depths = sorted(evidence_rows(rows, COSINE, SCALED).x.unique())
    last, before = float(depths[-1]), float(depths[-2])
    scaled, plain = band_of(rows, COSINE, SCALED, last), band_of(rows, COSINE, PLAIN, last)
    pairs = evidence_rows(rows, COSINE, SCALED, last).merge(evidence_rows(rows, COSINE, SCALED, before), on="seed")
    change = band(pairs.value_x - pairs.value_y)
    text = (
        f"After {last:.0f} layers the cosine is {scaled} with branches by 1/sqrt(L), {change.mean:+.3f} since {before:.0f}, and "
        f"{plain} with "
        "branches as they are and norms after."
    )
    stays = scaled.high < ONE and max(abs(change.low), abs(change.high)) < STILL
    plain_side = compare(plain, ONE)
    return judge(
        text,
        scaled,
        "more layers or seeds",
        contradicted=scaled.low > ONE,
        holds=stays and plain_side == "above",
        in_part=stays and plain_side == "below",
    )
