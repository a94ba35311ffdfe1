"""The claim with its source, and the rule that decides it."""

from __future__ import annotations

from rankfall.claims.answers import by_parts, true_of_any
from rankfall.claims.lambda_skip.names import KINDS, LAMBDAS, LOSS, NAME
from rankfall.report.claim import Claim, Decision, Extension, Read, Threshold, band_of, is_on, judge

STILL = Threshold(-1e-3, "above", LOSS, "every kind at some lambda")  # half in 300 layers
NONE = Threshold(0.0, "above", LOSS, f"at lambda {LAMBDAS[-1]:g}, to extend to any depth")


def decide(read: Read) -> Decision:
    rows = read("evidence")
    losses = {kind: {one: band_of(rows, LOSS, kind, one) for one in LAMBDAS} for kind in KINDS}
    text = f"Decades of residual that a layer loses at lambda {', '.join(f'{one:g}' for one in LAMBDAS)}: " + "; ".join(
        f"{kind} {', '.join(f'{-one.mean:.2g}' for one in found.values())}" for kind, found in losses.items()
    )
    enough = {kind: next((one for one in LAMBDAS if is_on(found[one], STILL)), None) for kind, found in losses.items()}
    reached = ", ".join(f"{kind} {_say_least(one)}" for kind, one in enough.items())
    last = losses["attention, every token"][LAMBDAS[-1]]
    kept = [true_of_any(is_on(one, STILL) for one in found.values()) for found in losses.values()]
    return judge(
        f"{text}. Less than a thousandth: {reached}.",
        last,
        "more seeds: losses that are told from a thousandth",
        **by_parts(kept),
        extends=[
            Extension(
                f"any depth at one lambda (at {LAMBDAS[-1]:g} attention loses {-last.mean:.2g}, {-last.high:.2g} to {-last.low:.2g})",
                is_on(last, NONE),
            )
        ],
    )


def _say_least(least: float | None) -> str:
    if least is None:
        return "at none"
    return f"at lambda {least:g}" + (", the smallest tried" if least == LAMBDAS[0] else "")


CLAIMS = (
    Claim(
        NAME,
        "A skip connection times a large enough lambda prevents rank collapse, in attention and in state space models alike.",
        "Joseph et al.: Lambda-skip connections: the architectural component that prevents rank collapse, 2024",
        "https://arxiv.org/abs/2410.10609",
        ("abstract",),
        "N(lambda X + F(X)) with a root-mean-square norm, F attention (2 heads) or a selective state space model, Xavier's start, "
        "width 32, 16 tokens that differ by a hundredth of what they share, 128 layers, lambda .5 to 32, 5 seeds. The paper's "
        "condition was not read.",
        "It holds if each kind has a lambda at which it loses less than .001 decades of its relative residual a layer over the second half "
        "of 128 layers (half in 300 layers), in part if only some kinds have one, contradicted if none has. A branch of bounded size "
        "loses like lambda^-2, so only one that grows with its input can fail. The number is what attention loses at lambda 32.",
        decide,
        shown=LOSS,
        thresholds=(STILL, NONE),
        place=48,
        changed="Tokens begin near each other, at a hundredth of what they share: from unlike ones a residual near one hides what is "
        "lost. Lambda goes to 32 instead of 8, where the experiment had stopped: the statement asks for one that is large enough.",
    ),
)
