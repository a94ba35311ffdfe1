"""Who says it, and what decides it."""

from __future__ import annotations

from functools import partial
from typing import Any

from rankfall.claims.masks import ALL_OR_EARLIER as MASKS
from rankfall.claims.trends import slopes
from rankfall.claims.value_residuals.names import AFTER, FLOOR, OUTPUTS, PLAIN, RESIDUAL, VALUES
from rankfall.report.claim import Claim, Decision, Read, Threshold, band, judge, of

WITH = "with first values"
KEPT = Threshold(-3.0, "above", RESIDUAL, f"{WITH}, and not without, after the last layer")
STILL = Threshold(-0.3, "above", "decades gained over the second half of the layers", f"{WITH}, and not without")


def decide(read: Read, name: str) -> Decision:
    rows = read("evidence")
    last = float(of(rows, RESIDUAL).x.max())
    good = {sees: keeps(rows, f"{WITH}, {sees}", last) and not keeps(rows, f"{PLAIN}, {sees}", last) for sees in MASKS}
    orders = {
        (line, sees): band(slopes(of(rows, AFTER, f"{line}, {sees}"))) for line in (PLAIN, WITH) for sees in MASKS
    }
    text = "; ".join(
        f"{sees}: {say(rows, f'{WITH}, {sees}', last)} with first values ({name}), {say(rows, f'{PLAIN}, {sees}', last)} without, "
        f"order of two layers {orders[WITH, sees].mean:.2f} against {orders[PLAIN, sees].mean:.2f}"
        for sees in MASKS
    )
    found = of(rows, RESIDUAL, f"{WITH}, earlier tokens", last).value.dropna()
    number = band(found) if len(found) else None
    text = f"Relative residual after {last:.0f} layers, {text}."
    return judge(text, number, holds=all(good.values()), in_part=any(good.values()), contradicted=True)


def keeps(rows: Any, line: str, last: float) -> bool:
    """Whether the residual is above a thousandth after the last layer and has not fallen by half since half of the depth, in all seeds'
    intervals."""
    end, half = of(rows, RESIDUAL, line, last), of(rows, RESIDUAL, line, last // 2)
    if end.value.isna().any() or half.value.isna().any():
        return False
    pairs = end.merge(half, on="seed")
    return band(end.value).low > KEPT and band(pairs.value_x - pairs.value_y).low > STILL


def say(rows: Any, line: str, last: float) -> str:
    found = of(rows, RESIDUAL, line, last).value
    return f"below {FLOOR:g}" if found.isna().all() else f"10^{found.mean():.2f}"


SETTING = (
    "Attention with a root-mean-square norm after and no skip connection, 24 layers of 2 heads, width 32, 12 random tokens, Xavier's "
    "start, "
    "8 seeds; every token seen, and earlier ones. The source: language models, causal, with skips and MLPs."
)
THRESHOLD = (
    "It holds for a mask if the relative residual stays above a thousandth after 24 layers and falls by less than half over the last 12 "
    "(intervals), and does not without the values of the first layer; in part if for one of the masks."
)

CLAIMS = (
    Claim(
        VALUES,
        "Values of the first layer, mixed half and half into those of all later ones, ease over-smoothing.",
        "Zhou et al.: Value residual learning, 2024",
        "https://arxiv.org/abs/2410.17897",
        ("abstract", "code"),
        SETTING,
        THRESHOLD,
        partial(decide, name="half of the values"),
        thresholds=(KEPT, STILL),
        place=53,
        shown=RESIDUAL,
    ),
    Claim(
        OUTPUTS,
        "What the first layer's values have more than a layer's own, added to its output, eases over-smoothing.",
        "Nguyen, Nguyen and Baraniuk: Mitigating over-smoothing in transformers via regularized nonlocal functionals, 2023",
        "https://arxiv.org/abs/2312.00751",
        ("code",),
        SETTING + " Read in the code of Zhou et al.: .4 (V_1 - V_l).",
        THRESHOLD,
        partial(decide, name=".4 of the difference, beside the output"),
        thresholds=(KEPT, STILL),
        place=54,
        shown=RESIDUAL,
    ),
)
