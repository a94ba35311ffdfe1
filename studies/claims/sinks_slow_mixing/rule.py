import numpy as np

from rankfall import DataFrame, Decision, Extension, Read, Threshold, band, band_of, evidence_rows, is_on, judge
from studies.claims.rules import by_parts, true_of_all
from studies.claims.sinks_slow_mixing.names import DRAWN, KEPT, LEAST, REACHED

LINES = ("skips, value kept", "skips, value zero", "no skips, value kept", "no skips, value zero")
DECIDES = "skips, value zero"  # the setting nearest to trained models
RISES = Threshold(
    0.0, "above", "change of the log of the residual of other tokens from score 0 to the highest", DECIDES
)
# Less than zero, up to rounding.
FALLS = Threshold(-1e-9, "below", "change of the share of a change that is in other tokens", DECIDES)


def decide(read: Read) -> Decision:
    rows = read("evidence")
    high = float(rows.x.max())
    apart, slower = keeps_apart(rows, DECIDES, high), mixes_less(rows, DECIDES, high)
    sentence = (
        f"When the first token's score rises from 0 to {high:g} ({band_of(rows, DRAWN, DECIDES, high).mean:.0%} of attention), for "
        f"the other tokens: {_say(rows, DECIDES, high)}."
    )
    return judge(
        sentence,
        band_of(rows, KEPT, DECIDES, high),
        "more seeds, to distinguish changes from zero",
        extends=[_extension(rows, line, high) for line in LINES if line != DECIDES],
        **by_parts((apart, slower)),
    )


def keeps_apart(rows: DataFrame, line: str, high: float) -> bool | None:
    """Return whether the residual of the other tokens is larger at the highest score."""
    return is_on(band(np.log(_values(rows, KEPT, line, high) / _values(rows, KEPT, line, 0.0))), RISES)


def mixes_less(rows: DataFrame, line: str, high: float) -> bool | None:
    """Return whether less of a change of one token is in other tokens at the highest score."""
    return is_on(band(_values(rows, REACHED, line, high) - _values(rows, REACHED, line, 0.0)), FALLS)


def _extension(rows: DataFrame, line: str, high: float) -> Extension:
    answer = true_of_all((keeps_apart(rows, line, high), mixes_less(rows, line, high)))
    return Extension(f"{line}: {_say(rows, line, high)}", answer)


def _values(rows: DataFrame, quantity: str, line: str, x: float) -> np.ndarray:
    return evidence_rows(rows, quantity, line, x).value.fillna(LEAST).to_numpy()


def _say(rows: DataFrame, line: str, high: float) -> str:
    residuals = [float(np.mean(_values(rows, KEPT, line, x))) for x in (0.0, high)]
    shares = [band_of(rows, REACHED, line, x).mean for x in (0.0, high)]
    first, last = (f"{residual:.3g}" if residual > LEAST else f"less than {LEAST:g}" for residual in residuals)
    return (
        f"residual {first} to {last}, share of a token's change that reaches others {shares[0]:.3g} to {shares[1]:.3g}"
    )
