"""The measure `scorecard`: the headline numbers of every study for each architecture and setting, with their deviation over seeds.

An architecture is a name in the configuration and its components. If the grid sets a component (a normaliser, a position), each variant has
its own row. So does each setting (task, training, depth, sizes, number format; `report/settings.py`): numbers of two settings are in two
rows and are not compared.

Seeds that diverged, failed or are missing are left out of a mean, and their number is given. If a seed that is done has no such number (it
never falls below a tenth), the mean over the others would be biased, so there is no mean but a reason. Orders of contraction and the probe
at random weights belong to components, not to networks. They come from the row with the same components and options, and are in every row
of an architecture.
"""

import re
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from rankfall.annotations import DataFrame
from rankfall.measure.context import Context
from rankfall.report.headlines import Headline, headlines
from rankfall.report.labels import few, many
from rankfall.report.part_numbers import ByParts, by_parts, is_missing, row_of, text_or_none
from rankfall.report.processors import describe_mixture
from rankfall.report.ranking import read_seeds, write_seeds
from rankfall.report.settings import MADE_OF, fill_sizes, number_variants

NEEDS = "tables"
TABLES = ["cells"]  # further tables of headlines are read if the run makes them
FINDS = ["headline"]
ROW = ["architecture", "design", "setting"]
REASONS = 3  # that a row lists
RATE = re.compile(r", lr ([^,]+)")  # in the label of a setting, if the grid varies the learning rate
Value = dict[str, Any]


def scorecard(context: Context) -> list[dict[str, Any]]:
    """Return the rows of the scorecard. A table that the run does not make is None."""
    cells = context.table("cells")
    if cells is None or not len(cells):
        return []
    cells = number_variants(cells).assign(heads=fill_sizes(cells).heads)
    rows = {row_key: about(part) for row_key, part in cells.groupby(ROW)}
    for headline in headlines():
        table = context.table(headline.table)
        if headline.components:
            parts = None if table is None else by_parts(table, headline)
            numbers = {row_key: component_values(headline, parts, row) for row_key, row in rows.items()}
        else:
            numbers = network_values(headline, table, cells)
        for row_key, row in rows.items():
            row |= {f"{headline.name}{suffix}": value for suffix, value in numbers[row_key].items()}
    return [*rows.values(), *choose_rates(rows)]


def choose_rates(rows: Mapping[Any, Value]) -> Iterator[Value]:
    """Yield the rows of a setting in which each architecture has the learning rate of its highest mean test accuracy, if the grid varies
    the rate. `variant` names the rate. The choice is by the accuracy that is shown, which flatters all rows alike."""
    tried: dict[Any, list[tuple[str, Value]]] = {}
    for (architecture, design, setting), row in rows.items():
        if match := RATE.search(setting):
            tried.setdefault((architecture, design, RATE.sub("", setting)), []).append((match[1], row))
    for (_, _, setting), rates in tried.items():
        with_accuracy = [(rate, row) for rate, row in rates if not is_missing(row["accuracy"])]
        if len(rates) > 1 and with_accuracy:
            rate, best = max(with_accuracy, key=lambda item: item[1]["accuracy"])
            variant = ", ".join(filter(None, (best["variant"], f"lr {rate}")))
            yield best | {"setting": f"{setting}, best of {len(rates)} lr by test accuracy", "variant": variant}


def about(part: DataFrame) -> dict[str, Any]:
    """Return the columns that identify a row: networks of one design at one setting."""
    first = part.iloc[0]
    return {
        **{column: first[column] for column in ("architecture", "variant", "setting", "task", "training", "dtype")},
        **{column: int(first[column]) for column in ("depth", "width")},
        "trained": bool(first.trained),
        "heads": None if first.heads == "none" else int(first.heads),
        **{column: text_or_none(first[column]) for column in MADE_OF},
        "cells": len(part),
        "done": int((part.status == "done").sum()),
        "processors": describe_mixture(part) or None,
    }


