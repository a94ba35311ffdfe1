"""For tests of models: `assert_keeps_rank(model, inputs, at_least=...)`."""

from __future__ import annotations

from typing import Any


def assert_keeps_rank(model: Any, inputs: Any, *, at_least: float = 0.1, blocks: Any = None) -> None:
    """An AssertionError, with the table of `rankfall check` in its message, if the residual of a last layer is below `at_least`.

    It fails, too, where only a part of the model is measured, or where samples touch each other: then no residual says that all is well.
    `inputs`: a tensor, a tuple of arguments, or a dict of keyword arguments; `blocks`: the layers, where they have to be named.
    """
    from rankfall.check.report import check
    from rankfall.check.table import text
    from rankfall.errors import RankfallError

    if not isinstance(at_least, int | float) or not 0 <= at_least <= 1:
        raise RankfallError(f"at_least is {at_least!r}: it must be a number from 0 to 1")
    reports = check(model, inputs, blocks=blocks)
    low = [one for one in reports if (last := one.layers[-1].residual) is None or last < at_least]
    findings = list(dict.fromkeys(finding for one in reports for finding in one.findings))
    if findings:
        raise AssertionError("; ".join(findings) + "\n\n" + text(reports, type(model).__name__))
    if low:
        shown = text(low, type(model).__name__)
        raise AssertionError(f"the residual of the last layer is below {at_least:g}\n\n{shown}")
