import math
from typing import Any

from rankfall import Decision, Extension, Read, Threshold, band, compare, evidence_rows, judge
from studies.claims.parts import slope
from studies.claims.query_gradients.names import ABOVE, BELOW, FIXED, GRADIENT, SHARE
from studies.claims.rules import first_crossing, true_of_all
from studies.claims.score_scales.limits import decay_of_squares

FALLS = Threshold(
    0.0,
    "split at",
    "power of the number of tokens in the scaled gradient over the last doubling",
    f"below it at beta {' and '.join(f'{beta:g}' for beta in BELOW)}, above it at {' and '.join(f'{beta:g}' for beta in ABOVE)}",
)
LESS = Threshold(
    0.0,
    "above",
    "power of the number of tokens above the transition less that just below it",
    f"at beta {' and '.join(f'{beta:g}' for beta in ABOVE)} each, where the power may be 0",
)


def decide(read: Read) -> Decision:
    rows = read("evidence")
    powers, fixed = fit_powers(rows, GRADIENT), fit_powers(rows, FIXED)
    most = max(int(line.split()[0]) for line in evidence_rows(rows, SHARE).line)
    tenth = band(
        first_crossing(group, 0.1) for _, group in evidence_rows(rows, SHARE, f"{most} tokens").groupby("seed")
    )
    bands = {beta: band(values) for beta, values in powers.items()}
    listed = ", ".join(
        f"T^{power.mean:.2f} ({power.low:.2f} to {power.high:.2f}) at beta {beta:g}" for beta, power in bands.items()
    )
    text = (
        f"Over the last doubling of the number T of tokens the scaled gradient goes like {listed}; squared weights go like "
        f"{' and '.join(f'T^{decay_of_squares(beta):.2f}' for beta in BELOW)} below the transition. At {most:,} tokens the gradient "
        f"reaches a tenth of its value at beta 3 from beta {tenth} on; the transition is at {math.sqrt(2):.3f}."
    )
    right = sides(powers)
    unclear = None in right
    return judge(
        text,
        bands[BELOW[0]],
        "more tokens and seeds: powers of T near 0",
        holds=all(right),
        undecided=unclear,
        in_part=any(right[: len(BELOW)]),
        contradicted=True,
        extends=[
            Extension(
                f"one width for all T ({', '.join(f'T^{band(values).mean:.2f} at beta {beta:g}' for beta, values in fixed.items())})",
                true_of_all(sides(fixed)),
            )
        ],
    )


def sides(powers: dict[float, list[float]]) -> list[bool | None]:
    """Return, for each beta, whether the gradient vanishes below the transition and does not above. Above, a power that may be zero must be
    decidedly larger than that of the largest beta below the transition, seed by seed."""
    answers = {beta: compare(band(powers[beta]), FALLS) for beta in powers}
    verdicts: list[bool | None] = [None if answers[beta] == "undecided" else answers[beta] == "below" for beta in BELOW]
    for beta in ABOVE:
        gap = band(above - below for above, below in zip(powers[beta], powers[BELOW[-1]], strict=True))
        unclear = answers[beta] == "undecided"
        verdicts.append((compare(gap, LESS) == "above" or None) if unclear else answers[beta] == "above")
    return verdicts


def fit_powers(rows: Any, quantity: str) -> dict[float, list[float]]:
    """Return, by beta, the power of the number of tokens over its last doubling, for each seed."""
    rows = evidence_rows(rows, quantity).copy()
    rows["tokens"] = rows.line.str.split().str[0].astype(float)
    late = rows[rows.tokens >= rows.tokens.max() / 2]
    powers = {}
    for beta in (*BELOW, *ABOVE):
        chosen = late[(late.x - beta).abs() < 1e-9]
        powers[beta] = [
            slope(group.tokens.map(math.log), group.value.map(math.log)) for _, group in chosen.groupby("seed")
        ]
    return powers
