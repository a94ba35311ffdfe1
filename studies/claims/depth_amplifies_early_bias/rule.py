from rankfall import DataFrame, Decision, Read, Threshold, band_of, change_of, is_on, judge
from studies.claims.early_tokens_at_birth.names import BIAS, NETWORKS

SHALLOW, DEEP = 2.0, 6.0  # layers, as in the source's table
GROWN = Threshold(
    0.0,
    "above",
    f"change of the log of the first item's influence over the middle one's from {SHALLOW:.0f} to {DEEP:.0f} layers",
    "every kind of position, without skips",
)


def decide(read: Read) -> Decision:
    rows = read("evidence")
    changes = {line: change_of(rows, BIAS, f"{line}, no skips", SHALLOW, DEEP) for line in NETWORKS}
    sentence = f"Log of first over middle item at {SHALLOW:.0f} and {DEEP:.0f} layers without skips: " + "; ".join(
        f"{line} {_at(rows, f'{line}, no skips', SHALLOW)} and {_at(rows, f'{line}, no skips', DEEP)}"
        for line in NETWORKS
    )
    with_skips = ", ".join(f"{line} {_at(rows, f'{line}, skips', DEEP)}" for line in NETWORKS)
    sentence += f". With skips at {DEEP:.0f}: {with_skips}."
    answers = {is_on(change, GROWN) for change in changes.values()}
    everywhere, somewhere, none = answers == {True}, True in answers, answers == {False}
    return judge(sentence, changes[NETWORKS[0]], "more seeds", holds=everywhere, in_part=somewhere, contradicted=none)


def _at(rows: DataFrame, line: str, x: float) -> str:
    return f"{band_of(rows, BIAS, line, x).mean:.2f}"
