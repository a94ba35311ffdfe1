"""The figure of the census: what layers keep by the place of norms, by mixer, and with larger weights, and small beside wide models."""

from typing import Any

import numpy as np
import pandas as pd

from rankfall.annotations import Axes, DataFrame, Read
from rankfall.census.outcomes import FACTORS, MEASURED, NOT_ELIGIBLE, WIDE
from rankfall.report.colours import WHOLE, colours
from rankfall.report.style import WIDTH, Picture, canvas

TABLES = ["census", "census_layers", "census_wide"]
FEWEST = 3  # the fewest types of a line
SHARES = [i / 6 for i in range(7)]  # of the depth
LINES = 6


def census(read: Read) -> Picture:
    """Draw medians over types, one stream each, with bands from quartile to quartile. Only types with skips are drawn."""
    types, layers, wide = read("census"), read("census_layers"), read("census_wide")
    table = of_main_streams(types, layers)
    figure, ((one, two), (three, four)) = canvas(2, 2, WIDTH, 6.4)
    tints = colours(frequent_values(table, "norm_place"))
    numbers = [
        draw_lines(one, table, "norm_place", "by where norms stand"),
        draw_lines(two, table, "mixed", "by mask and mixer"),
        draw_changes(three, types, tints),
    ]
    one.set_ylabel("residual / residual before the first layer")
    draw_wide(four, wide, tints)
    return Picture(figure, caption(types, table, wide), pd.concat(numbers))


def of_main_streams(types: DataFrame, layers: DataFrame) -> DataFrame:
    """Return what the stream of each type in `census` keeps at shares of its depth, interpolated between layers. So every point of a line
    is of the same types, however many layers they have."""
    chosen = types[(types.outcome == MEASURED) & types.skips.fillna(False).astype(bool) & types.kept.notna()]
    found = []
    layers = layers[layers["size"] != WIDE]
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
    """Draw a line for each of the most frequent values."""
    names = frequent_values(table, by)
    each = table.groupby(by).type.nunique()
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


def frequent_values(table: DataFrame, by: str) -> list[str]:
    each = table.groupby(by).type.nunique().sort_values(ascending=False)
    return [str(name) for name, count in each.items() if count >= FEWEST][:LINES]


def draw_changes(panel: Axes, types: DataFrame, tints: dict[str, Any]) -> DataFrame:
    """Draw what the layers keep if their weight matrices are multiplied, one line for each place of the norm."""
    known = types[types.skips.fillna(False).astype(bool) & types.kept.notna()]
    names = {factor: f"kept_layers_{name}" for name, factor in FACTORS.items()} | {1.0: "kept"}
    found = []
    for place, colour in tints.items():
        part = known[known.norm_place == place]
        line = pd.DataFrame(
            [
                {"share": factor, "middle": part[name].median(), "low": part[name].quantile(0.25), "high": part[name].quantile(0.75),
                 "types": part[name].count()}
                for factor, name in sorted(names.items())
            ]
        )  # fmt: skip
        panel.plot(line.share, line.middle, color=colour, marker="o", markersize=3)
        panel.fill_between(line.share, line.low, line.high, color=colour, alpha=0.12, linewidth=0)
        found.append(line.assign(by="weights of the layers", value=place))
    panel.set_xscale("log")
    panel.set_xticks([0.3, 1, 3, 10], ["0.3", "1", "3", "10"])
    panel.minorticks_off()
    panel.set_ylim(0, None)
    panel.set_title("with larger weights, colours as at the top left")
    panel.set_xlabel("weights of the layers times")
    panel.set_ylabel("kept by all layers")
    return pd.concat(found) if found else pd.DataFrame()


def draw_wide(panel: Axes, wide: DataFrame, tints: dict[str, Any]) -> None:
    """Draw what small models keep against what models of the released width keep."""
    panel.plot([0, 1.05], [0, 1.05], color=WHOLE, linewidth=0.8, linestyle="--")
    for place, part in wide.groupby("norm_place"):
        panel.plot(part.kept, part.kept_wide, "o", color=tints.get(place, WHOLE), markersize=4)
    panel.set_xlim(0, 1.05)
    panel.set_ylim(0, 1.05)
    panel.set_title("small models beside the released width")
    panel.set_xlabel("kept by the small model")
    panel.set_ylabel("kept at the released width")


def short(name: str) -> str:
    """Shorten a label so that it fits below a panel."""
    bare = (
        name.replace(" the branch", "")
        .replace(" the addition", " the sum")
        .replace("mixing without softmax", "no softmax")
    )
    return bare.replace(" and ", ", ")


def caption(types: DataFrame, table: DataFrame, wide: DataFrame) -> str:
    eligible = types[~types.outcome.isin(NOT_ELIGIBLE)]
    count = int((eligible.outcome == MEASURED).sum())
    version = ", ".join(sorted(types.transformers.unique()))
    beside = (
        f" Bottom right: {len(wide)} types, each a dot (black: another place of the norm), small and at the released width; the median "
        "difference is "
        f"{wide.off.median():.2f}."
        if len(wide)
        else ""
    )
    return (
        f"What layers keep of the residual of the state that enters, at initialisation, of {table.type.nunique()} model types with skips "
        f"of transformers {version} ({count} of {len(eligible)} eligible types are measured), small and with weights as large as the "
        "released ones: medians over types, bands from quartile to quartile. Bottom left: the same models, the weight matrices of whose "
        f"layers are multiplied.{beside}"
    )
