"""The choice of types to measure, and the measurement of each within limits."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from rankfall.census.limits import run_within
from rankfall.census.outcomes import FAILS, OVER
from rankfall.census.types import Rows, origin, outcome_row, rows_of_type
from rankfall.errors import RankfallError, suggest


def chosen(types: Sequence[str], share: str) -> list[str]:
    """Return the types of a share such as 2/4, in order. Raise an error for a type that the library lacks."""
    from transformers import CONFIG_MAPPING

    known = sorted(CONFIG_MAPPING.keys())
    for kind in types:
        if kind not in known:
            hint = suggest(kind, known)
            raise RankfallError(f"census: types: the transformers library has no model type {kind!r}{hint}")
    match = re.fullmatch(r"(\d{1,4})/(\d{1,4})", share)
    number, count = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= number <= count:
        raise RankfallError(f"census: share: {share!r} is no share: write 1/4, 2/4, 3/4 or 4/4 for quarters")
    wanted = sorted(set(types)) if types else known
    # The number of a type does not change when the library gains types.
    numbers = {kind: int(hashlib.sha256(kind.encode()).hexdigest()[:8], 16) for kind in wanted}
    return [kind for kind in wanted if numbers[kind] % count == number - 1]


def row_maker(
    layers: int, tokens: int, seed: int, seconds: int, gigabytes: float, size: str = "small"
) -> Callable[[str], Rows]:
    """Return a function from a type to its rows. The first call measures one type, to import what every type needs before the fork."""

    @cache
    def version() -> str:
        import transformers

        rows_of_type("bert", 1, tokens, 0)
        return str(transformers.__version__)

    def make_rows(kind: str) -> Rows:
        about = {"transformers": version()}
        return [row | about for row in measure_in_process(kind, layers, tokens, seed, seconds, gigabytes, size)]

    return make_rows


def measure_in_process(
    kind: str, layers: int, tokens: int, seed: int, seconds: int, gigabytes: float, size: str = "small"
) -> Rows:
    """Return the rows of a type, even if its process fails."""
    arguments = (kind, layers, tokens, seed, size, gigabytes)
    spent = run_within(rows_of_type, *arguments, seconds=seconds, gigabytes=gigabytes)
    failed = outcome_row(OVER if spent.limit else FAILS, spent.reason)
    rows = spent.value or [{"type": kind, "size": size, "stream": "", **origin(kind)} | failed]
    cost = {"seconds": spent.seconds, "megabytes": spent.megabytes}
    return [{name: finite(value) for name, value in row.items()} | cost for row in rows]


def finite(value: Any) -> Any:
    """Replace NaN and infinite numbers by None. Other columns give the reason."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
