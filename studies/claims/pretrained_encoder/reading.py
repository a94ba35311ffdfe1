"""Read the evidence of `pretrained_encoder` for the rules that share it."""

from collections.abc import Callable
from functools import wraps

from rankfall import DataFrame, Decision, Read, judge


def where_measured(decide: Callable[[DataFrame], Decision]) -> Callable[[Read], Decision]:
    """Wrap a rule so that it is undecided if the model is not on this machine. The experiment then leaves one row with the reason."""

    @wraps(decide)
    def rule(read: Read) -> Decision:
        rows = read("evidence")
        if not rows.value.notna().any():
            return judge("Nothing was measured: there is no pretrained model.", None, rows.value_reason.iloc[0])
        return decide(rows)

    return rule
