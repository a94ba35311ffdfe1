"""Who says it, and what decides it."""

from __future__ import annotations

import math
from typing import Any

from rankfall.claims.norm_growth.names import ADDED, AROUND, SHARED, SIZE, SQUARE, VARIANCE
from rankfall.claims.trends import slope
from rankfall.report.claim import Band, Claim, Decision, Read, Threshold, band, judge, of, within

# Of a rate's own earlier value; a power of the layer has 1/16.
EXPONENTIAL = Threshold(
    0.5, "above", "rate of growth over the last octave of layers as a share of that four octaves before", "every start"
)
NEAR = 0.15  # of a power
MORE = "more seeds or layers"
SIZE_FROM, SIZE_TO = within(1, NEAR, "power of the layer in the size of what layers have added", "every start")
SQUARE_FROM, SQUARE_TO = within(
    1, NEAR, "power of the layer in the mean square of what layers have added", "both starts"
)
SETTING = (
    "Causal networks of attention and GELU MLP, width 64, 4 heads, 16 random tokens, 256 layers, 8 seeds, before training: Xavier's start, "
    "N(0, .02^2), branches by 1/sqrt(2 L), norms by 1/sqrt(l), and the same weights in all layers."
)


def seeds_of(rows: Any, line: str) -> list[dict[int, float]]:
    """By seed: the mean square of what layers have added to the input, by layer."""
    return [dict(zip(one.x.astype(int), one.value, strict=True)) for _, one in of(rows, ADDED, line).groupby("seed")]


def power(rows: Any, line: str) -> Band:
    """p where what is added has a mean square like l^p over the last three octaves."""

    def one(by: dict[int, float]) -> float:
        last = max(by)
        late = [layer for layer in by if layer >= last / 8]
        return slope([math.log(layer) for layer in late], [math.log(by[layer]) for layer in late])

    return band(one(by) for by in seeds_of(rows, line))


def rate_kept(rows: Any, line: str) -> Band:
    """Growth of the logarithm a layer over the last octave, over that of four octaves before: 1 for an exponential."""

    def one(by: dict[int, float]) -> float:
        last = max(by)
        early, middle, late = last // 32, last // 16, last // 2
        then = math.log(by[middle] / by[early]) / (middle - early)
        return math.log(by[last] / by[late]) / (last - late) / then

    return band(one(by) for by in seeds_of(rows, line))


def names(rows: Any) -> list[str]:
    return sorted(of(rows, ADDED).line.unique())


def decide_exponential(read: Read) -> Decision:
    rows = read("evidence")
    kept = {line: rate_kept(rows, line) for line in names(rows)}
    most = max(kept.values(), key=lambda one: one.mean)
    text = (
        "Growth of the logarithm of the mean square of what layers have added, a layer, over layers 128 to 256 as a share of that "
        "over layers 8 to 16: "
        + ", ".join(f"{found.mean:.2g} for {line}" for line, found in kept.items())
        + "; an exponential has 1, a power 1/16. A layer adds to a state a function of the normed state: with bounded weights no "
        "exponential is possible."
    )
    above = [one.low > EXPONENTIAL for one in kept.values()]
    unclear = any(one.low <= EXPONENTIAL <= one.high for one in kept.values())
    return judge(text, most, MORE, undecided=unclear, holds=all(above), in_part=any(above), contradicted=True)


def decide_linear(read: Read) -> Decision:
    rows = read("evidence")
    found = {line: power(rows, line) for line in names(rows)}
    halves = {line: (one.low / 2, one.high / 2) for line, one in found.items()}
    text = (
        "The size of what layers have added (root of the mean square) grows like "
        + ", ".join(f"l^{one.mean / 2:.2f} for {line}" for line, one in found.items())
        + "."
    )
    shared = found[SHARED]
    linear = [line for line, (low, high) in halves.items() if low > SIZE_FROM and high < SIZE_TO]
    slower = [line for line, (_, high) in halves.items() if high < SIZE_FROM]
    number = Band(shared.mean / 2, shared.low / 2, shared.high / 2, shared.seeds)
    unclear = len(linear) + len(slower) < len(found)
    return judge(text, number, MORE, undecided=unclear, holds=not slower, in_part=bool(linear), contradicted=True)


def decide_peri(read: Read) -> Decision:
    rows = read("evidence")
    found = {line: power(rows, line) for line in names(rows)}
    text = "With norms around the branch the mean square of what layers have added grows like " + ", ".join(
        f"l^{one.mean:.2f} for {line}" for line, one in found.items()
    )
    first = next(iter(found.values()))
    inside = [one.low > SQUARE_FROM and one.high < SQUARE_TO for one in found.values()]
    outside = [one.low > SQUARE_TO or one.high < SQUARE_FROM for one in found.values()]
    unclear = not all(a or b for a, b in zip(inside, outside, strict=True))
    text += "."
    return judge(text, first, MORE, undecided=unclear, holds=all(inside), in_part=any(inside), contradicted=True)


CLAIMS = (
    Claim(
        VARIANCE,
        "In networks with norms before, the variance of states grows exponentially with depth.",
        "Sun et al.: The curse of depth in large language models, 2025",
        "https://arxiv.org/abs/2502.05795",
        ("abstract", "code"),
        SETTING + " The source speaks of language models before and after training.",
        "Growth is exponential if its rate (of the logarithm of what has been added to the mean square, a layer) over layers 128 to "
        "256 is at "
        "least half of that over layers 8 to 16: an exponential keeps it, a power of the layer has a sixteenth. It holds if this is so for "
        "every start, in part for some.",
        decide_exponential,
        thresholds=(EXPONENTIAL,),
        place=30,
        shown=SQUARE,
        changed="8 seeds instead of 5.",
    ),
    Claim(
        SIZE,
        "In networks with norms before, the size of states grows linearly with depth.",
        "Kimi Team: Attention residuals, 2026",
        "https://arxiv.org/abs/2603.15031",
        ("abstract",),
        SETTING + " The source speaks of trained language models.",
        "It holds for a start if the size of what layers have added (root of the mean square) grows like l^p, p within .15 of 1, over "
        "the last three octaves of 256 "
        "layers; independent branches would have p = .5. The number is p where all layers have the same weights.",
        decide_linear,
        thresholds=(SIZE_FROM, SIZE_TO),
        place=31,
        shown=SQUARE,
        changed="8 seeds instead of 5.",
    ),
    Claim(
        AROUND,
        "With norms before and after each branch (peri), the variance of states grows linearly with depth.",
        "Kim et al.: Peri-LN: revisiting layer normalization in the transformer architecture, 2025",
        "https://arxiv.org/abs/2502.02732",
        ("second-hand",),
        "As for networks with norms before, with a norm on what each attention and MLP adds; Xavier's start and N(0, .02^2).",
        "It holds if the mean square of what layers have added grows like l^p with p within .15 of 1 over the last three octaves of "
        "256 layers, for both starts.",
        decide_peri,
        thresholds=(SQUARE_FROM, SQUARE_TO),
        place=32,
        shown=SQUARE,
        changed="Intervals decide for every start, as the rule says: one that was unclear had counted as outside. 8 seeds instead of 5.",
    ),
)
