"""Metrics that are shares: none of them is below zero or above one, whatever an objective says."""

from collections.abc import Mapping

from torch import Tensor

from rankfall.errors import RankfallError
from rankfall.train.history import count_of

ROUNDING = 1e-9  # of a sum of many batches


def is_share(name: str) -> bool:
    """Whether a metric, such as `accuracy` or `test.accuracy`, is a share."""
    return name.rpartition(".")[2].startswith("accuracy")


def check_shares(objective: str, sums: Mapping[str, Tensor], split: str = "") -> None:
    """Raise where the sum of a share is no part of its count; `sums` are of a split, or of a training's history."""
    for name, value in sums.items():
        count = sums[count_of(name, sums)] if is_share(name) else value
        wrong = (value < 0) | (value > count * (1 + ROUNDING))
        if is_share(name) and wrong.any():
            where = f"{split}.{name}" if split else name
            what = f"{where} {float(value[wrong][0]):g} where {float(count[wrong][0]):g} targets are asked"
            raise RankfallError(
                f"objective {objective!r} gives {what}: the sum counts answers that are right, of those that `asked`, or `asked_of`, "
                f"counts (docs/components.md says what each kind is)"
            )
