from rankfall import Decision, Extension, Read, Threshold, band_of, compare, is_on, judge
from studies.claims.rules import true_of_any
from studies.claims.value_spectrum.names import EIGENVALUES, GAIN, NORMED, RANDOM, SCALED

KEPT = Threshold(0.0, "split at", GAIN, "above it where |1 + h| < 1, below it where that is more")


def decide(read: Read) -> Decision:
    rows = read("evidence")
    gains = {kind: {h: band_of(rows, GAIN, kind, h) for h in EIGENVALUES} for kind in (SCALED, NORMED, RANDOM)}
    shown = (-2.5, -1.5, -0.5, 0.5)
    text = "Decades of relative residual gained at h = " + ", ".join(f"{h:g}" for h in shown) + ": "
    text += "; ".join(f"{kind} {', '.join(f'{gains[kind][h].mean:+.2g}' for h in shown)}" for kind in (SCALED, NORMED))
    mixed = ", ".join(f"{gains[RANDOM][h].mean:+.2g} at gain {h:g}" for h in EIGENVALUES if h > 0)
    expected = {h: "below" if abs(1 + h) > 1 else "above" for h in EIGENVALUES}
    sides = {kind: [(compare(gains[kind][h], KEPT), expected[h]) for h in EIGENVALUES] for kind in (SCALED, NORMED)}
    right = [all(a == b for a, b in pairs) for pairs in sides.values()]
    wrong = any(a not in (b, "undecided") for pairs in sides.values() for a, b in pairs)
    return judge(
        text + ".",
        gains[SCALED][-0.5],
        "more seeds or layers",
        holds=all(right),
        undecided=not wrong,
        in_part=any(right),
        contradicted=True,
        extends=[
            Extension(
                f"random H, whose eigenvalues lie on both sides: a rise at some gain ({mixed})",
                true_of_any(is_on(gains[RANDOM][h], KEPT) for h in EIGENVALUES if h > 0),
            )
        ],
    )