def network_values(headline: Headline, table: DataFrame | None, cells: DataFrame) -> dict[Any, Value]:
    """Return (architecture, design, setting) -> value, for a headline number of single networks."""
    trained = cells.groupby(ROW).trained.first()
    if table is None:
        return dict.fromkeys(trained.index, leave_empty(headline, f"this run does not make the table {headline.table}"))
    only_trained = headline.first == "only trained"
    networks = cells.loc[cells.key.isin(table.key), ["key", *ROW, "seed", "trained", "status", "reason"]]
    networks = networks[networks.trained | (not only_trained)]
    number = headline.number(headline.rows(table[table.status == "done"] if "status" in table else table))
    measured = dict(list(networks.merge(number, on="key", how="left").groupby(ROW)))
    unasked = "it is asked of trained networks, and these are not"
    return {
        row_key: mean(headline, measured[row_key])
        if row_key in measured
        else leave_empty(headline, unasked if only_trained and not is_trained else "its networks were not measured")
        for row_key, is_trained in trained.items()
    }


def leave_empty(headline: Headline, reason: str, **columns: Any) -> Value:
    """Return the columns of a missing number, with the reason."""
    suffixes = ["_at"] if headline.components else ["_seeds", "_of", "_each"] + ["_chance_each"] * headline.has_chances
    beside = [f"_{name}" for name in headline.beside]
    lost = {} if headline.components else {"_lost": ""}
    return dict.fromkeys(["", "_deviation", *suffixes, *beside]) | lost | {"_reason": reason} | columns


def mean(headline: Headline, cells: DataFrame) -> Value:
    """Return mean, deviation and single numbers of the seeds that are done."""
    done = cells[cells.status == "done"]
    lost = say_lost(cells)
    columns: Value = {"_of": len(cells), "_lost": lost}
    if not len(done):
        return leave_empty(headline, lost, **columns)
    numberless = done[done.number.isna()]
    if len(numberless):
        reasons = [why if isinstance(why, str) and why else "its rows have no such number" for why in numberless.why]
        return leave_empty(headline, count_reasons(reasons, len(done)), **columns)
    shared = headline.counted != "seed"  # seeds of an architecture share its readings
    by_seed = (
        read_seeds(done.readings.iloc[0]) if shared else dict(zip(done.seed.astype(int), done.number.astype(float)))
    )
    columns |= {f"_{name}": number_of(done[name].mean()) for name in headline.beside}
    if headline.has_chances:
        chances = done[done.chance.notna()]
        columns["_chance_each"] = write_seeds(dict(zip(chances.seed.astype(int), chances.chance.astype(float))))
    return leave_empty(headline, "", **columns) | {
        "": float(done.number.mean()),
        "_deviation": statistics.stdev(by_seed.values()) if len(by_seed) > 1 else None,
        "_seeds": len(by_seed),
        "_each": write_seeds(by_seed),
    }


def say_lost(cells: DataFrame) -> str:
    """Say how many seeds are not done, by status and reason."""
    others = cells[cells.status != "done"]
    reasons = [f"{status}: {why}" if why else status for status, why in zip(others.status, others.reason)]
    return count_reasons(reasons, len(cells))


def count_reasons(reasons: list[str], seeds: int) -> str:
    """List reasons, the most frequent first, each with the number of its seeds."""
    counts = Counter(reasons).most_common()
    return "; ".join(few([f"{why} (in {count} of {many(seeds, 'seed')})" for why, count in counts], REASONS))


def number_of(value: Any) -> float | None:
    """Return a value as a float; None if it is missing."""
    return None if is_missing(value) else float(value)


def component_values(headline: Headline, rows: ByParts | None, row: Mapping[str, Any]) -> Value:
    """Return the value from the row with the same components as an architecture."""
    if rows is None:
        return leave_empty(headline, f"this run does not make the table {headline.table}")
    part_row = row_of(headline, rows, row)
    if isinstance(part_row, str):
        return leave_empty(headline, part_row)
    number = headline.number(part_row)
    columns = {"_at": number.at, **{f"_{name}": number_of(value) for name, value in number.beside.items()}}
    if is_missing(number.number):
        return leave_empty(headline, str(part_row.reason) or "it has no number", **columns)
    return leave_empty(headline, "", **columns) | {"": float(number.number), "_deviation": number_of(number.deviation)}
