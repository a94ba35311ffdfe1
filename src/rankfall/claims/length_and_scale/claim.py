"""Who says it, and what decides it."""

from __future__ import annotations

from rankfall.report.claim import Claim, Decision, Read, Threshold, band_of, compare, judge

LARGEST = "largest weight, by number of scores"
OFF = "distance from softmax over the size of its output, by number of tokens"
SUM = "mean row sum, by number of tokens"
SCALED = "softmax of scores times 0.43 log n"
GAPS = (1.0, 2.0, 3.0, 5.0)
SIZES = ("scores of size 0.1", "scores of size 1", "scores of size 3")
KEPT = Threshold(0.9, "above", LARGEST, "scaled, every gap, at the most scores")
FADED = Threshold(0.1, "below", LARGEST, "softmax, every gap, at the most scores")
CLOSE = Threshold(0.2, "below", OFF, "every size, with the shift")


def peak(read: Read) -> Decision:
    rows = read("evidence")
    most = float(rows.x.max())
    plain = {gap: band_of(rows, LARGEST, f"softmax, gap {gap:g}", most).mean for gap in GAPS}
    scaled = {gap: band_of(rows, LARGEST, f"{SCALED}, gap {gap:g}", most).mean for gap in GAPS}
    said = f"Largest of {most:,.0f} weights, softmax and with 0.43 log n: " + "; ".join(
        f"gap {gap:g}: {plain[gap]:.2g} and {scaled[gap]:.3g}" for gap in GAPS
    )
    said += f". It is kept where the gap is above 1 / 0.43 = {1 / 0.43:.2f}."
    number = band_of(rows, LARGEST, f"{SCALED}, gap {GAPS[-1]:g}", most)
    kept = [gap for gap in GAPS if scaled[gap] > KEPT]
    against = max(plain.values()) >= FADED or not kept
    return judge(said, number, contradicted=against, holds=len(kept) == len(GAPS), in_part=True)


def sigmoid(read: Read) -> Decision:
    rows = read("evidence")
    numbers = sorted(set(rows.x))
    found = {(size, x): band_of(rows, OFF, f"{size}, shift -log n", x) for size in SIZES for x in numbers}
    sums = {size: band_of(rows, SUM, f"{size}, shift -log n", numbers[-1]).mean for size in SIZES}
    bare = band_of(rows, SUM, f"{SIZES[0]}, no shift", numbers[-1]).mean
    said = f"Distance from softmax at {numbers[-1]:.0f} tokens: " + "; ".join(
        f"{size}: {found[size, numbers[-1]].mean:.2f} (rows sum to {sums[size]:.2f})" for size in SIZES
    )
    said += f". Without the shift rows sum to {bare:.0f}."
    answers = [{compare(found[size, x], CLOSE) for x in numbers} for size in SIZES]
    good = [each == {"below"} for each in answers]
    far = all("above" in each for each in answers)
    number = found[SIZES[1], numbers[-1]]
    return judge(said, number, "more seeds", holds=all(good), in_part=any(good), contradicted=far)


CLAIMS = (
    Claim(
        "log_n_scale_keeps_the_peak",
        "A softmax fades as there are more scores; times s log n it keeps its peak.",
        "Nakanishi: Scalable-softmax is superior for attention, 2025 (after Su 2021)",
        "https://arxiv.org/abs/2501.19399",
        ("figure", "abstract"),
        "n scores of -2 but one that is larger by a gap of 1, 2, 3 or 5, n from 10 to a million, s = 0.43; the source's example has "
        "the gap 5.",
        "It holds if at a million scores softmax gives the largest less than 0.1 and the scaled one more than 0.9 for all four "
        "gaps; in part if for some: by "
        "arithmetic n^(s gap) must win against n.",
        peak,
        shown=LARGEST,
        thresholds=(KEPT, FADED),
        place=630,
    ),
    Claim(
        "sigmoid_matches_softmax",
        "Attention by sigmoids, shifted by -log n, does what softmax attention does.",
        "Ramapuram and others: Theory, analysis, and best practices for sigmoid self-attention, 2024",
        "https://arxiv.org/abs/2409.04431",
        ("second-hand", "code"),
        "Outputs for normal scores of deviation 0.1, 1 and 3 and normal values, 16 to 1024 tokens, 5 draws. The source compares "
        "trained models, which can "
        "adapt; this is what they begin with.",
        "It counts for a size of scores if the outputs are within a fifth of the softmax's size at all lengths. It holds if for all "
        "three sizes, in part "
        "if for some, and is contradicted if at each size a length is beyond it.",
        sigmoid,
        shown=OFF,
        thresholds=(CLOSE,),
        place=640,
    ),
)
