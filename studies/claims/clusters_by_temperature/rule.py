from rankfall import Decision, Read, Threshold, band, band_of, compare, evidence_rows, judge, within
from studies.claims.clusters.names import LAST
from studies.claims.clusters_follow_values.rule import ONE
from studies.claims.rules import slopes

COUNT = "number of groups at one time, by score scale"
SLOW, FAST = within(0.5, 0.1, "power of the number of groups in the score scale")
MET = Threshold(ONE, "below", LAST, "in the end")
THRESHOLDS = (SLOW, FAST, MET)


def decide(read: Read) -> Decision:
    rows = read("evidence")
    counts = evidence_rows(rows, COUNT)
    power = band(slopes(counts, log=True))
    late = float(evidence_rows(rows, LAST).x.max())
    end = band_of(rows, LAST, "causal, V = 1", late)
    means = counts.groupby("x").value.mean()
    sentence = (
        f"The number of groups grows from {means.iloc[0]:.1f} at score scale {means.index[0]:g} to {means.iloc[-1]:.1f} at "
        f"{means.index[-1]:g}, as the power "
        f"{power} of it; at score scale 4 there are {end} at time {late:g}."
    )
    low, high, met = compare(power, SLOW), compare(power, FAST), compare(end, MET)
    clear = (low, high) == ("above", "below")
    return judge(
        sentence,
        power,
        "more time, since groups that face each other take long to meet, or more seeds and scales",
        contradicted=low == "below" or high == "above",
        undecided=not clear or met == "undecided",
        holds=met == "below",
        in_part=True,
    )
