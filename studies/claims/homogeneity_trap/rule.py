from rankfall import Decision, Read, Threshold, band, band_of, change_of, evidence_rows, is_on, judge
from studies.claims.homogeneity_trap.names import KEPT, NORMED, PLAIN, SECOND, SINKHORN, SOFTMAX
from studies.claims.rules import by_parts, difference, true_of_all

FALLS = Threshold(0.0, "below", "second singular value at the highest temperature less that at the lowest")
LESS = Threshold(0.0, "below", "second singular value of Sinkhorn's map less that of softmax, mean over temperatures")
GONE = Threshold(0.1, "below", KEPT, "layer norm, at 10^-3")
STAYS = Threshold(0.9, "above", KEPT, "layer norm, at 10^3")
HELPS = Threshold(0.1, "below", "correlation with layer norms less that without norms, at 10^-3")
HIGH = 3.0  # log10 of a signal that is a thousand times the noise, chosen before the first run


def decide(read: Read) -> Decision:
    rows = read("evidence")
    warm = evidence_rows(rows, SECOND)
    falls = change_of(rows, SECOND, SINKHORN, float(warm.x.min()), float(warm.x.max()))
    means = {
        line: evidence_rows(rows, SECOND, line).groupby("seed").value.mean().to_numpy() for line in (SINKHORN, SOFTMAX)
    }
    less = band(means[SINKHORN] - means[SOFTMAX])
    low = float(evidence_rows(rows, KEPT).x.min())
    lost, kept = band_of(rows, KEPT, NORMED, low), band_of(rows, KEPT, NORMED, HIGH)
    helps = difference(rows, KEPT, NORMED, PLAIN, low)
    ratios = sorted(evidence_rows(rows, KEPT).x.unique())
    shares = ", ".join(f"{band_of(rows, KEPT, NORMED, x).mean:.2f} at 10^{x:g}" for x in ratios)
    sentence = (
        f"From the lowest temperature to the highest the second singular value of Sinkhorn's map changes by {falls}; its difference from "
        f"softmax of the same scores is {less}. By the ratio of signal to noise, layer norms keep a correlation of {shares}; at the lowest "
        f"ratio the difference from no norms is {helps}."
    )
    norms = true_of_all((is_on(lost, GONE), is_on(kept, STAYS), is_on(helps, HELPS)))
    return judge(sentence, less, "more seeds", **by_parts((is_on(falls, FALLS), is_on(less, LESS), norms)))
