"""One row per type, computed from its rows by layer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import mean, median
from typing import Any

from rankfall.census.outcomes import CHANGES, SMALL, WIDE

Row = Mapping[str, Any]
LAST = (
    "residual_san", "residual_san_mlp", "residual_san_skip", "residual_san_bare_mlp", "effective_rank", "floor",
)  # fmt: skip
FIRST = ("gradient", "influence_first", "influence_middle", "influence_last")


def fold(rows: Iterable[Row], shared: Sequence[str]) -> list[dict[str, Any]]:
    """Return one row per type, for its small or released model.

    `shared`: columns that are equal in all rows of a stream. Of several streams the one with the most layers counts, and of these the
    first by name.
    """
    by_type: dict[str, list[Row]] = {}
    for row in rows:
        if row["size"] != WIDE:
            by_type.setdefault(row["type"], []).append(row)
    return [type_row(layers_of_main_stream(group), shared) for _, group in sorted(by_type.items())]


def layers_of_main_stream(rows: Iterable[Row]) -> list[Row]:
    """Return the rows of layers 0 .. L of the stream with the most layers, of one type and size."""
    streams: dict[str, list[Row]] = {}
    for row in rows:
        streams.setdefault(row["stream"], []).append(row)
    chosen = min(streams.items(), key=lambda item: (-len(item[1]), item[0]))[1]
    return sorted(chosen, key=lambda row: -1 if row["layer"] is None else row["layer"])


def compare_widths(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Return the shares that a small and a wide model of each type keep, if both are measured with the same number of layers."""
    by_type: dict[str, dict[str, list[Row]]] = {}
    for row in rows:
        if row["layer"] is not None:
            by_type.setdefault(row["type"], {}).setdefault(row["size"], []).append(row)
    pairs = []
    for _, sizes in sorted(by_type.items()):
        if not {SMALL, WIDE} <= set(sizes):
            continue
        small = layers_of_main_stream(sizes[SMALL])
        wide = layers_of_main_stream([row for row in sizes[WIDE] if row["stream"] == small[0]["stream"]] or sizes[WIDE])
        values = [ratio(layers[-1]["residual"], layers[0]["residual"]) for layers in (small, wide)]
        entered = [ratio(layers[0]["norm_of_state"], layers[0]["width"] ** 0.5) for layers in (small, wide)]
        if len(small) == len(wide) and None not in (*values, *entered):
            about = {name: small[0][name] for name in ("type", "stream", "norm_place", "layers", "width")}
            pairs.append(
                about
                | {"released_width": wide[0]["width"], "kept": values[0], "kept_wide": values[1]}
                | {"entered": entered[0], "entered_wide": entered[1]}
            )
    return pairs


def type_row(layers: Sequence[Row], shared: Sequence[str]) -> dict[str, Any]:
    """Return the row of a type from its rows by layer."""
    about = {name: layers[0][name] for name in shared}
    if layers[0]["layer"] is None:
        return about
    reasons = "; ".join(filter(None, [layers[0]["reasons"], *reasons_of(layers)]))
    return about | numbers_of_layers(layers) | {"reasons": reasons}


def reasons_of(layers: Sequence[Row]) -> list[str]:
    """Return why the first or last state has no residual, or why no share is kept."""
    reasons = [
        f"residual_{name}: the state is not finite, or zero"
        for name, row in (("first", layers[0]), ("last", layers[-1]))
        if row["residual"] is None
    ]
    return reasons + ["kept: tokens are equal in the first state"] * (layers[0]["residual"] == 0)


def numbers_of_layers(layers: Sequence[Row]) -> dict[str, Any]:
    """Return the numbers of a type from its rows of layers 0 .. L."""
    first, last = layers[0], layers[-1]

    def reduce_known(statistic: Callable[[list[float]], float], name: str) -> float | None:
        values = [row[name] for row in layers if row[name] is not None]
        return statistic(values) if values else None

    numbers = {
        "residual_first": first["residual"],
        "residual_last": last["residual"],
        "kept": ratio(last["residual"], first["residual"]),
        "norm_growth": ratio(last["norm_of_state"], first["norm_of_state"]),
        "order": reduce_known(median, "order"),
        "order_least": reduce_known(min, "order"),
        "order_most": reduce_known(max, "order"),
        "mixing_ratio": reduce_known(median, "mixing_ratio"),
        "tokenwise_ratio": reduce_known(median, "tokenwise_ratio"),
        "entropy": reduce_known(mean, "entropy"),
        "query_gradient": reduce_known(lambda values: values[0], "query_gradient"),
    }
    numbers |= {f"kept_{name}": ratio(last[f"residual_{name}"], first[f"residual_{name}"]) for name in CHANGES}
    return numbers | {name: last[name] for name in LAST} | {name: first[name] for name in FIRST}


def ratio(value: float | None, base: float | None) -> float | None:
    return None if value is None or not base else value / base
