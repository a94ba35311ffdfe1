"""Read the evidence of `value_residuals` for the rules that share it."""

import math
from typing import Any

from rankfall import Decision, Extension, Read, Threshold, band, evidence_rows, is_on, judge
from studies.claims.parts import ALL_OR_EARLIER as MASKS
from studies.claims.rules import by_parts, slopes, true_of_all
from studies.claims.value_residuals.names import AFTER, FLOOR, PLAIN, RESIDUAL

WITH = "with first values"
KEPT = Threshold(-3.0, "above", RESIDUAL, f"{WITH}, and not without, after the last layer")
EASED = Threshold(0.0, "above", "decades of the residual more than without", f"{WITH}, after the last layer")
STILL = Threshold(-0.3, "above", "decades gained over the second half of the layers", f"{WITH}, and not without")


def decide_shared(read: Read, name: str, theirs: tuple[str, ...]) -> Decision:
    """Decide whether first values keep tokens apart under the masks of the source, `theirs`."""
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
    sentence = f"Relative residual after {last:.0f} layers, {'; '.join(texts[sees] for sees in theirs)}."
    extends = [Extension(texts[sees], true_of_all(answers[sees])) for sees in MASKS if sees not in theirs]
    parts = [answer for sees in theirs for answer in answers[sees]]
    return judge(sentence, number, "more seeds", extends, **by_parts(parts))


def logs(rows: Any, line: str, layer: float) -> Any:
    """Return the logarithms of the residual, seed by seed. Values below rounding are set to it."""
    return evidence_rows(rows, RESIDUAL, line, layer).value.fillna(math.log10(FLOOR)).to_numpy()


def eases(rows: Any, sees: str, last: float) -> bool | None:
    """Return whether the residual is larger with first values than without after the last layer."""
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
    values = evidence_rows(rows, RESIDUAL, line, last).value
    return f"below {FLOOR:g}" if values.isna().all() else f"10^{values.mean():.2f}"
