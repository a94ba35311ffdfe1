"""Which types are measured, and the measurement of each within limits."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from rankfall.census.limits import Escaped, run_within
from rankfall.census.outcomes import FAILS, OVER
from rankfall.census.types import Rows, outcome_row, rows_of_type
from rankfall.errors import RankfallError, suggest

ABOUT_THE_RUN = ("Unproved",)  # errors that say that a key is not complete: they end the run


def chosen(types: Sequence[str], share: str) -> list[str]:
    """The types of a share, in order; an error names a type that the library has not."""
    from transformers import CONFIG_MAPPING

    known = sorted(CONFIG_MAPPING.keys())
    for kind in types:
        if kind not in known:
            hint = suggest(kind, known)
            raise RankfallError(f"census: types: the transformers library has no model type {kind!r}{hint}")
    number, count = parts_of(share)
    wanted = sorted(set(types)) if types else known
    return [kind for kind in wanted if place(kind) % count == number - 1]


def parts_of(share: str) -> tuple[int, int]:
    """2/4 -> 2, 4"""
    found = re.fullmatch(r"(\d{1,4})/(\d{1,4})", share)
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise RankfallError(f"census: share: {share!r} is no share: write 1/4, 2/4, 3/4 or 4/4 for quarters")
    return int(found[1]), int(found[2])


def place(kind: str) -> int:
    """A number of the type that stays what it is when the library has more types."""
    return int(hashlib.sha256(kind.encode()).hexdigest()[:8], 16)


def row_maker(
    layers: int, tokens: int, seed: int, seconds: int, gigabytes: float, size: str = "small"
) -> Callable[[str], Rows]:
    """A function from a type to its rows; what every type needs is imported by the first call, before the fork."""
    ready: list[str] = []

    def make_rows(kind: str) -> Rows:
        if not ready:
            ready.append(prepare(tokens))
        found = measure_in_process(kind, layers, tokens, seed, seconds, gigabytes, size)
        return [row | {"transformers": ready[0]} for row in found]

    return make_rows


def prepare(tokens: int) -> str:
    """Imports by measuring one type here; the version of the library."""
    import transformers

    rows_of_type("bert", 1, tokens, 0)
    return str(transformers.__version__)


def measure_in_process(
    kind: str, layers: int, tokens: int, seed: int, seconds: int, gigabytes: float, size: str = "small"
) -> Rows:
    """The rows of a type, whatever becomes of its process."""
    try:
        spent = run_within(
            rows_of_type,
            kind,
            layers,
            tokens,
            seed,
            size,
            gigabytes,
            seconds=seconds,
            gigabytes=gigabytes,
            escape=ABOUT_THE_RUN,
        )
    except Escaped as error:
        raise RankfallError(f"census: {kind}: {error}") from error
    found = spent.value
    if found is None:
        from rankfall.census.types import origin

        found = [
            {"type": kind, "size": size, "stream": "", **origin(kind)}
            | outcome_row(OVER if spent.limit else FAILS, spent.reason)
        ]
    cost = {"seconds": spent.seconds, "megabytes": spent.megabytes}
    return [{name: finite(value) for name, value in row.items()} | cost for row in found]


def finite(value: Any) -> Any:
    """A number that is none, or infinite, is null; the columns beside it say more."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
