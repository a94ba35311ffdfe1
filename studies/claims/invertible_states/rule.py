from rankfall import DataFrame, Decision, Extension, Read, Threshold, band_of, evidence_rows, judge
from studies.claims.invertible_states.names import FOUND, NEAREST

THEIRS = ("pre-norm decoder", "post-norm decoder")
OTHERS = ("attention and MLP without skips", "attention alone")
AVERAGES = "averages, -layers log10 n"
FORMATS = ("float64", "float32", "bfloat16")
ALL = Threshold(1.0, "at", FOUND, "every token at every layer")


def decide(read: Read) -> Decision:
    rows = read("evidence")
    depth = int(rows.x.max())
    lost = {(line, name): first_lost(rows, f"{line}, {name}") for line in (*THEIRS, *OTHERS) for name in FORMATS}
    texts = {
        line: f"{line}: "
        + ", ".join(
            f"{name} {'never' if lost[line, name] is None else f'from layer {lost[line, name]} on'}" for name in FORMATS
        )
        for line in (*THEIRS, *OTHERS)
    }
    nearest = min(evidence_rows(rows, NEAREST, line).value.min() for line in THEIRS)
    sentence = (
        f"Tokens are lost in the states of {depth} layers: {'; '.join(texts[line] for line in THEIRS)}. Two words of a decoder are never "
        f"nearer than 10^{nearest:.2g} of a state; in attention alone they come "
        f"nearer by 10^{rate(rows):.2f} a layer, 10^{evidence_rows(rows, NEAREST, AVERAGES, 1.0).value.iloc[0]:.2f} in averages."
    )
    number = band_of(rows, FOUND, f"{THEIRS[0]}, bfloat16", depth)
    nowhere = {line: all(lost[line, name] is None for name in FORMATS) for line in texts}
    exactly = any(lost[line, "float64"] is not None for line in THEIRS)
    extends = [Extension(texts[line], nowhere[line]) for line in OTHERS]
    return judge(
        sentence,
        number,
        extends=extends,
        holds=all(nowhere[line] for line in THEIRS),
        contradicted=exactly,
        in_part=True,
    )


def first_lost(rows: DataFrame, line: str) -> int | None:
    """Return the first layer at which a token of some seed is not recovered."""
    shares = evidence_rows(rows, FOUND, line)
    wrong = shares[shares.value < ALL]
    return int(wrong.x.min()) if len(wrong) else None


def rate(rows: DataFrame) -> float:
    """Return log10 of the factor per layer, over the layers at which no seed has reached rounding."""
    distances = evidence_rows(rows, NEAREST, OTHERS[1])
    means = distances.groupby("x").value.agg(lambda values: values.mean(skipna=False)).dropna()
    return float((means.iloc[-1] - means.iloc[0]) / (means.index[-1] - means.index[0]))
