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
from collections.abc import Iterator, Mapping
from typing import Any

from rankfall.annotations import DataFrame
from rankfall.measure.context import Context
from rankfall.report.headlines import Headline, headlines
from rankfall.report.labels import many
from rankfall.report.part_numbers import ByParts, by_parts, is_missing, row_of, text
from rankfall.report.processors import describe_mixture
from rankfall.report.ranking import read_seeds, write_seeds
from rankfall.report.settings import fill_sizes
from rankfall.report.variants import MADE_OF, number_variants

NEEDS = "tables"
TABLES = ["cells"]  # further tables of headlines are read if the run makes them
FINDS = ["headline"]
ROW = ["architecture", "design", "setting"]
DECIMAL = re.compile(r"-?\d+\.\d+")  # in a reason: the part that differs between seeds
RATE = re.compile(r", lr ([^,]+)")  # in the label of a setting, if the grid varies the learning rate
Value = dict[str, Any]


def scorecard(context: Context) -> list[dict[str, Any]]:
    """Return the rows of the scorecard. A table that the run does not make is None."""
    cells = context.table("cells")
    if cells is None or not len(cells):
        return []
    cells = number_variants(cells).assign(heads=fill_sizes(cells).heads)
    rows = {place: about(part) for place, part in cells.groupby(ROW)}
    for headline in headlines():
        table = context.table(headline.table)
        if headline.components:
            parts = None if table is None else by_parts(table, headline)
            numbers = {place: of_parts(headline, parts, row) for place, row in rows.items()}
        else:
            numbers = of_networks(headline, table, cells)
        for place, row in rows.items():
            row |= {f"{headline.name}{suffix}": value for suffix, value in numbers[place].items()}
    return [*rows.values(), *choose_rates(rows)]


def choose_rates(rows: Mapping[Any, Value]) -> Iterator[Value]:
    """Yield the rows of a setting in which each architecture has the learning rate of its highest mean test accuracy, if the grid varies
    the rate. `variant` names the rate. The choice is by the accuracy that is shown, which flatters all rows alike."""
    tried: dict[Any, list[tuple[str, Value]]] = {}
    for (architecture, design, setting), row in rows.items():
        if found := RATE.search(setting):
            tried.setdefault((architecture, design, RATE.sub("", setting)), []).append((found[1], row))
    for (_, _, setting), alike in tried.items():
        known = [(rate, row) for rate, row in alike if not is_missing(row["accuracy"])]
        if len(alike) > 1 and known:
            rate, best = max(known, key=lambda one: one[1]["accuracy"])
            variant = ", ".join(filter(None, (best["variant"], f"lr {rate}")))
            yield best | {"setting": f"{setting}, best of {len(alike)} lr by test accuracy", "variant": variant}


def about(part: DataFrame) -> dict[str, Any]:
    """Return the columns that identify a row: networks of one design at one setting."""
    one = part.iloc[0]
    setting = {name: one[name] for name in ("setting", "task", "training", "dtype")}
    return {
        "architecture": one.architecture,
        "variant": one.variant,
        **setting,
        "trained": bool(one.trained),
        "depth": int(one.depth),
        "width": int(one.width),
        "heads": None if one.heads == "none" else int(one.heads),
        **{column: text(one[column]) for column in MADE_OF},
        "cells": len(part),
        "done": int((part.status == "done").sum()),
        "processors": describe_mixture(part) or None,
    }


def of_networks(headline: Headline, table: DataFrame | None, cells: DataFrame) -> dict[Any, Value]:
    """Return (architecture, design, setting) -> value, for a headline number of single networks."""
    trained = cells.groupby(ROW).trained.first()
    if table is None:
        return dict.fromkeys(trained.index, leave_empty(headline, f"this run does not make the table {headline.table}"))
    only_trained = headline.first == "only trained"
    asked = cells.loc[cells.key.isin(table.key), ["key", *ROW, "seed", "trained", "status", "reason"]]
    asked = asked[asked.trained | (not only_trained)]
    number = headline.number(headline.rows(table[table.status == "done"] if "status" in table else table))
    found = dict(list(asked.merge(number, on="key", how="left").groupby(ROW)))
    unasked = "it is asked of trained networks, and these are not"
    return {
        place: mean(headline, found[place])
        if place in found
        else leave_empty(headline, unasked if only_trained and not is_trained else "its networks were not measured")
        for place, is_trained in trained.items()
    }


