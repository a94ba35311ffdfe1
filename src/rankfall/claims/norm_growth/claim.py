"""The claim with its source, and the rule that decides it."""

from __future__ import annotations

import math
from typing import Any

from rankfall.claims.answers import by_parts, lies_between
from rankfall.claims.norm_growth.names import ADDED, AROUND, CURE, SIZE, SQUARE, STARTS, VARIANCE
from rankfall.claims.trends import slope
from rankfall.report.claim import (
    Band,
    Claim,
    Decision,
    Extension,
    Read,
    Threshold,
    band,
    evidence_rows,
    is_on,
    judge,
    within,
)

# Relative to the earlier rate. For a power of the layer it is 1/16.
EXPONENTIAL = Threshold(
    0.5, "above", "rate of growth over the last octave of layers as a share of that four octaves before", "both starts"
)
NEAR = 0.15  # of a power
MORE = "more seeds or layers"
SQUARE_FROM, SQUARE_TO = within(
    1, NEAR, "power of the layer in the mean square of what layers have added", "both starts"
)
FASTER = Threshold(
    1 + NEAR, "above", "power of the layer in the mean square of what layers have added", "both starts, to hold in part"
)
SIZE_FROM, SIZE_TO = within(1, NEAR, "power of the layer in the size of what layers have added", "both starts")
AT_MOST = Threshold(
    1 + NEAR, "below", "power of the layer in the size of what layers have added", "both starts, to hold in part"
)
SETTING = (
    "At birth: causal networks of attention and GELU MLP, width 64, 4 heads, 16 random tokens, 256 layers, 8 seeds, Xavier's start and "
    "N(0, .02^2). Ours: branches by 1/sqrt(2 L), and the same weights in all layers. "
)


def seeds_of(rows: Any, line: str) -> list[dict[int, float]]:
    """Return, by seed, the mean square of what layers have added to the input, by layer."""
    return [
        dict(zip(one.x.astype(int), one.value, strict=True))
        for _, one in evidence_rows(rows, ADDED, line).groupby("seed")
    ]


def power(rows: Any, line: str) -> Band:
    """Return p such that the mean square of what is added grows like l^p over the last three octaves."""

    def one(by: dict[int, float]) -> float:
        last = max(by)
        late = [layer for layer in by if layer >= last / 8]
        return slope([math.log(layer) for layer in late], [math.log(by[layer]) for layer in late])

    return band(one(by) for by in seeds_of(rows, line))


def rate_kept(rows: Any, line: str) -> Band:
    """Return the growth of the logarithm per layer over the last octave, divided by that four octaves earlier: 1 for an exponential."""

    def one(by: dict[int, float]) -> float:
        last = max(by)
        early, middle, late = last // 32, last // 16, last // 2
        then = math.log(by[middle] / by[early]) / (middle - early)
        return math.log(by[last] / by[late]) / (last - late) / then

    return band(one(by) for by in seeds_of(rows, line))


def others(rows: Any) -> list[str]:
    """Return the lines of networks that the sources do not have."""
    return [line for line in sorted(evidence_rows(rows, ADDED).line.unique()) if line not in STARTS]


def decide_exponential(read: Read) -> Decision:
    rows = read("evidence")
    kept = {line: rate_kept(rows, line) for line in (*STARTS, *others(rows))}
    powers = {line: power(rows, line) for line in kept}
    texts = {line: f"{kept[line].mean:.2g} (the square grows like l^{powers[line].mean:.2f})" for line in kept}
    said = (
        "At birth the logarithm of the mean square of what layers have added grows over layers 128 to 256, a layer, by this share of "
        f"what it does over layers 8 to 16: {'; '.join(f'{line} {texts[line]}' for line in STARTS)}; with the source's own cure, norms by "
        f"1/sqrt(l), {texts[CURE]}. An exponential has 1, a power 1/16. The source's theorem has any growth from linear to exponential."
    )
    extends = [
        Extension(f"{line}: {texts[line]}", is_on(kept[line], EXPONENTIAL)) for line in others(rows) if line != CURE
    ]
    grows = {is_on(kept[line], EXPONENTIAL) for line in STARTS}
    faster = {is_on(powers[line], FASTER) for line in STARTS}
    return judge(
        said,
        max((kept[line] for line in STARTS), key=lambda one: one.mean),
        MORE,
        extends,
        undecided=None in grows,
        holds=grows == {True},
        in_part=True in grows or faster == {True},
        contradicted=False in faster,
    )


