"""The claim with its source, and the rule that decides it."""

from __future__ import annotations

from rankfall.claims.answers import true_of_any
from rankfall.claims.value_spectrum.names import EIGENVALUES, GAIN, NAME, NORMED, RANDOM, SCALED
from rankfall.report.claim import Claim, Decision, Extension, Read, Threshold, band_of, compare, is_on, judge

KEPT = Threshold(0.0, "split at", GAIN, "above it where |1 + h| < 1, below it where that is more")


def decide(read: Read) -> Decision:
    rows = read("evidence")
    found = {kind: {h: band_of(rows, GAIN, kind, h) for h in EIGENVALUES} for kind in (SCALED, NORMED, RANDOM)}
    shown = (-2.5, -1.5, -0.5, 0.5)
    text = "Decades of relative residual gained at h = " + ", ".join(f"{h:g}" for h in shown) + ": "
    text += "; ".join(f"{kind} {', '.join(f'{found[kind][h].mean:+.2g}' for h in shown)}" for kind in (SCALED, NORMED))
    mixed = ", ".join(f"{found[RANDOM][h].mean:+.2g} at gain {h:g}" for h in EIGENVALUES if h > 0)
    expected = {h: "below" if abs(1 + h) > 1 else "above" for h in EIGENVALUES}
    said = {kind: [(compare(found[kind][h], KEPT), expected[h]) for h in EIGENVALUES] for kind in (SCALED, NORMED)}
    right = [all(a == b for a, b in one) for one in said.values()]
    wrong = any(a not in (b, "undecided") for one in said.values() for a, b in one)
    return judge(
        text + ".",
        found[SCALED][-0.5],
        "more seeds or layers",
        holds=all(right),
        undecided=not wrong,
        in_part=any(right),
        contradicted=True,
        extends=[
            Extension(
                f"random H, whose eigenvalues lie on both sides: a rise at some gain ({mixed})",
                true_of_any(is_on(found[RANDOM][h], KEPT) for h in EIGENVALUES if h > 0),
            )
        ],
    )


CLAIMS = (
    Claim(
        NAME,
        "Whether attention with skips makes tokens alike depends on the eigenvalues of its value and output maps and their sign: it is not "
        "inevitable.",
        "Dovonon, Bronstein and Kusner: Setting the record straight on transformer oversmoothing, 2024",
        "https://arxiv.org/abs/2401.04301",
        ("abstract",),
        "X + A(X) X H with random queries and keys (scores of deviation 1), H = h 1, with a layer norm after and without norms; "
        "width 32, 16 tokens that share half of what they are, 24 layers, 8 seeds. Ours: random H.",
        "It holds if for every h the relative residual falls where |1 + h| > 1 and rises where it is less (intervals of the gain on "
        "the right side of "
        "0), with norms and without; in part if for one of both. Random H decides nothing. The number is the gain at h = -.5.",
        decide,
        thresholds=(KEPT,),
        place=49,
    ),
)
