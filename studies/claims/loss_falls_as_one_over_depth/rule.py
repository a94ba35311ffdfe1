import numpy as np

from rankfall import Band, DataFrame, Decision, Extension, Read, Threshold, band, band_of, evidence_rows, judge
from studies.claims.loss_falls_as_one_over_depth.names import LOSS, OWN, TIED, TURN
from studies.claims.rules import by_need, lies_between, slopes

LOW = Threshold(-1.5, "above", "slope of log loss over log layers, a teacher of independent layers")
HIGH = Threshold(-0.5, "below", "slope of log loss over log layers, a teacher of independent layers")
SQUARE = Threshold(
    0.3, "below", TURN, f"{OWN}, most layers; and above -0.3: changes of neighbours are nearly orthogonal"
)


def decide(read: Read) -> Decision:
    rows = read("evidence")
    last = float(rows.x.max())
    powers = {line: band(slopes(evidence_rows(rows, LOSS, line), log=True)) for line in (OWN, TIED)}
    turns = {line: band_of(rows, TURN, line, last) for line in (OWN, TIED)}
    losses = ", ".join(f"{band_of(rows, LOSS, OWN, x).mean:.3g} at {x:.0f}" for x in sorted(rows.x.unique()))
    floored = band([-power_above_floor(group) for _, group in evidence_rows(rows, LOSS, OWN).groupby("seed")])
    sentence = (
        f"The loss falls with the power {powers[OWN]} of the number of layers for {OWN}, above a fitted floor {floored}, and "
        f"{powers[TIED]} for {TIED}; at {last:.0f} layers changes of neighbouring layers have a cosine of {turns[OWN]} and "
        f"{turns[TIED]}. Losses: {losses} layers."
    )
    steeper = None if overlap(powers[OWN], powers[TIED]) else powers[TIED].mean < powers[OWN].mean
    tied = Extension("a steeper fall for smooth dynamics, which a tied teacher has", steeper)
    square = lies_between(turns[OWN], -float(SQUARE), float(SQUARE))
    answers = {lies_between(power, LOW, HIGH) for power in (powers[OWN], floored)}
    return judge(
        sentence,
        powers[OWN],
        "networks trained until depth alone limits them: the source's take 40,000 steps",
        [tied],
        **by_need(answers.pop() if len(answers) == 1 else None, square),
    )


def power_above_floor(rows: DataFrame) -> float:
    """Return p of the least-squares law a + c L^-p, a at least zero, for the losses of one seed. p ends at 3."""
    layers, losses = rows.x.to_numpy(), rows.value.to_numpy()
    errors = {}
    for p in np.linspace(0.05, 3, 60):
        columns = np.stack([np.ones(len(layers)), layers**-p], 1)
        fit = np.linalg.lstsq(columns, losses, rcond=None)[0]
        if fit[0] < 0:
            fit = np.array([0.0, (columns[:, 1] @ losses) / (columns[:, 1] @ columns[:, 1])])
        errors[float(p)] = float(((columns @ fit - losses) ** 2).sum())
    return min(errors, key=lambda p: errors[p])


def overlap(first: Band, other: Band) -> bool:
    return first.low <= other.high and other.low <= first.high
