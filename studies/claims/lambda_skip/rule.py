from rankfall import Decision, Extension, Read, Threshold, band_of, is_on, judge
from studies.claims.lambda_skip.names import KINDS, LAMBDAS, LOSS
from studies.claims.rules import by_parts, true_of_any

STILL = Threshold(-1e-3, "above", LOSS, "every kind at some lambda")  # half in 300 layers
NONE = Threshold(0.0, "above", LOSS, f"at lambda {LAMBDAS[-1]:g}, to extend to any depth")


def decide(read: Read) -> Decision:
    rows = read("evidence")
    losses = {kind: {strength: band_of(rows, LOSS, kind, strength) for strength in LAMBDAS} for kind in KINDS}
    text = (
        f"Decades of residual that a layer loses at lambda {', '.join(f'{strength:g}' for strength in LAMBDAS)}: "
        + "; ".join(
            f"{kind} {', '.join(f'{-loss.mean:.2g}' for loss in by_strength.values())}"
            for kind, by_strength in losses.items()
        )
    )
    enough = {
        kind: next((strength for strength in LAMBDAS if is_on(by_strength[strength], STILL)), None)
        for kind, by_strength in losses.items()
    }
    reached = ", ".join(f"{kind} {say_least(strength)}" for kind, strength in enough.items())
    last = losses["attention, every token"][LAMBDAS[-1]]
    kept = [true_of_any(is_on(loss, STILL) for loss in by_strength.values()) for by_strength in losses.values()]
    return judge(
        f"{text}. Less than a thousandth: {reached}.",
        last,
        "more seeds, to distinguish losses from a thousandth",
        **by_parts(kept),
        extends=[
            Extension(
                f"any depth at one lambda (at {LAMBDAS[-1]:g} attention loses {-last.mean:.2g}, {-last.high:.2g} to {-last.low:.2g})",
                is_on(last, NONE),
            )
        ],
    )


def say_least(least: float | None) -> str:
    """Write the least lambda that loses less than the threshold; a smaller one than the smallest tried may do so too."""
    if least is None:
        return "at none"
    return f"at lambda {least:g}" + (", the smallest tried" if least == LAMBDAS[0] else "")
