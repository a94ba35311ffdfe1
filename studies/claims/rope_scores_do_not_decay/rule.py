from rankfall import Decision, Read, Threshold, band, band_of, evidence_rows, judge, within
from studies.claims.rope_and_distance.names import ALIKE, MEAN, SIZE

# In standard errors. One of 60 normal numbers exceeds it in one of 2000 experiments.
LEAST, MOST = within(0.0, 4.5, MEAN)
# The standard deviation's own error is 1 / sqrt(2 * 20000) = 0.005.
WIDER = Threshold(0.03, "below", "largest standard deviation over the smallest, less one")


def decide(read: Read) -> Decision:
    rows = read("evidence")
    means = evidence_rows(rows, MEAN).value
    centred = means.min() >= LEAST and means.max() <= MOST
    sizes = evidence_rows(rows, SIZE).value
    most = float(rows.x.max())
    near, far = band_of(rows, ALIKE, "mean of queries", 0.0), band_of(rows, ALIKE, "mean of queries", most)
    sentence = (
        f"Scores of independent queries and keys have a mean within {means.abs().max():.1f} standard errors of zero at all distances up to "
        f"{most:.0f}, and a "
        f"standard deviation from {sizes.min():.3f} to {sizes.max():.3f}; scores of a query that equals its key fall from "
        f"{near.mean:.2f} to {far.mean:.2f}."
    )
    steady = sizes.max() / sizes.min() - 1 <= WIDER
    number = band(evidence_rows(rows, SIZE, x=most).value)
    return judge(sentence, number, holds=centred and steady, in_part=centred, contradicted=True)
