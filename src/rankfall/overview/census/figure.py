"""The census in three panels: what layers keep, by where norms stand and what mixes tokens; and what each choice of a design goes with."""

import numpy as np
import pandas as pd

from rankfall.annotations import Axes, DataFrame, Read
from rankfall.census.outcomes import MEASURED, NOT_ELIGIBLE
from rankfall.report.colours import WHOLE, colours
from rankfall.report.style import WIDTH, Picture, canvas

TABLES = ["census", "census_layers", "census_choices"]
FEWEST = 3  # types of a line
SHARES = [i / 6 for i in range(7)]  # of the depth
LINES = 6


def census(read: Read) -> Picture:
    """Medians over types of one stream each, bands from quartile to quartile; types with skips alone."""
    types, layers, choices = read("census"), read("census_layers"), read("census_choices")
    table = of_main_streams(types, layers)
    figure, ((left, middle, right),) = canvas(1, 3, WIDTH, 3.4)
    numbers = [
        draw_lines(left, table, "norm_place", "by where norms stand"),
        draw_lines(middle, table, "mixed", "by mask and mixer"),
    ]
    left.set_ylabel("residual / residual before the first layer")
    effects(right, choices)
    return Picture(figure, caption(types, table, choices), pd.concat(numbers))


def of_main_streams(types: DataFrame, layers: DataFrame) -> DataFrame:
    """What the stream that `census` has of each type keeps at shares of its depth, between layers on a line: so every point of a line is of
    the same types, however many layers they have."""
    chosen = types[(types.outcome == MEASURED) & types.skips.fillna(False).astype(bool) & types.kept.notna()]
    found = []
    for (kind, _), part in layers.merge(chosen[["type", "stream"]], on=["type", "stream"]).groupby(["type", "stream"]):
        known = part[part.residual.notna()].sort_values("layer")
        place, value = known.layer.to_numpy(float), known.residual.to_numpy(float)
        one = known.iloc[0]
        about = {
            "type": kind,
            "mixed": ", ".join("" if pd.isna(one[name]) else one[name] for name in ("mask", "mixer")),
            "norm_place": "not known" if pd.isna(one.norm_place) else one.norm_place,
        }
        found.append(
            pd.DataFrame(about | {"share": SHARES, "kept": np.interp(SHARES, place / place[-1], value) / value[0]})
        )
    return pd.concat(found) if found else pd.DataFrame(columns=["type", "mixed", "norm_place", "share", "kept"])


def draw_lines(panel: Axes, table: DataFrame, by: str, title: str) -> DataFrame:
    """A line for each of the most frequent values."""
    each = table.groupby(by).type.nunique().sort_values(ascending=False)
    names = [name for name, count in each.items() if count >= FEWEST][:LINES]
    found = []
    for name, colour in colours(names).items():
        part = table[table[by] == name].groupby("share").kept
        low, high = part.quantile(0.25), part.quantile(0.75)
        line = pd.DataFrame({"middle": part.median(), "low": low, "high": high, "types": part.count()})
        line = line.reset_index()
        panel.plot(line.share, line.middle, color=colour, label=f"{short(name)} ({each[name]})")
        panel.fill_between(line.share, line.low, line.high, color=colour, alpha=0.15, linewidth=0)
        found.append(line.assign(by=by, value=name))
    panel.set_title(title)
    panel.set_xlabel("share of the layers")
    panel.set_ylim(0, None)
    panel.legend(fontsize=5.5, handlelength=1.2, loc="upper center", bbox_to_anchor=(0.5, -0.2))
    return pd.concat(found) if found else pd.DataFrame()


def short(name: str) -> str:
    """A label that fits below a panel."""
    bare = (
        name.replace(" the branch", "")
        .replace(" the addition", " the sum")
        .replace("mixing without softmax", "no softmax")
    )
    return bare.replace(" and ", ", ")


def effects(panel: Axes, choices: DataFrame) -> None:
    """Factors with intervals, the strongest at the top."""
    known = choices[choices.effect.notna()]
    known = known.loc[known.effect.sub(1).abs().sort_values().index]
    places = range(len(known))
    panel.axvline(1, color=WHOLE, linewidth=0.8, linestyle="--")
    panel.errorbar(
        known.effect, places, xerr=[known.effect - known.low, known.high - known.effect], fmt="o", color="#333333", markersize=3,
        linewidth=1,
    )  # fmt: skip
    panel.set_yticks(list(places), list(known.choice), fontsize=6)
    panel.set_xscale("log")
    panel.set_xticks([0.6, 1.0, 1.4], ["0.6", "1", "1.4"], minor=False)
    panel.minorticks_off()
    panel.set_title("factor of a choice")
    panel.set_xlabel("factor, 95% interval")


def caption(types: DataFrame, table: DataFrame, choices: DataFrame) -> str:
    eligible = types[~types.outcome.isin(NOT_ELIGIBLE)]
    count = int((eligible.outcome == MEASURED).sum())
    version = ", ".join(sorted(types.transformers.unique()))
    share = choices.share.max()
    explained = (
        ""
        if share != share
        else f" Out of sample the regression explains {share:.0%} of the variance of its logarithm."
    )
    return (
        f"What layers keep of the residual of the state that enters, at initialisation, of {table.type.nunique()} model types with skips "
        f"of transformers {version} ({count} of {len(eligible)} eligible types are measured): medians over types, bands from quartile to "
        f"quartile. Right: a regression over {int(choices.types.max())} types in {int(choices.families.max())} folders of the library, "
        f"intervals by drawing whole folders.{explained}"
    )
