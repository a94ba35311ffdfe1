"""The claim with its source, and the rule that decides it."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from rankfall.claims.answers import by_parts, true_of_all
from rankfall.claims.masks import ALL_OR_EARLIER as MASKS
from rankfall.claims.trends import slopes
from rankfall.claims.value_residuals.names import AFTER, FLOOR, OUTPUTS, PLAIN, RESIDUAL, VALUES
from rankfall.report.claim import Claim, Decision, Extension, Read, Threshold, band, evidence_rows, is_on, judge

WITH = "with first values"
KEPT = Threshold(-3.0, "above", RESIDUAL, f"{WITH}, and not without, after the last layer")
EASED = Threshold(0.0, "above", "decades of the residual more than without", f"{WITH}, after the last layer")
STILL = Threshold(-0.3, "above", "decades gained over the second half of the layers", f"{WITH}, and not without")


def decide(read: Read, name: str, theirs: tuple[str, ...]) -> Decision:
    rows = read("evidence")
    last = float(evidence_rows(rows, RESIDUAL).x.max())
    answers = {sees: (eases(rows, sees, last), stays(rows, sees, last)) for sees in MASKS}
    orders = {
        (line, sees): band(slopes(evidence_rows(rows, AFTER, f"{line}, {sees}")))
        for line in (PLAIN, WITH)
        for sees in MASKS
    }
    texts = {
        sees: f"{sees}: {say(rows, f'{WITH}, {sees}', last)} with first values ({name}), {say(rows, f'{PLAIN}, {sees}', last)} without, "
        f"order of two layers {orders[WITH, sees].mean:.2f} against {orders[PLAIN, sees].mean:.2f}"
        for sees in MASKS
    }
    number = band(logs(rows, f"{WITH}, earlier tokens", last))
    said = f"Relative residual after {last:.0f} layers, {'; '.join(texts[sees] for sees in theirs)}."
    extends = [Extension(texts[sees], true_of_all(answers[sees])) for sees in MASKS if sees not in theirs]
    parts = [answer for sees in theirs for answer in answers[sees]]
    return judge(said, number, "more seeds", extends, **by_parts(parts))


def logs(rows: Any, line: str, layer: float) -> Any:
    """Return the logarithms of the residual, seed by seed. Values below rounding are set to it."""
    return evidence_rows(rows, RESIDUAL, line, layer).value.fillna(math.log10(FLOOR)).to_numpy()


def eases(rows: Any, sees: str, last: float) -> bool | None:
    return is_on(band(logs(rows, f"{WITH}, {sees}", last) - logs(rows, f"{PLAIN}, {sees}", last)), EASED)


def stays(rows: Any, sees: str, last: float) -> bool | None:
    """Return whether the residual is kept with first values and not without."""
    kept, plain = (keeps(rows, f"{line}, {sees}", last) for line in (WITH, PLAIN))
    return true_of_all((kept, None if plain is None else not plain))


def keeps(rows: Any, line: str, last: float) -> bool | None:
    """Return whether the residual is above a thousandth after the last layer and has not halved over the second half of the depth."""
    end, half = logs(rows, line, last), logs(rows, line, last // 2)
    return true_of_all((is_on(band(end), KEPT), is_on(band(end - half), STILL)))


def say(rows: Any, line: str, last: float) -> str:
    found = evidence_rows(rows, RESIDUAL, line, last).value
    return f"below {FLOOR:g}" if found.isna().all() else f"10^{found.mean():.2f}"


SETTING = (
    "Attention with a root-mean-square norm after and no skip connection, 24 layers of 2 heads, width 32, 12 random tokens, Xavier's "
    "start, "
    "8 seeds; earlier tokens seen, and every one. "
)
THRESHOLD = (
    "With the values of the first layer the relative residual is larger after 24 layers than without them (interval of the difference, "
    "seed by seed), and it stays above a thousandth and falls by less than half over the last 12, which it does not without them. It holds "
    "if both are so for every mask that the source has, in part if one is."
)

CLAIMS = (
    Claim(
        VALUES,
        "Values of the first layer, mixed half and half into those of all later ones, ease over-smoothing.",
        "Zhou et al.: Value residual learning, 2024",
        "https://arxiv.org/abs/2410.17897",
        ("abstract", "code"),
        SETTING + "The source: language models, causal, with skips and MLPs.",
        THRESHOLD + " A layer that sees every token is ours and decides nothing.",
        partial(decide, name="half of the values", theirs=("earlier tokens",)),
        thresholds=(KEPT, STILL, EASED),
        changed="Layers that see every token had decided too, so that it held only in part; the source's are causal. A larger residual "
        "that goes on falling counts in part.",
        place=53,
        shown=RESIDUAL,
    ),
    Claim(
        OUTPUTS,
        "What the first layer's values have more than a layer's own, added to its output, eases over-smoothing.",
        "Nguyen, Nguyen and Baraniuk: Mitigating over-smoothing in transformers via regularized nonlocal functionals, 2023",
        "https://arxiv.org/abs/2312.00751",
        ("code",),
        SETTING
        + "The source: images, where every token is seen, and text. Read in the code of Zhou et al.: .4 (V_1 - V_l).",
        THRESHOLD,
        partial(decide, name=".4 of the difference, beside the output", theirs=tuple(MASKS)),
        thresholds=(KEPT, STILL, EASED),
        changed="A larger residual that goes on falling counts in part.",
        place=54,
        shown=RESIDUAL,
    ),
)
