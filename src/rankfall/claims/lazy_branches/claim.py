"""Who says it, and what decides it."""

from __future__ import annotations

import numpy as np

from rankfall.report.claim import (
    CONTRADICTED,
    HOLDS,
    IN_PART,
    UNDECIDED,
    Claim,
    Decision,
    Read,
    Threshold,
    band,
    band_of,
    compare,
    of,
)

CURVED = "share of a branch's change that its derivative misses, by layers"
MOVED = "change of a branch's output over its size, by layers"
WHOLE, ROOT = "1 / L", "1 / sqrt(L)"
# The argument gives 0 and -1/2.
STEADY = Threshold(-0.1, "above", "power of depth in what derivatives miss", f"branches times {WHOLE}")
FALLS = Threshold(-0.3, "below", "power of depth in what derivatives miss", f"branches times {ROOT}")


def decide(read: Read) -> Decision:
    rows = read("evidence")
    powers = {
        line: band(
            float(np.polyfit(np.log(one.x), np.log(one.value.astype(float)), 1)[0])
            for _, one in of(rows, CURVED, line).groupby("seed")
        )
        for line in (WHOLE, ROOT)
    }
    first, last = float(rows.x.min()), float(rows.x.max())
    said = f"What derivatives miss of a branch's change, from {first:.0f} to {last:.0f} layers: " + "; ".join(
        f"{line}: {band_of(rows, CURVED, line, first).mean:.3f} to {band_of(rows, CURVED, line, last).mean:.3f}, as the power "
        f"{power} of depth"
        for line, power in powers.items()
    )
    number = powers[ROOT].fields()
    steady, falls = compare(powers[WHOLE], STEADY), compare(powers[ROOT], FALLS)
    if (steady, falls) == ("above", "below"):
        return Decision(HOLDS, said + ".", **number)
    if "undecided" in (steady, falls):
        return Decision(UNDECIDED, said + ".", **number, wants="more seeds, or deeper networks")
    return Decision(CONTRADICTED if (steady, falls) == ("below", "above") else IN_PART, said + ".", **number)


CLAIMS = (
    Claim(
        "layers_are_lazy_unless_branches_fall_as_depth",
        "With branches times 1 / sqrt(L) the layers of deep networks learn only their linearisation, with 1 / L all of them learn more.",
        "Dey and others: Don't be lazy: CompleteP enables compute-efficient deep transformers, 2025",
        "https://arxiv.org/abs/2505.01618",
        ("abstract",),
        "Pre-norm causal attention, 4 to 64 layers of 2 heads, width 32, random weights N(0, 1 / width); one step of all weights by "
        "the signs of their gradients, "
        "of a size at which the last state changes by a fifth. The source trains language models and transfers learning rates.",
        "It holds if what derivatives miss of a branch's change falls with depth faster than the power -0.3 for 1 / sqrt(L), and "
        "not faster than -0.1 for 1 / L, "
        "with whole intervals over seeds (the argument gives -1/2 and 0); in part if one of both.",
        decide,
        shown=CURVED,
        thresholds=(STEADY, FALLS),
        place=660,
    ),
)
