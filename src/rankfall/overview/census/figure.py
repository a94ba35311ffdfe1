"""The figure of the census: what layers keep by the place of norms, by mixer, and with larger weights, and small beside wide models."""

from typing import Any

import numpy as np
import pandas as pd

from rankfall.annotations import Axes, DataFrame, Read
from rankfall.census.outcomes import FACTORS, MEASURED, NOT_ELIGIBLE, WIDE
from rankfall.report.colours import WHOLE, colours
from rankfall.report.lines import MIDDLE_HALF, collect_labels, on
from rankfall.report.style import WIDTH, Picture, canvas

TABLES = ["census", "census_layers", "census_wide"]
FEWEST = 3  # the fewest types of a line
SHARES = [i / 6 for i in range(7)]  # of the depth
LINES = 6  # the most lines of a panel


STATISTICS = {"50%": "middle", "25%": "low", "75%": "high", "count": "types"}  # of pandas -> columns of the CSV


SHORTER = {" the branch": "", " the addition": " the sum", "mixing without softmax": "no softmax", " and ": ", "}


def census(read: Read) -> Picture:
    """Draw medians over types, one stream each, with bands from quartile to quartile. Only types with skips are drawn."""
    types, layers, wide = read("census"), read("census_layers"), read("census_wide")
    table = streams_by_depth(types, layers)
    factors = {f"kept_layers_{name}": factor for name, factor in FACTORS.items()} | {"kept": 1.0}
    changed = types[types.skips.fillna(False).astype(bool) & types.kept.notna()].rename(columns=factors)
    changed = changed.melt(["type", "norm_place"], list(factors.values()), "share", "kept")
    changed = changed.astype({"share": float, "kept": float})
    figure, ((by_norm, by_mixer), (by_weights, beside_wide)) = canvas(2, 2, WIDTH, 6.4)
    tints = colours(frequent_values(table, "norm_place"))
    numbers = [
        draw_quartiles(by_norm, table, "norm_place", tints),
        draw_quartiles(by_mixer, table, "mixed", colours(frequent_values(table, "mixed"))),
        draw_quartiles(by_weights, changed, "norm_place", tints, marker="o").assign(by="weights of the layers"),
    ]
    by_norm.set(title="by where norms stand", ylabel="residual / residual before the first layer")
    by_mixer.set(title="by mask and mixer", ylabel="")
    for panel, by in ((by_norm, "norm_place"), (by_mixer, "mixed")):
        counts, handles = table.groupby(by).type.nunique(), collect_labels([panel], (by,))
        names = [f"{name} ({counts[name]})" for name in handles]
        for long, brief in SHORTER.items():  # so that labels fit below a panel
            names = [name.replace(long, brief) for name in names]
        below: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.2)}
        panel.legend(list(handles.values()), names, fontsize=5.5, handlelength=1.2, **below)
        panel.set_xlabel("share of the layers")
    by_weights.set(xscale="log", xlabel="weights of the layers times", ylabel="kept by all layers")
    by_weights.set_xticks([0.3, 1, 3, 10], ["0.3", "1", "3", "10"])
    by_weights.minorticks_off()
    by_weights.set_title("with larger weights, colours as at the top left")
    draw_wide(beside_wide, wide, tints)
    return Picture(figure, caption(types, table, wide), pd.concat(numbers))


def streams_by_depth(types: DataFrame, layers: DataFrame) -> DataFrame:
    """Return what the stream of each type in `census` keeps at shares of its depth, interpolated between layers. All points of a line are
    then of the same types, although these have different numbers of layers."""
    chosen = types[(types.outcome == MEASURED) & types.skips.fillna(False).astype(bool) & types.kept.notna()]
    streams = []
    layers = layers[layers["size"] != WIDE]
    for (kind, _), part in layers.merge(chosen[["type", "stream"]], on=["type", "stream"]).groupby(["type", "stream"]):
        lines = part[part.residual.notna()].sort_values("layer")
        layer, residual = lines.layer.to_numpy(float), lines.residual.to_numpy(float)
        first = lines.iloc[0]
        labels = {
            "type": kind,
            "mixed": ", ".join("" if pd.isna(first[name]) else first[name] for name in ("mask", "mixer")),
            "norm_place": "not known" if pd.isna(first.norm_place) else first.norm_place,
        }
        streams.append(
            pd.DataFrame(
                labels | {"share": SHARES, "kept": np.interp(SHARES, layer / layer[-1], residual) / residual[0]}
            )
        )
    return pd.concat(streams) if streams else pd.DataFrame(columns=["type", "mixed", "norm_place", "share", "kept"])


def draw_quartiles(panel: Axes, table: DataFrame, by: str, palette: dict[str, str], **look: Any) -> DataFrame:
    """Draw a line for each name of the palette: the median over types, and a band from quartile to quartile."""
    shown = table[table[by].isin(list(palette))]
    if len(shown):
        look = {"marker": None, "estimator": "median", "errorbar": MIDDLE_HALF} | look
        on(panel, shown, "share", "kept", by, palette, **look)
    panel.set_ylim(0, None)
    numbers = shown.groupby([by, "share"]).kept.describe().rename(columns=STATISTICS)[list(STATISTICS.values())]
    return numbers.reset_index(names=["value", "share"]).assign(by=by)


def frequent_values(table: DataFrame, by: str) -> list[str]:
    """Return the values of a column that enough types have, the most frequent first."""
    counts = table.groupby(by).type.nunique().sort_values(ascending=False)
    return [str(name) for name, count in counts.items() if count >= FEWEST][:LINES]


def draw_wide(panel: Axes, wide: DataFrame, tints: dict[str, Any]) -> None:
    """Draw what small models keep against what models of the released width keep."""
    panel.plot([0, 1.05], [0, 1.05], color=WHOLE, linewidth=0.8, linestyle="--")
    for place, part in wide.groupby("norm_place"):
        panel.plot(part.kept, part.kept_wide, "o", color=tints.get(place, WHOLE), markersize=4)
    panel.set(xlim=(0, 1.05), xlabel="kept by the small model", ylim=(0, 1.05), ylabel="kept at the released width")
    panel.set_title("small models beside the released width")


def caption(types: DataFrame, table: DataFrame, wide: DataFrame) -> str:
    """Write the caption with the numbers of types."""
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
