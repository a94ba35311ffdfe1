"""Join each network before training with its outcome, in the table `prediction`: does what is lost at birth matter (docs/prediction.md)?

Networks are trained at several learning rates. For each task, architecture and depth, one rate is chosen by the accuracy on the seeds in
`selection`, which are not counted afterwards. The same network before training has the same task, architecture, depth and seed, and a
training without epochs: its initial values are the same, bit for bit.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from rankfall import Context, DataFrame, RankfallError, number_variants, random_stream
from studies.prediction.prediction.outcomes import (
    PLACE,
    chosen_rates,
    fate,
    largest_depths,
    over_chance,
    samples,
    steps_to,
)
from studies.prediction.prediction.predictors import predictor_values, sizes
from studies.prediction.prediction.rows import BIRTH, PARTS, column

TABLE = "prediction"
NEEDS = "tables"
TABLES = [
    "cells",
    "training",
    "datasets",
    "parameters",
    "states",
    "gradients",
    "attention_weights",
    "attribution",
    "orders",
    "probe",
]
FINDS = ["headline"]
LIMITS = {"selection": (0, None), "threshold": (0, 1), "folds": (2, None)}


def prediction(
    context: Context,
    *,
    selection: list[int] = [3],
    threshold: float = 0.5,
    thresholds: dict[str, Any] = {},
    folds: int = 10,
) -> list[dict[str, Any]]:
    """Return a row for each counted network. `selection` are the seeds that only choose learning rates. `threshold` is a bound on accuracy
    over chance, and `thresholds` has the bounds of single tasks. `folds` is the number of parts into which architectures are divided."""
    rows = networks(context.table, selection, threshold, thresholds, folds).to_dict("records")
    return [{str(name): None if value != value else value for name, value in row.items()} for row in rows]


def networks(
    table: Callable[[str], DataFrame | None],
    selection: list[int],
    threshold: float,
    thresholds: dict[str, Any],
    folds: int,
) -> DataFrame:
    """Return the counted networks, with outcomes and predictors. The table is empty without cells."""
    cells = table("cells")
    if cells is None or not len(cells):
        return pd.DataFrame()
    cells = name_variants(cells[cells.status.isin(["done", "diverged"])])
    trained, born = cells[cells.epochs > 0], cells[cells.epochs == 0]
    check_run(trained, born, selection)
    rates = chosen_rates(trained, selection)
    counted = trained[~trained.seed.isin(selection)].merge(rates, on=[*PLACE, "lr"])
    steps = steps_to(table("training"), counted, samples(table("datasets")), thresholds, threshold)
    least_share = counted.task.map(lambda task: thresholds.get(task, threshold)).astype(float)
    share = over_chance(counted)
    outcomes = counted[[*PLACE, "seed", "lr"]].assign(
        accuracy=counted.test_accuracy.astype(float).where(share.notna()),
        over_chance=share,
        threshold=least_share,
        trains=(share >= least_share).fillna(False).astype(bool),
        fate=[fate(value, least) for value, least in zip(share.astype(float), least_share)],
        steps=steps.to_numpy(),
    )
    outcomes = outcomes.assign(largest_depth=largest_depths(outcomes), fold=deal_folds(outcomes.architecture, folds))
    before = born[[*PLACE, "seed", "key", *PARTS]].drop_duplicates([*PLACE, "seed"])
    before = before.assign(parameters=before.key.map(sizes(table("parameters"))))
    for name, (source, _) in BIRTH.items():
        values = predictor_values(name, table(source), born)
        before[column(name)] = before.key.map(values[~values.index.duplicated()])
    return outcomes.merge(before.drop(columns="key"), on=[*PLACE, "seed"], how="left").sort_values([*PLACE, "seed"])


def name_variants(cells: DataFrame) -> DataFrame:
    """Return cells with the variant in the architecture's name, if the grid sets parts of the architecture."""
    cells = number_variants(cells)
    variant = cells.variant.where(cells.variant == "", " (" + cells.variant + ")")
    return cells.assign(architecture=cells.architecture + variant)


def check_run(trained: DataFrame, born: DataFrame, selection: list[int]) -> None:
    """Raise if the run lacks what the study needs."""
    if not len(trained) or not len(born):
        lacking = "trained" if not len(trained) else "left at birth (a training with `epochs: 0`)"
        raise RankfallError(f"prediction: no network of this run is {lacking}; name both trainings in the grid")
    alive = trained[trained.status == "done"]
    unjudged = alive[~np.isfinite(over_chance(alive))]
    if len(unjudged):
        raise RankfallError(
            f"prediction: networks on {unjudged.task.iloc[0]} have no accuracy over chance, by which they would be judged; name tasks that "
            "have one in the grid"
        )
    if not trained.seed.isin(selection).any() or trained.seed.isin(selection).all():
        raise RankfallError(
            f"prediction: selection: {selection} must be some, and not all, of the seeds of trained networks; there are "
            f"{', '.join(map(str, sorted(trained.seed.unique())))}"
        )
    twice = trained.duplicated([*PLACE, "seed", "lr"])
    if twice.any():
        repeated = trained[twice].iloc[0]
        raise RankfallError(
            f"prediction: {repeated.architecture} on {repeated.task} at depth {repeated.depth}, seed {repeated.seed} is trained twice at "
            f"lr {repeated.lr:g}; "
            "networks that count may differ in their learning rate alone"
        )


def deal_folds(names: Any, folds: int) -> np.ndarray:
    """Return the fold of each network's architecture: all networks of an architecture are in one fold. Folds are dealt in a random order
    that depends only on the number of names."""
    architectures = sorted(set(names))
    order = random_stream(0, "prediction", "folds").permutation(len(architectures))
    place = {
        architectures[architecture]: rank % min(folds, len(architectures)) for rank, architecture in enumerate(order)
    }
    return np.array([place[name] for name in names])
