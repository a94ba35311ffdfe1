from rankfall import Band, DataFrame, Decision, Extension, Read, Threshold, band, band_of, evidence_rows, judge
from studies.claims.loss_falls_as_one_over_depth.names import LOSS, OWN, TIED, TURN
from studies.claims.rules import by_need, lies_between, slopes

LOW = Threshold(-1.5, "above", "slope of log loss over log layers, a teacher of independent layers")
HIGH = Threshold(-0.5, "below", "slope of log loss over log layers, a teacher of independent layers")
SQUARE = Threshold(
    0.3, "below", TURN, f"{OWN}, most layers; and above -0.3: changes of neighbours are nearly orthogonal"
)
THRESHOLDS = (LOW, HIGH, SQUARE)


def decide(read: Read) -> Decision:
    rows = read("evidence")
    last = float(rows.x.max())
    powers = {line: band(slopes(evidence_rows(rows, LOSS, line), log=True)) for line in (OWN, TIED)}
    turns = {line: band_of(rows, TURN, line, last) for line in (OWN, TIED)}
    said = (
        f"The loss falls with the power {powers[OWN]} of the number of layers for {OWN}, {powers[TIED]} for {TIED}; at {last:.0f} layers "
        f"changes of neighbouring layers have a cosine of {turns[OWN]} and {turns[TIED]}. {text_of(rows, OWN)}"
    )
    steeper = None if overlap(powers[OWN], powers[TIED]) else powers[TIED].mean < powers[OWN].mean
    tied = Extension("a steeper fall for smooth dynamics, which a tied teacher has", steeper)
    square = lies_between(turns[OWN], -float(SQUARE), float(SQUARE))
    return judge(said, powers[OWN], "more seeds", [tied], **by_need(lies_between(powers[OWN], LOW, HIGH), square))


def overlap(one: Band, other: Band) -> bool:
    return one.low <= other.high and other.low <= one.high


def text_of(rows: DataFrame, line: str) -> str:
    depths = sorted(rows.x.unique())
    losses = ", ".join(f"{band_of(rows, LOSS, line, x).mean:.3g} at {x:.0f}" for x in depths)
    return f"Losses: {losses} layers."
