from rankfall import Decision, Extension, Read, Threshold, band_of, evidence_rows, is_on, judge
from studies.claims.gain_control.names import COSINE, STRONG
from studies.claims.rules import true_of_all

KEPT = Threshold(0.9, "below", COSINE, "mean off, after the last layer")
KEPT_STRONG = Threshold(KEPT, "below", STRONG, "mean off, after the last layer, to extend to beta 3")
LOST = Threshold(0.95, "above", COSINE, "with the mean, after the last layer")
LOST_STRONG = Threshold(LOST, "above", STRONG, "with the mean, after the last layer, to extend to beta 3")


def decide(read: Read) -> Decision:
    rows = read("evidence")
    last = float(evidence_rows(rows, COSINE).x.max())
    names = ("norms after", "norms before")
    plain = {name: band_of(rows, COSINE, name, last) for name in names}
    cured = {name: band_of(rows, COSINE, f"mean off, {name}", last) for name in names}
    strong = {name: band_of(rows, STRONG, f"mean off, {name}", last) for name in names}
    empty = band_of(rows, COSINE, "no attention, norms after", last)
    text = (
        f"Cosine after {last:.0f} layers at beta .1: "
        + ", ".join(f"{plain[name].mean:.3g} with {name}, {cured[name].mean:.3g} without the mean" for name in names)
        + f"; {empty.mean:.3g} with no attention at all."
    )
    works = [is_on(cosine, KEPT) for cosine in cured.values()]
    needed = [is_on(cosine, LOST) for cosine in plain.values()]
    strong_plain = {name: band_of(rows, STRONG, name, last) for name in names}
    kept_at_three = ", ".join(f"{strong_plain[name].mean:.3g} with {name}" for name in names)
    at_three = ", ".join(f"{strong[name].mean:.3g} with {name}" for name in names)
    return judge(
        text,
        cured["norms after"],
        "more seeds",
        holds=set(works + needed) == {True},
        in_part=True in works and False in works + needed,
        contradicted=set(works) == {False},
        extends=[
            Extension(
                f"beta 3, without the mean ({at_three})",
                true_of_all(is_on(cosine, KEPT_STRONG) for cosine in strong.values()),
            ),
            Extension(
                f"beta 3, with the mean ({kept_at_three})",
                true_of_all(is_on(cosine, LOST_STRONG) for cosine in strong_plain.values()),
            ),
        ],
    )
