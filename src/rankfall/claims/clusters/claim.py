"""The claim with its source, and the rule that decides it."""

from __future__ import annotations

from rankfall.claims.trends import slopes
from rankfall.report.claim import Claim, Decision, Read, Threshold, band, band_of, compare, evidence_rows, judge, within

GROUPS = "number of groups, by time"
COUNT = "number of groups at one time, by score scale"
LAST = "number of groups at score scale 4, by time"
VALUES = ("V = 1", "V = -1", "V of rank 1", "V = diag(1, 1, -1)")
ONE = Threshold(1.5, "below", GROUPS, "V = 1, in the end")
MANY = Threshold(16.0, "above", GROUPS, "V = -1, in the end")  # half of the tokens
SLOW, FAST = within(0.5, 0.1, "power of the number of groups in the score scale")
MET = Threshold(ONE, "below", LAST, "in the end")


def spectrum(read: Read) -> Decision:
    rows = read("evidence")
    last = float(rows.x.max())
    found = {line: band_of(rows, GROUPS, line, last) for line in VALUES}
    said = f"Groups of {band_of(rows, GROUPS, 'V = 1', 0.0).mean:.0f} tokens at time {last:g}: " + ", ".join(
        f"{line}: {one}" for line, one in found.items()
    )
    one, none = compare(found["V = 1"], ONE), compare(found["V = -1"], MANY)
    right = [one == "below", none == "above"]
    open_ = "undecided" in (one, none)
    wants = "more time, or more seeds"
    number = found["V = 1"]
    return judge(said + ".", number, wants, undecided=open_, holds=all(right), in_part=any(right), contradicted=True)


def temperature(read: Read) -> Decision:
    rows = read("evidence")
    counts = evidence_rows(rows, COUNT)
    power = band(slopes(counts, log=True))
    late = float(evidence_rows(rows, LAST).x.max())
    end = band_of(rows, LAST, "causal, V = 1", late)
    means = counts.groupby("x").value.mean()
    said = (
        f"The number of groups grows from {means.iloc[0]:.1f} at score scale {means.index[0]:g} to {means.iloc[-1]:.1f} at "
        f"{means.index[-1]:g}, as the power "
        f"{power} of it; at score scale 4 there are {end} at time {late:g}."
    )
    low, high, met = compare(power, SLOW), compare(power, FAST), compare(end, MET)
    clear = (low, high) == ("above", "below")
    return judge(
        said,
        power,
        "more time: groups that face each other take long to meet"
        if clear
        else "more seeds, or a wider range of scales",
        contradicted=low == "below" or high == "above",
        undecided=not clear or met == "undecided",
        holds=met == "below",
        in_part=True,
    )


CLAIMS = (
    Claim(
        "clusters_follow_values",
        "Tokens that move by attention cluster, and what becomes of them depends on the spectrum of the value matrix: one point for "
        "the identity, none for "
        "minus the identity.",
        "Geshkovski, Letrouit, Polyanskiy and Rigollet: The emergence of clusters in self-attention dynamics, 2023",
        "https://arxiv.org/abs/2305.05465",
        ("second-hand",),
        "32 random tokens on the unit sphere in three dimensions, queries and keys the tokens themselves, four value matrices, time "
        "200 in steps of 0.05.",
        "It holds if with V = 1 all tokens are one group in the end (fewer than 1.5, with the whole interval over seeds), and with "
        "V = -1 there are more "
        "groups than half the tokens; in part if one of both.",
        spectrum,
        shown=GROUPS,
        thresholds=(ONE, MANY),
        place=600,
    ),
    Claim(
        "clusters_by_temperature",
        "Under a causal mask and V = 1 tokens gather in groups that last long, in number like the square root of the score scale, "
        "and become one in the end.",
        "Karagodin, Polyanskiy and Rigollet: Clustering in causal attention masking, 2024",
        "https://arxiv.org/abs/2411.04990",
        ("second-hand",),
        "300 random tokens on the circle, score scales 8 to 256, counted at time 20; 50 tokens at score scale 4 up to time 4000. The "
        "source's picture has "
        "200 tokens at 64. How long groups last is not measured.",
        "It holds if the power of the number of groups in the score scale is within 0.1 of one half, with the whole interval over "
        "seeds, and the 50 tokens "
        "are one group in the end; in part if only the power is. Contradicted if the interval lies outside.",
        temperature,
        shown=COUNT,
        thresholds=(SLOW, FAST, MET),
        place=610,
        changed="Tokens are followed ten times as long, to time 4000, since at 400 some still had two groups that face each other; "
        "where the count of seeds overlaps its limit the claim is undecided.",
    ),
)
