"""The claim with its source, and the rule that decides it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING

from rankfall.claims.answers import true_of_all
from rankfall.claims.pretrained_encoder.names import (
    ALL,
    COSINE,
    CUT,
    EVERY,
    FIRST,
    FLOOR,
    NO_FIRST,
    NO_LARGEST,
    PARTS,
    RANK,
    RESIDUAL,
    SEPARATOR,
    SHARE,
    SINK,
    SINKS,
    SKIPS,
    SMALLEST,
    SPIKE,
    STATES,
)
from rankfall.report.claim import (
    Band,
    Claim,
    Decision,
    Extension,
    Read,
    Threshold,
    band,
    band_of,
    change_of,
    evidence_rows,
    is_on,
    judge,
)

if TYPE_CHECKING:
    from pandas import DataFrame

# Near 100% in the source's figure. Of 128 tokens one may be missing.
FULL = Threshold(0.99, "above", SHARE, "every text and layer")
FALLS = Threshold(0.0, "below", "decades that the smallest singular value gains from the first to the last state")
RISES = Threshold(0.0, "above", "mean absolute cosine after the last layer less that before the first")
# Both by their original definitions: a sink has more than 0.3 of a head's weight, a massive activation is a thousand times the median.
DRAWS = Threshold(0.3, "above", SINK, f"{EVERY}, at the layer where it is largest")
FLAT = Threshold(1000.0, "below", SPIKE, "at the layer where it is largest")
# The differences of tokens have a quarter of the energy, or a hundredth.
KEPT = Threshold(0.5, "above", RESIDUAL, "skips and MLPs, after the last layer")
LOST = Threshold(0.1, "below", RESIDUAL, f"{CUT}, after the last layer")


def where_measured(decide: Callable[[DataFrame], Decision]) -> Callable[[Read], Decision]:
    """Wrap a rule so that it is undecided if the model is not on this machine. The experiment then leaves one row with the reason."""

    @wraps(decide)
    def rule(read: Read) -> Decision:
        rows = read("evidence")
        if not rows.value.notna().any():
            return judge("Nothing was measured: there is no pretrained model.", None, rows.value_reason.iloc[0])
        return decide(rows)

    return rule


@where_measured
def full_rank(rows: DataFrame) -> Decision:
    first, last = float(rows.x.min()), float(rows.x.max())
    least = {part: float(evidence_rows(rows, SHARE, part).value.min()) for part in PARTS}
    falls = {part: change_of(rows, SMALLEST, part, first, last) for part in PARTS}
    rises = {part: change_of(rows, COSINE, part, first, last) for part in PARTS}
    texts = {
        part: f"{part}: rank at least {least[part]:.0%} of full, smallest singular value {falls[part].mean:+.2f} decades, cosine "
        f"{band_of(rows, COSINE, part, first).mean:.2f} to {band_of(rows, COSINE, part, last).mean:.2f}"
        for part in PARTS
    }
    said = f"From the state before the first of {last:.0f} layers to the last, {texts[ALL]}."
    full = {part: least[part] > FULL for part in PARTS}
    right = {part: (is_on(falls[part], FALLS), is_on(rises[part], RISES)) for part in PARTS}
    extends = [Extension(texts[part], true_of_all((full[part], *right[part]))) for part in PARTS if part != ALL]
    return judge(
        said,
        rises[ALL],
        "more texts",
        extends,
        contradicted=not full[ALL] or right[ALL] == (False, False),
        undecided=None in right[ALL],
        holds=right[ALL] == (True, True),
        in_part=True,
    )


@where_measured
def apart(rows: DataFrame) -> Decision:
    spike = at_most(rows, SPIKE, STATES)
    drawn = {line: at_most(rows, SINK, line) for line in (EVERY, FIRST, SEPARATOR)}
    said = (
        f"The largest entry of the states is {spike[1].mean:.0f} times the median (layer {spike[0]:.0f}); a head gives one token "
        f"{drawn[EVERY][1].mean:.2f} of its weight (layer {drawn[EVERY][0]:.0f}), the first one {drawn[FIRST][1].mean:.2f} (layer "
        f"{drawn[FIRST][0]:.0f}), a separator {drawn[SEPARATOR][1].mean:.2f} (layer {drawn[SEPARATOR][0]:.0f})."
    )
    layers = sorted(set(evidence_rows(rows, SINK, EVERY).x))
    sinks = [x for x in layers if is_on(band_of(rows, SINK, EVERY, x), DRAWS)]
    flat = [is_on(band_of(rows, SPIKE, STATES, x), FLAT) for x in sinks]
    return judge(
        said,
        drawn[EVERY][1],
        "a pretrained model with norms after that has sinks for sure",
        holds=bool(sinks) and is_on(spike[1], FLAT) is True,
        in_part=True in flat,
        contradicted=bool(sinks) and set(flat) == {False},
    )


def at_most(rows: DataFrame, quantity: str, line: str) -> tuple[float, Band]:
    """Return the layer with the largest value, in the mean over texts, and that value."""
    found = evidence_rows(rows, quantity, line)
    layer = float(found.groupby("x").value.mean().idxmax())
    return layer, band_of(rows, quantity, line, layer)


@where_measured
def keep_rank(rows: DataFrame) -> Decision:
    last = float(rows.x.max())
    kept = {part: band_of(rows, RESIDUAL, part, last) for part in PARTS}
    lost = band(evidence_rows(rows, RESIDUAL, CUT, last).value.fillna(FLOOR))
    said = (
        f"Relative residual after {last:.0f} layers: {kept[ALL].mean:.2f}; "
        f"{f'{lost.mean:.2g}' if lost.mean > 2 * FLOOR else 'below rounding'} with skips and MLPs cut."
    )
    answers = {part: is_on(one, KEPT) for part, one in kept.items()}
    extends = [Extension(f"states {part}: {kept[part].mean:.2f}", answers[part]) for part in PARTS if part != ALL]
    cut = is_on(lost, LOST)
    return judge(
        said,
        kept[ALL],
        "more texts",
        extends,
        contradicted=answers[ALL] is False,
        undecided=None in (answers[ALL], cut),
        holds=cut is True,
        in_part=True,
    )


SETTING = (
    "One pretrained encoder: MiniLM of 6 layers with norms after, 12 heads, width 384, trained for embeddings of sentences; 32 texts of "
    "128 tokens of CPython's documentation, float64, intervals over texts. "
)
CLAIMS = (
    Claim(
        RANK,
        "States of pretrained models keep full rank at all layers, while their smallest singular value falls and the cosine of tokens "
        "rises.",
        "Wu, Ajorlou, Wang, Jegelka and Jadbabaie: On the role of attention masks and LayerNorm in transformers, 2024",
        "https://arxiv.org/abs/2405.18781",
        ("second-hand",),
        SETTING + "The source has several pretrained encoders and decoders.",
        "It holds if in every text and layer the rank is above 0.99 of the number of tokens, and from the state before the first layer to "
        "that after the last the smallest singular value falls and the mean absolute cosine rises (whole intervals), with all tokens; in "
        "part if the rank is full and one of the others is so; contradicted if the rank is not, or neither is. States without the first "
        "token, or without the three largest channels, are ours and decide nothing.",
        full_rank,
        shown=COSINE,
        thresholds=(FULL, FALLS, RISES),
        place=800,
        changed="States without the first token and the largest channels had decided too. The verdict is the same.",
    ),
    Claim(
        SINKS,
        "Attention sinks need no massive activations: where norms stand after branches there are sinks without them.",
        "Sun, Canziani, LeCun and Zhu: Spike, sparse, sink, 2026",
        "https://arxiv.org/abs/2603.05498",
        ("abstract",),
        SETTING
        + "The source trains decoders with and without what it takes for the cause; there is no pretrained model with "
        "norms before here.",
        "A sink is a token that gets more than 0.3 of all weight of a head, mean over rows; a massive activation is an entry of a thousand "
        "times the median one. It holds if at some layer there are sinks and at none a massive activation (whole intervals over texts); "
        "in part if there is one, but not at every layer with sinks; contradicted if at every such layer; undecided without sinks.",
        apart,
        shown=SINK,
        thresholds=(DRAWS, FLAT),
        place=810,
        changed="The statement, not the rule: it first said too that norms before branches make both occur together, of which a model with "
        "norms after says nothing. A massive activation elsewhere counts in part; it had counted as contradicted.",
    ),
    Claim(
        SKIPS,
        "Trained networks do not lose rank, because of their skip connections and MLPs: the same weights without these do.",
        "Dong, Cordonnier and Loukas: Attention is not all you need, 2021",
        "https://arxiv.org/abs/2103.03404",
        ("figure", "code"),
        SETTING
        + f"The source's figure has BERT, ALBERT and XLNet; residuals here are of the Frobenius norm. {NO_FIRST.capitalize()}, and "
        f"{NO_LARGEST}, is ours.",
        "It holds if after the last layer the relative residual is above one half (a quarter of the energy is what tokens differ by), "
        "and with skips and MLPs cut below a tenth (a hundredth of the energy), with whole intervals over texts; in part if it is above a "
        "tenth when cut, so that others keep it; contradicted if it is below one half. States without the first token, or without the "
        "three largest channels, decide nothing.",
        keep_rank,
        shown=RESIDUAL,
        thresholds=(KEPT, LOST),
        place=820,
        changed="States without the first token and the largest channels had decided too. The verdict is the same.",
    ),
)
