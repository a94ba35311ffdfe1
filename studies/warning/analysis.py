"""Count how often the change that `rankfall check` measures as helpful helps, does nothing or harms."""

from typing import Any

import matplotlib.pyplot as plt
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
    early = outcomes(table, thresholds, "before_early", "after_early")[~rows.flagged & ~real]
    arms = (("harmless", flagged), ("control", healthy), ("control_early", early), ("harmless_real", rows[real]))
    for key, some in arms:
        if len(some):
            found = wilson(int((some.says == "harms").sum()), len(some))
            few = thresholds["few"]
            answers[key] = ("holds" if found.high < few else "contradicted" if found.low > few else "undecided"), found
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
    """Draw the score with the advice over that without, and over that with one change for all."""
    rows = outcomes(table, thresholds)
    rows["quartered"] = table.groupby(NETWORK).quartered.mean().to_numpy()
    unlike = rows[rows.flagged & ~rows.placement.isin(TYPES) & (rows.change != QUARTER)]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.4), sharey=True)
    for panel, networks, column in ((left, rows, "before"), (right, unlike, "quartered")):
        for _, row in networks.iterrows():
            colour = dict(zip(SAYS, (BLUE, GREY, RED, "black")))[row.says]
            face = colour if row.flagged else "none"
            marker = "s" if row.placement in TYPES else "o"
            panel.plot(row[column], row.after, marker, color=colour, markerfacecolor=face, markersize=5, alpha=0.8)
        panel.plot([-0.5, 1], [-0.5, 1], color=GREY, lw=0.8)
        panel.axhline(LEARNS, color=GREY, lw=0.5, ls=":")
        panel.axvline(LEARNS, color=GREY, lw=0.5, ls=":")
    for says, colour in zip(SAYS, (BLUE, GREY, RED, "black")):
        left.plot([], [], "o", color=colour, label=f"advice {says}" if says != "undecided" else says)
    left.plot([], [], "o", color="black", markerfacecolor="none", label="not flagged")
    left.plot([], [], "s", color="black", label="model of the library")
    left.legend(fontsize=7, loc="lower right")
    left.set(xlabel="score as it is (chance is 0, perfect is 1)", ylabel="score with the advice")
    right.set(xlabel="score with matrices times 0.25")
    figure.tight_layout()
    return figure