def decide_linear(read: Read) -> Decision:
    rows = read("evidence")
    found = {}
    for line in (*STARTS, *others(rows)):
        square = power(rows, line)
        found[line] = Band(square.mean / 2, square.low / 2, square.high / 2, square.seeds)
    answers = {line: lies_between(one, SIZE_FROM, SIZE_TO) for line, one in found.items()}
    said = (
        "At birth the size of what layers have added (root of the mean square) grows like "
        + " and ".join(f"l^{found[line].mean:.2f} for {line}" for line in STARTS)
        + "; independent branches have l^0.50. O(L) allows any growth up to linear."
    )
    bounded = {is_on(found[line], AT_MOST) for line in STARTS}
    extends = [Extension(f"{line}: l^{found[line].mean:.2f}", answers[line]) for line in others(rows)]
    return judge(
        said,
        found[STARTS[0]],
        MORE,
        extends,
        holds={answers[line] for line in STARTS} == {True},
        in_part=bounded == {True} and False in {answers[line] for line in STARTS},
        contradicted=False in bounded,
    )


def decide_peri(read: Read) -> Decision:
    rows = read("evidence")
    found = {line: power(rows, line) for line in others(rows)}
    said = (
        "At birth, with norms around the branch, the mean square of what layers have added grows like "
        + ", ".join(f"l^{one.mean:.2f} for {line}" for line, one in found.items())
        + "."
    )
    parts = [lies_between(one, SQUARE_FROM, SQUARE_TO) for one in found.values()]
    return judge(said, next(iter(found.values())), MORE, **by_parts(parts))


CLAIMS = (
    Claim(
        VARIANCE,
        "At birth, in networks with norms before, the variance of states grows exponentially with depth.",
        "Sun et al.: The curse of depth in large language models, 2025",
        "https://arxiv.org/abs/2502.05795",
        ("abstract", "code"),
        SETTING
        + "The source speaks of language models before and after training; its theorem has a growth between linear and "
        "exponential, its abstract an exponential one. Its cure, norms by 1/sqrt(l), is shown beside.",
        "Growth is exponential if its rate (of the logarithm of what has been added to the mean square, a layer) over layers 128 to "
        "256 is at least half of that over layers 8 to 16: an exponential keeps it, a power of the layer has a sixteenth. It holds if "
        "this is so for both starts (whole intervals); in part if for one, or if for both it grows faster than linearly (power above "
        "1.15), which the theorem allows; contradicted if one start does not even that. Other starts, "
        "the source's own cure and shared weights decide nothing.",
        decide_exponential,
        thresholds=(EXPONENTIAL, FASTER),
        place=30,
        shown=SQUARE,
        changed='The statement says "at birth": nothing trained was measured. Every start had decided, the source\'s own cure and shared '
        "weights too; now the two ordinary ones do, and growth between linear and exponential counts in part. 8 seeds instead of 5.",
    ),
    Claim(
        SIZE,
        "At birth, in networks with norms before, the size of states grows linearly with depth.",
        "Kimi Team: Attention residuals, 2026",
        "https://arxiv.org/abs/2603.15031",
        ("abstract",),
        SETTING
        + "The source speaks of trained language models, and writes O(L), of which a smaller power is no violation.",
        "It holds if the size of what layers have added (root of the mean square) grows like l^p, p within .15 of 1, over the last three "
        "octaves of 256 layers, for both starts (whole intervals); in part if growth stays below 1.15, within O(L), but is slower than "
        "linear for one start; contradicted if one start grows faster. Independent branches would have p = .5. Other starts and shared "
        "weights decide nothing.",
        decide_linear,
        thresholds=(SIZE_FROM, SIZE_TO, AT_MOST),
        place=31,
        shown=SQUARE,
        changed='The statement says "at birth": nothing trained was measured. Networks that have one layer\'s weights in all had decided '
        "too, and made it hold in part; that setting is ours. Growth within O(L) that is slower than linear had contradicted, which an "
        "upper bound does not allow: it counts in part. 8 seeds instead of 5.",
    ),
    Claim(
        AROUND,
        "At birth, with norms before and after each branch (peri), the variance of states grows linearly with depth.",
        "Kim et al.: Peri-LN: revisiting layer normalization in the transformer architecture, 2025",
        "https://arxiv.org/abs/2502.02732",
        ("second-hand",),
        "As for networks with norms before, with a norm on what each attention and MLP adds; Xavier's start and N(0, .02^2).",
        "It holds if the mean square of what layers have added grows like l^p with p within .15 of 1 over the last three octaves of "
        "256 layers, for both starts (whole intervals), in part if for one.",
        decide_peri,
        thresholds=(SQUARE_FROM, SQUARE_TO),
        place=32,
        shown=SQUARE,
        changed="Intervals decide for every start, as the rule says: one that was unclear had counted as outside. 8 seeds instead of 5.",
    ),
)
