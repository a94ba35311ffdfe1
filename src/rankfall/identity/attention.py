"""Quantities of one layer's attention, as rows of a table: a number for each head and quantity, over samples.

`left_out` says what the numbers exclude: nothing, or the first token (as if it were not there).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rankfall.identity import nullspace, witness
from rankfall.identity.nullspace import (
    GroupedRows,
    column_space,
    effective_attention,
    group_rows,
    null_dimension,
    null_dimension_simplex,
    outlier_channels,
    rank,
)
from rankfall.identity.views import KINDS, AttentionView
from rankfall.random_streams import stream

TOLERANCE = 1e-10  # relative to the largest singular value: far above rounding of float64
TOLERANCES = (1e-3, 1e-6, TOLERANCE, 1e-13)  # of ranks, relative; all other quantities use TOLERANCE
FIRST_TOKEN = "first token"
PROGRAMS = (
    "distance", "distance_error", "interval_low", "interval_high", "interval_value", "width", "width_largest", "width_error",
)  # fmt: skip
SCORED = 2  # samples of a part for which ranks of scores are computed
LOST = "the values that are weighed are zero, or beyond the range of float64"
# What is left out, quantity, kind, tolerance, and the reason if it has no value.
Key = tuple[str, str, str | None, float | None, str | None]


def head_rows(
    views: Iterable[AttentionView], seed: int, entries: int, masked: int, left_out: Sequence[str] = ("nothing",)
) -> Iterator[dict[str, Any]]:
    """Yield a row for each layer, head and quantity: mean, deviation and range over samples, or the reason if there is no value.

    The views are of any parts of the samples. Outliers are counted, and linear programs solved, in the first part of a layer only. `seed`
    determines for which entries they are solved. `entries`: sampled rows of each head for which they are; `masked`: rows of a head that
    are measured where each row has its own mask.
    """
    layers: dict[int, dict[Key, list[list[Tensor | str]]]] = {}  # for each head, the values of each part
    outliers: dict[int, Tensor] = {}
    for view in views:
        first, by_key = view.layer not in layers, layers.setdefault(view.layer, {})
        if first:
            outliers[view.layer] = outlier_channels(view.inputs).sum().double().view(1)
        for without in left_out:
            rows = group_rows(view, masked=masked, without_first=without == FIRST_TOKEN)
            drawn = seed if first else None
            for name, values, labels in _quantities(view, rows, entries, drawn, without == FIRST_TOKEN):
                key = (without, name, labels.get("kind"), labels.get("tolerance"), labels.get("none"))
                for head, parts in enumerate(by_key.setdefault(key, [[] for _ in range(view.heads)])):
                    parts.append(values[head])
    for layer, by_key in layers.items():
        about = {"layer": layer, "tokens": view.tokens}
        count = {"left_out": "nothing", "quantity": "outlier_channels", "kind": None, "tolerance": None}
        yield about | {"attention_head": None} | count | summary([outliers[layer]])
        for (without, quantity, kind, tolerance, none), heads in by_key.items():
            columns = {"left_out": without, "quantity": quantity, "kind": kind, "tolerance": tolerance}
            for head, parts in enumerate(heads):
                yield about | {"attention_head": head} | columns | summary(parts, none)


def summary(parts: Sequence[Tensor | str], none: str | None = None) -> dict[str, Any]:
    """Return statistics of all finite numbers. A part that is a text is the reason why it has none."""
    numbers = np.concatenate([np.zeros(0), *(part.double().numpy() for part in parts if not isinstance(part, str))])
    numbers = numbers[np.isfinite(numbers)]
    reasons = [part for part in parts if isinstance(part, str)]
    known = len(numbers) > 0
    return {
        "value": float(numbers.mean()) if known else None,
        "deviation": float(numbers.std(ddof=1)) if len(numbers) > 1 else None,
        "least": float(numbers.min()) if known else None,
        "most": float(numbers.max()) if known else None,
        "count": len(numbers),
        "value_reason": None if known else reasons[0] if reasons else none or "not defined for any sample",
    }


# Each item: the quantity, its values of every head (H), and labels.
Quantities = Iterator[tuple[str, Sequence[Tensor | str] | Tensor, dict[str, Any]]]


def _quantities(
    view: AttentionView, rows: GroupedRows, entries: int, seed: int | None, without_first: bool
) -> Quantities:
    lost, none = view.lost().T, {"none": LOST}  # (H, B)

    def mask_lost(values: Tensor) -> Tensor:
        return torch.where(lost, torch.nan, values)

    for tolerance in TOLERANCES:
        at = {"tolerance": tolerance} | none
        yield "rank", mask_lost(_over_groups(rank(rows, tolerance))), at
        yield "null", mask_lost(_over_groups(null_dimension(rows, tolerance))), at
        yield "null_simplex", mask_lost(_over_groups(null_dimension_simplex(rows, tolerance))), at
    projected = effective_attention(rows, TOLERANCE)
    projected = torch.where(lost.T[:, :, None, None, None], torch.nan, projected)
    yield "effective_error", nullspace.identity_error(rows, projected).T, none
    yield "correlation", nullspace.correlation(rows, projected).T, {"none": f"all weights are equal, or {LOST}"}
    yield "effective_sum", _over_rows(projected.sum(-1)), none
    below = (projected < -1e-12).sum((2, 3, 4)) / (rows.sizes.sum() * rows.weights.shape[3])  # more than rounding
    yield "effective_below_zero", mask_lost(below.T), none
    for name, weights in (("share", rows.weights), ("effective_share", projected)):
        by_kind = nullspace.shares_by_kind(weights, view.kinds)  # (B, H, kinds)
        present = torch.nn.functional.one_hot(view.kinds, len(KINDS)).any(1)  # (B, kinds)
        by_kind = torch.where(present[:, None], by_kind, torch.nan)
        for number, kind in enumerate(KINDS):
            yield name, by_kind[..., number].T, {"kind": kind, "none": f"no {kind} in the samples"}
    left_out = ["the first token is left out"] * view.heads
    yield "first_mass", left_out if without_first else nullspace.first_mass(rows).T, {}
    yield "entropy", nullspace.entropy(rows).T, {}
    reason = "weights are negative: no distribution" if bool((rows.weights < 0).any()) else LOST * bool(lost.all())
    if reason:
        for name in ("step_distance", "step_error", *PROGRAMS):
            yield name, [reason] * view.heads, {}
    else:
        moved = witness.find_farthest(rows)
        yield "step_distance", mask_lost(_over_rows(witness.distance(moved, rows.weights))), none
        sums = (moved - rows.weights).sum(-1).abs().amax((2, 3))  # the largest change of the sum of a row, (B, H)
        error = torch.maximum(witness.output_error(rows, moved), sums).T
        yield "step_error", mask_lost(error), none
        if seed is not None:
            yield from _programs(view, rows, entries, seed, lost)
    if not without_first:
        yield from _realisable(view, rows.values)


def _over_groups(values: Tensor) -> Tensor:
    """Average (B, H, G) over rows with their own masks, to (H, B)."""
    return values.double().mean(-1).T


def _over_rows(values: Tensor) -> Tensor:
    """Average (B, H, G, R) over rows, to (H, B)."""
    return values.mean((2, 3)).T


def _programs(view: AttentionView, rows: GroupedRows, entries: int, seed: int, lost: Tensor) -> Quantities:
    """Solve linear programs for a few rows of each head: the farthest distribution, and the ranges of the largest and a random entry."""
    solutions: dict[str, list[list[float]]] = {name: [[] for _ in range(view.heads)] for name in PROGRAMS}
    batch, _, groups, count, _ = rows.weights.shape
    basis = column_space(rows)
    for head in range(view.heads):
        rng = stream(seed, "attention_identity", "entries", view.layer, head)
        for _ in range(entries):
            sample, group, row = int(rng.integers(batch)), int(rng.integers(groups)), int(rng.integers(count))
            if bool(lost[head, sample]):
                continue
            allowed = rows.allowed[group]
            weights, columns = rows.weights[sample, head, group, row, allowed], basis[sample, head, group, allowed]
            for name, value in _solve(weights.numpy(), columns.numpy(), rng).items():
                solutions[name][head].append(value)
    for name, heads in solutions.items():
        numbers = [torch.tensor(values, dtype=torch.float64) for values in heads]
        yield name, numbers, {"none": "no linear program was solved"}


def _solve(row: np.ndarray, basis: np.ndarray, rng: np.random.Generator) -> dict[str, float]:
    basis = basis[:, np.abs(basis).sum(0) > 0]
    entry, largest = int(rng.integers(len(row))), int(row.argmax())
    solved: dict[str, float] = {}

    def error(other: np.ndarray) -> float:
        return float(np.abs(basis.T @ (other - row)).max())

    far = witness.farthest(row, basis)
    if far is not None:
        solved |= {"distance": 0.5 * float(np.abs(far - row).sum()), "distance_error": error(far)}
    ends, top = witness.interval(row, basis, entry), witness.interval(row, basis, largest)
    if ends is not None:
        low, high = (float(end[entry]) for end in ends)
        solved |= {"interval_low": low, "interval_high": high, "interval_value": float(row[entry])}
        solved |= {"width": high - low, "width_error": max(map(error, ends))}
    if top is not None:
        solved["width_largest"] = float(top[1][largest]) - float(top[0][largest])
    return solved


def _realisable(view: AttentionView, values: Tensor) -> Quantities:
    """Yield the ranks of the scores behind A and behind a second distribution, or the reason why they are not informative."""
    block, least = witness.free_block(view.allowed), view.score_width + 1
    reason = ""
    if block is None:
        reason = "no large block of rows and columns without a mask"
    elif min(block[0].stop - block[0].start, block[1].stop) <= least:
        reason = f"any weights come from scores of width {view.score_width} at this length"
    elif bool((view.weights[:, :, block[0], block[1]] < torch.finfo(view.weights.dtype).tiny).any()):
        reason = "weights are zero: no softmax of finite scores"
    if reason or block is None:
        for name in ("score_rank", "witness_score_rank"):
            yield name, [reason] * view.heads, {}
        return
    inside = GroupedRows(
        weights=view.weights[:SCORED, :, None, block[0], block[1]],
        values=values[:SCORED, :, -1:, block[1]],
        allowed=torch.ones(1, block[1].stop, dtype=torch.bool),
        places=torch.arange(block[0].start, block[0].stop)[None],
    )
    moved = witness.find_farthest(inside, extent=0.5)
    yield "score_rank", witness.score_rank(inside.weights[:, :, 0]).T, {}
    unmoved, none = bool((moved == inside.weights).all()), ["there is no second distribution"] * view.heads
    yield "witness_score_rank", none if unmoved else witness.score_rank(moved[:, :, 0]).T, {}
