"""Count how often the change that `rankfall check` measures as helpful helps, does nothing or harms."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from rankfall import BLUE, GREY, RED, DataFrame, band
from studies.common import Answer, above, by_band, wilson
from studies.warning.experiment import QUARTER, TYPES

NETWORK = ["placement", "skip", "depth", "gain"]
LEARNS = 0.5  # of the score: half way from chance to 1
SAYS = ("helps", "does nothing", "harms", "undecided")


def summarise(table: DataFrame) -> DataFrame:
    names = ["flagged", "flags", "change", "residual", "residual_changed", "seed", "before", "after", "quartered"]
    return table[[*NETWORK, "steps", *names, "before_early", "after_early"]]


def outcomes(table: DataFrame, thresholds: dict[str, float], before: str = "before", after: str = "after") -> DataFrame:
    """Return one row for each network: the paired effect with its interval over seeds, and what the advice did."""
    rows, least = [], thresholds["matters"]
    for key, one in table.assign(before=table[before], after=table[after]).groupby(NETWORK):
        found = band(one.after - one.before)
        inside = -least <= found.low and found.high <= least
        says = "helps" if found.low > least else "harms" if found.high < -least else SAYS[1] if inside else SAYS[3]
        about = {"flagged": bool(one.flagged.iloc[0]), "change": one.change.iloc[0], "before": one.before.mean()}
        about["after"] = one.after.mean()
        rows.append(
            dict(zip(NETWORK, key)) | about | {"effect": found.mean, "low": found.low, "high": found.high, "says": says}
        )
    return pd.DataFrame(rows)


def decide(table: DataFrame, thresholds: dict[str, float]) -> dict[str, Answer]:
    rows = outcomes(table, thresholds)
    real = rows.placement.isin(TYPES)
    flagged, healthy = rows[rows.flagged & ~real], rows[~rows.flagged & ~real]
    answers: dict[str, Answer] = {}
    if len(flagged):
        answers["pays"] = by_band(wilson(int((flagged.says == "helps").sum()), len(flagged)), thresholds["most"])
    if (rows.flagged & real).any():
        of_library = rows[rows.flagged & real]
        answers["pays_real"] = by_band(
            wilson(int((of_library.says == "helps").sum()), len(of_library)), thresholds["most"]
        )
    arms = [("harmless", flagged), ("control", healthy), ("harmless_real", rows[real])]
    if "before_early" in table:  # the committed table of the tenth has neither these nor the arm of one change
        arms.append(
            ("control_early", outcomes(table, thresholds, "before_early", "after_early")[~rows.flagged & ~real])
        )
    for key, some in arms:
        if len(some):
            found = wilson(int((some.says == "harms").sum()), len(some))
            few = thresholds["few"]
            answers[key] = ("holds" if found.high < few else "contradicted" if found.low > few else "undecided"), found
    if "quartered" in table:
        unlike = outcomes(table, thresholds, "quartered")[rows.flagged & ~real & (rows.change != QUARTER)]
        answers["beats_one_change"] = above(unlike.effect, thresholds["matters"])
    return answers


def explained(rows: DataFrame, by: list[str]) -> float:
    """Return the share of the variance of the effect that flags of these columns explain, corrected for their number (epsilon squared)."""
    within = rows.effect - rows.groupby(by).effect.transform("mean")
    free = len(rows) - rows.groupby(by).ngroups
    return float(1 - (within @ within / free) / rows.effect.var())


def details(table: DataFrame, thresholds: dict[str, float]) -> dict[str, DataFrame]:
    """Return what the advice did to each network, and how often, by whether a network is flagged and learns as it is (score of .5), how
    many of them learn with the change, and the null model: how far placement x depth explain the effect in flagged networks."""
    rows = outcomes(table, thresholds)
    small = rows[~rows.placement.isin(TYPES)]
    counts = pd.crosstab([small.flagged, (small.before >= LEARNS).rename("learns")], small.says).reset_index()
    learn = small.assign(learns=small.before >= LEARNS, learns_changed=small.after >= LEARNS)
    learn = learn.groupby(["flagged", "learns"]).learns_changed.agg(["sum", "size"]).reset_index()
    flagged = small[small.flagged].assign(learns=small.before >= LEARNS)
    null = pd.DataFrame(
        {"flags": one, "explained": explained(flagged, one)} for one in (["placement", "depth"], ["learns"])
    )
    return {"outcomes": rows, "counts": counts, "learn": learn, "null": null}


def draw(table: DataFrame, thresholds: dict[str, float]) -> Any:
    rows = outcomes(table, thresholds).sort_values(["flagged", "effect"])
    figure, axis = plt.subplots(figsize=(9, 0.2 * len(rows) + 1.2))
    colours = dict(zip(SAYS, (BLUE, GREY, RED, "black")))
    names = []
    for y, (_, one) in enumerate(rows.iterrows()):
        axis.hlines(y, one.low, one.high, color=colours[one.says])
        face = colours[one.says] if one.flagged else "white"
        axis.plot(one.effect, y, "o", color=colours[one.says], markerfacecolor=face, markersize=5)
        names.append(f"{one.placement}, skip {one.skip:g}, {one.depth} layers, gain {one.gain:g}: {one.change}")
    axis.axvspan(-thresholds["matters"], thresholds["matters"], color=GREY, alpha=0.2, lw=0)
    for says, colour in colours.items():
        axis.plot([], [], "o", color=colour, label=says)
    axis.plot([], [], "o", color="black", markerfacecolor="white", label="not flagged")
    axis.legend(fontsize=8, loc="lower right")
    axis.set(
        yticks=np.arange(len(rows)),
        ylim=(-1, len(rows)),
        xlabel="change of the score (chance is 0, perfect is 1), 5 seeds",
    )
    axis.set_yticklabels(names, fontsize=7)
    figure.tight_layout()
    return figure
