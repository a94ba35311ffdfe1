from rankfall import Band, DataFrame, Decision, Threshold, band_of, evidence_rows, is_on, judge
from studies.claims.pretrained_encoder.names import EVERY, FIRST, SEPARATOR, SINK, SPIKE, STATES
from studies.claims.pretrained_encoder.reading import where_measured

# Both by their original definitions: a sink has more than 0.3 of a head's weight, a massive activation is a thousand times the median.
DRAWS = Threshold(0.3, "above", SINK, f"{EVERY}, at the layer where it is largest")
FLAT = Threshold(1000.0, "below", SPIKE, "at the layer where it is largest")


@where_measured
def decide(rows: DataFrame) -> Decision:
    spike = at_most(rows, SPIKE, STATES)
    drawn = {line: at_most(rows, SINK, line) for line in (EVERY, FIRST, SEPARATOR)}
    sentence = (
        f"The largest entry of the states is {spike[1].mean:.0f} times the median (layer {spike[0]:.0f}); a head gives one token "
        f"{drawn[EVERY][1].mean:.2f} of its weight (layer {drawn[EVERY][0]:.0f}), the first one {drawn[FIRST][1].mean:.2f} (layer "
        f"{drawn[FIRST][0]:.0f}), a separator {drawn[SEPARATOR][1].mean:.2f} (layer {drawn[SEPARATOR][0]:.0f})."
    )
    layers = sorted(set(evidence_rows(rows, SINK, EVERY).x))
    sinks = [x for x in layers if is_on(band_of(rows, SINK, EVERY, x), DRAWS)]
    flat = [is_on(band_of(rows, SPIKE, STATES, x), FLAT) for x in sinks]
    return judge(
        sentence,
        drawn[EVERY][1],
        "a pretrained model with norms after that has sinks for sure",
        holds=bool(sinks) and is_on(spike[1], FLAT) is True,
        in_part=True in flat,
        contradicted=bool(sinks) and set(flat) == {False},
    )


def at_most(rows: DataFrame, quantity: str, line: str) -> tuple[float, Band]:
    """Return the layer with the largest value, in the mean over texts, and that value."""
    evidence = evidence_rows(rows, quantity, line)
    layer = float(evidence.groupby("x").value.mean().idxmax())
    return layer, band_of(rows, quantity, line, layer)
