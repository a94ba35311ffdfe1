import math
from typing import Any

from rankfall import Band, Decision, Extension, Read, Threshold, band, is_on, judge
from studies.claims.norm_growth.names import CURE, STARTS
from studies.claims.norm_growth.reading import MORE, NEAR, added_by_seed, others, power

# Relative to the earlier rate. For a power of the layer it is 1/16.
EXPONENTIAL = Threshold(
    0.5, "above", "rate of growth over the last octave of layers as a share of that four octaves before", "both starts"
)
FASTER = Threshold(
    1 + NEAR, "above", "power of the layer in the mean square of what layers have added", "both starts, to hold in part"
)


def rate_kept(rows: Any, line: str) -> Band:
    """Return the growth of the logarithm per layer over the last octave, divided by that four octaves earlier: 1 for an exponential."""

    def rate_of_seed(added: dict[int, float]) -> float:
        last = max(added)
        early, middle, late = last // 32, last // 16, last // 2
        then = math.log(added[middle] / added[early]) / (middle - early)
        return math.log(added[last] / added[late]) / (last - late) / then

    return band(rate_of_seed(added) for added in added_by_seed(rows, line))


def decide(read: Read) -> Decision:
    rows = read("evidence")
    kept = {line: rate_kept(rows, line) for line in (*STARTS, *others(rows))}
    powers = {line: power(rows, line) for line in kept}
    texts = {line: f"{kept[line].mean:.2g} (the square grows like l^{powers[line].mean:.2f})" for line in kept}
    sentence = (
        "At birth the rate of growth (of the logarithm of the mean square that layers have added, per layer) over layers 128 to 256 is "
        f"this share of that over layers 8 to 16: {'; '.join(f'{line} {texts[line]}' for line in STARTS)}; with the source's own cure, "
        f"norms by 1/sqrt(l), {texts[CURE]}. An exponential has 1, a power 1/16. The source's theorem has any growth from linear to "
        "exponential."
    )
    extends = [
        Extension(f"{line}: {texts[line]}", is_on(kept[line], EXPONENTIAL)) for line in others(rows) if line != CURE
    ]
    grows = {is_on(kept[line], EXPONENTIAL) for line in STARTS}
    faster = {is_on(powers[line], FASTER) for line in STARTS}
    return judge(
        sentence,
        max((kept[line] for line in STARTS), key=lambda share: share.mean),
        MORE,
        extends,
        undecided=None in grows,
        holds=grows == {True},
        in_part=True in grows or faster == {True},
        contradicted=False in faster,
    )
