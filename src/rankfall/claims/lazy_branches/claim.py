"""The claim with its source, and the rule that decides it."""

from __future__ import annotations

from rankfall.claims.trends import slopes
from rankfall.report.claim import Claim, Decision, Read, Threshold, band, band_of, compare, evidence_rows, judge

CURVED = "share of a branch's change that its derivative misses, by layers"
MOVED = "change of a branch's output over its size, by layers"
WHOLE, ROOT = "1 / L", "1 / sqrt(L)"
# The argument gives 0 and -1/2.
STEADY = Threshold(-0.1, "above", "power of depth in what derivatives miss", f"branches times {WHOLE}")
FALLS = Threshold(-0.3, "below", "power of depth in what derivatives miss", f"branches times {ROOT}")


def decide(read: Read) -> Decision:
    rows = read("evidence")
    powers = {line: band(slopes(evidence_rows(rows, CURVED, line), log=True)) for line in (WHOLE, ROOT)}
    first, last = float(rows.x.min()), float(rows.x.max())
    said = f"What derivatives miss of a branch's change, from {first:.0f} to {last:.0f} layers: " + "; ".join(
        f"{line}: {band_of(rows, CURVED, line, first).mean:.3f} to {band_of(rows, CURVED, line, last).mean:.3f}, as the power "
        f"{power} of depth"
        for line, power in powers.items()
    )
    found = compare(powers[WHOLE], STEADY), compare(powers[ROOT], FALLS)
    return judge(
        said + ".",
        powers[ROOT],
        "more seeds, or deeper networks",
        undecided="undecided" in found,
        holds=found == ("above", "below"),
        contradicted=found == ("below", "above"),
        in_part=True,
    )


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
