"""Compute the outcomes of networks: the learning rate that a rule chooses, accuracy over chance, steps to a threshold, and the largest
depth that trains."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from rankfall import TESTED_ROWS, DataFrame, Series, select_rows

DIVERGED, STUCK, SLOW, TRAINED = "diverged", "stuck", "slow", "trained"
STILL = 0.2  # share of the threshold below which a network is stuck
PLACE = ["task", "architecture", "depth"]


def over_chance(cells: DataFrame) -> Series:
    """Return (accuracy - chance) / (best - chance) on the test set, null if the network diverged."""
    accuracy, chance = cells.test_accuracy.astype(float), cells.chance.astype(float)
    return ((accuracy - chance) / (best_accuracy(cells) - chance)).where(cells.status == "done")


def best_accuracy(cells: DataFrame) -> Series:
    """Return the accuracy that is attainable under the mask of each network. Under a causal mask the best answers to sorting are .6 right,
    and a network that gives them has learned its task. It is 1 where it is not known, and where it is no more than chance: such a network
    never learns."""
    best = cells.attainable.astype(float)
    return best.where(best > cells.chance.astype(float), 1.0)


def chosen_rates(cells: DataFrame, selection: Iterable[int]) -> DataFrame:
    """Return PLACE and `lr`: for each task, architecture and depth the learning rate with the largest mean accuracy over chance on the
    seeds of the selection. A diverged network counts as -1, and ties go to the smallest rate."""
    chosen = cells[cells.seed.isin(list(selection))]
    value = over_chance(chosen).fillna(-1.0)
    mean = chosen.assign(value=value).groupby([*PLACE, "lr"], as_index=False).value.mean()
    best = mean.sort_values([*PLACE, "value", "lr"], ascending=[True, True, True, False, True], kind="stable")
    return best.drop_duplicates(PLACE)[[*PLACE, "lr"]].reset_index(drop=True)


def samples(datasets: DataFrame) -> Mapping[str, int]:
    """Return the samples of an epoch, by task."""
    rows = datasets[datasets.split == "train"]
    return dict(zip(rows.task, rows.samples.astype(int)))


def steps_to(
    curves: DataFrame, cells: DataFrame, samples: Mapping[str, int], threshold: Mapping[str, float], usual: float
) -> Series:
    """Return, by key, the optimiser steps until test accuracy over chance first reaches the task's threshold, null if it never does.
    `samples` are those of an epoch, by task, since a network that diverged or stopped has taken fewer steps than its epochs have."""
    rows = select_rows(curves[curves.epoch > 0], TESTED_ROWS)
    known = cells.assign(best=best_accuracy(cells)).set_index("key")[["chance", "best", "batch"]].astype(float)
    rows = rows[rows.key.isin(known.index)]
    about = known.loc[rows.key]
    bounds = rows.task.map(lambda task: threshold.get(task, usual)).astype(float).to_numpy()
    chance = about.chance.to_numpy()
    reached = (rows.value.astype(float).to_numpy() - chance) / (about.best.to_numpy() - chance) >= bounds
    first = rows[reached].groupby("key").epoch.min().astype(float)
    per_epoch = np.ceil(cells.set_index("key").task.map(samples) / known.batch)  # steps
    steps: Series = (first * per_epoch.reindex(first.index)).reindex(cells.key)
    return steps


def fate(share: float, threshold: float) -> str:
    """Return the fate of a network by its accuracy over chance at the end of the budget."""
    if np.isnan(share):
        return DIVERGED
    return TRAINED if share >= threshold else STUCK if share < STILL * threshold else SLOW


def largest_depths(networks: DataFrame) -> Series:
    """Return, for each row, the largest depth at which at least half of the seeds of its task and architecture train, or 0."""
    trains = networks.groupby(PLACE).trains.mean()
    deep = trains[trains >= 0.5].reset_index().groupby(["task", "architecture"]).depth.max()
    places: Any = list(zip(networks.task, networks.architecture))
    return networks.assign(largest=[float(deep.get(place, 0)) for place in places]).largest