def leave_empty(headline: Headline, reason: str, **known: Any) -> Value:
    """Return the columns of a missing number, with the reason."""
    of = ["_at"] if headline.components else ["_seeds", "_of", "_each"] + ["_chance_each"] * headline.has_chances
    beside = [f"_{name}" for name in headline.beside]
    lost = {} if headline.components else {"_lost": ""}
    return dict.fromkeys(["", "_deviation", *of, *beside]) | lost | {"_reason": reason} | known


def mean(headline: Headline, found: DataFrame) -> Value:
    """Return mean, deviation and single numbers of the seeds that are done."""
    done = found[found.status == "done"]
    gone = say_lost(found)
    known: Value = {"_of": len(found), "_lost": gone}
    if not len(done):
        return leave_empty(headline, gone, **known)
    without = done[done.number.isna()]
    if len(without):
        reasons = [why if isinstance(why, str) and why else "its rows have no such number" for why in without.why]
        return leave_empty(headline, say_reasons(reasons, len(done)), **known)
    shared = headline.counted != "seed"  # seeds of an architecture share its readings
    each = read_seeds(done.readings.iloc[0]) if shared else dict(zip(done.seed.astype(int), done.number.astype(float)))
    known |= {f"_{name}": number_of(done[name].mean()) for name in headline.beside}
    if headline.has_chances:
        chances = done[done.chance.notna()]
        known["_chance_each"] = write_seeds(dict(zip(chances.seed.astype(int), chances.chance.astype(float))))
    return leave_empty(headline, "", **known) | {
        "": float(done.number.mean()),
        "_deviation": statistics.stdev(each.values()) if len(each) > 1 else None,
        "_seeds": len(each),
        "_each": write_seeds(each),
    }


def say_lost(found: DataFrame) -> str:
    """Say how many seeds are not done, by status, and the first reason, with the number of seeds that have it if not all do."""
    others = found[found.status != "done"]
    if not len(others):
        return ""
    counts = ", ".join(f"{count} {status}" for status, count in others.status.value_counts().sort_index().items())
    why = next((str(reason) for reason in others.reason if reason), "")
    alike = int((others.reason == why).sum())
    why = f": {why}" + f" ({alike} of them)" * (alike < len(others)) if why else ""
    return f"{counts} of {many(len(found), 'seed')}{why}"


def say_reasons(reasons: list[str], seeds: int) -> str:
    """Say why seeds have no number: the first reason with its number of seeds, and the other reason, or how many seeds have others. Reasons
    that differ only in numbers count as one, `the network itself is 0.03 to 0.05 below chance`."""
    if seeds == 1:
        return reasons[0]
    kinds: dict[str, list[str]] = {}
    for why in reasons:
        kinds.setdefault(DECIMAL.sub("#", why), []).append(why)
    (first, count), *others = ((span_numbers(alike), len(alike)) for alike in kinds.values())
    left = len(reasons) - count
    more = f"; in {left} more " + (others[0][0] if len(others) == 1 else "for other reasons") if others else ""
    return f"{first} (in {count} of {seeds} seeds{more})"


def span_numbers(alike: list[str]) -> str:
    """Merge texts that differ only in their decimal numbers. Each number becomes the number or the range from least to largest."""
    spans = iter([(min(found, key=float), max(found, key=float)) for found in zip(*map(DECIMAL.findall, alike))])
    return DECIMAL.sub(lambda _: " to ".join(dict.fromkeys(next(spans))), alike[0])


def number_of(value: Any) -> float | None:
    return None if is_missing(value) else float(value)


def of_parts(headline: Headline, rows: ByParts | None, row: Mapping[str, Any]) -> Value:
    """Return the value from the row with the same components as an architecture."""
    if rows is None:
        return leave_empty(headline, f"this run does not make the table {headline.table}")
    one = row_of(headline, rows, row)
    if isinstance(one, str):
        return leave_empty(headline, one)
    found = headline.number(one)
    known = {"_at": found.at, **{f"_{name}": number_of(value) for name, value in found.beside.items()}}
    if is_missing(found.number):
        return leave_empty(headline, str(one.reason) or "it has no number", **known)
    return leave_empty(headline, "", **known) | {"": float(found.number), "_deviation": number_of(found.deviation)}
