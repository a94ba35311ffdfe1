"""The law of rank collapse without a rounding floor: residuals by layer, and the looseness of the bounds."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from rankfall.annotations import Axes, DataFrame, Read
from rankfall.errors import RankfallError
from rankfall.rank.law.shown import clear
from rankfall.rank.models import VARIANTS
from rankfall.report.captions import describe_ends, describe_lines, describe_missing, describe_readings
from rankfall.report.colours import colours
from rankfall.report.labels import join, many, name_measurements
from rankfall.report.lines import below, collect_labels, label_ends, legend_below, lines, on, summary
from rankfall.report.looks import label
from rankfall.report.selection import choose, deepest
from rankfall.report.style import WIDTH, Picture, canvas, power, space_ticks, tower

BOUNDS = {"lemma_slack": "published lemma with γ", "proven_slack": "bound with a proof, no γ"}
PLAIN = "plain float64"
MARKED = 40  # layers: with more, markers would hide the line
NUMBERS = ("log10_residual", "exponent", "lemma_slack", "proven_slack", "log10_float64", "log10_float32")


def law(
    read: Read,
    *,
    task: str | None = None,
    training: str | None = None,
    architectures: list[str] = [],
    where: dict[str, Any] = {},
) -> Picture:
    """Draw the deepest networks of one task and training, by default those with the most cells.

    `architectures`: by default all. `where`: only these cells, by any column.
    """
    requested = {"task": task, "training": training, "architecture": architectures}
    table, whole, (task, training) = choose(read("law"), "law", where, **requested)
    table = deepest(table, "law", ["architecture"])
    names = [str(name) for name in architectures or sorted(table.architecture.unique())]
    resolved = table[clear(table, ["architecture"])]
    # The first layer at which a sample of a seed is rounding.
    noise = table.drop(resolved.index).groupby("architecture").layer.min()
    methods = table.groupby("architecture").method.agg(
        lambda methods: "centred" if (methods == "centred").all() else PLAIN
    )
    bounded = bool(table[list(BOUNDS)].notna().any(axis=None))
    figure, axes = canvas(1, 1 + bounded, WIDTH, 3.5, width_ratios=[1.25, 1][: 1 + bounded])
    panel = axes[0][0]
    draw_decay(panel, mean_by_seed(resolved, "log10_residual"), names, methods, set(noise.index))
    centred = table[table.architecture.map(methods) == "centred"]
    draw_references(panel, centred, "architecture")
    if bounded:
        draw_slack(axes[0][1], table, names)
    below(figure, collect_labels(axes[0], ("architecture", "method", "bound", "centred", *names)))
    means = resolved.astype({"log10_residual": float}).groupby(["architecture", "layer"]).log10_residual.mean()
    ends = means.reset_index().groupby("architecture").tail(1).itertuples(index=False, name=None)
    label_ends(panel, {name: (layer, log_twice(log10)) for name, layer, log10 in ends}, colours(names))
    by_seed = mean_by_seed(table.assign(noise=table.architecture.map(noise)), *NUMBERS)
    points = summary(by_seed, ["architecture", "layer"], *NUMBERS)
    about = table.groupby("architecture").agg(method=("method", "first"), why=("method_reason", "max")).reset_index()
    any_plain = bool((methods == PLAIN).any())
    dashed = " Dashed: a plain float64 pass; it ends with a cross, where it is rounding noise." * any_plain
    bounds = "Right: decades by which two bounds on one layer exceed the residual. " * bounded
    caption = (
        f"{'Left: residual' if bounded else 'Residual'} by layer of networks of training {label(training)} on {label(task)}. "
        f"On this axis, log10(-log10 residual), doubly exponential collapse is a straight line. "
        f"Lines are {describe_lines(table, ['architecture'], 'log10_residual')}. Grey: where "
        f"float32 and float64 end.{dashed} {bounds}"
        f"{describe_finding(resolved, names)}{describe_missing(table, ['architecture'], 'log10_residual', whole)}"
    )
    return Picture(figure, caption, points.merge(about, on="architecture"))


def mean_by_seed(table: DataFrame, *columns: str) -> DataFrame:
    """Return a row per seed and layer: mean over samples."""
    numbers = table.astype(dict.fromkeys(columns, float))
    return numbers.groupby(["architecture", "layer", "seed"])[list(columns)].mean().reset_index()


def log_twice(log10: Any) -> Any:
    """Return log10(-log10 residual)."""
    return np.log10(-np.minimum(log10, -1e-3))


def draw_decay(panel: Axes, by_seed: DataFrame, names: list[str], methods: Any, cut: set[str]) -> None:
    by_seed = by_seed.assign(height=log_twice(by_seed.log10_residual), method=by_seed.architecture.map(methods)).dropna(
        subset="height"
    )
    look: dict[str, Any] = {"style": "method", "dashes": {"centred": "", PLAIN: (3, 1.5)}}
    look["marker"] = None if by_seed.layer.nunique() > MARKED else "o"
    on(panel, by_seed, "layer", "height", "architecture", colours(names), (float(log_twice(0.0)), None), **look)
    for name in cut & set(by_seed.architecture):
        line = by_seed[by_seed.architecture == name].groupby("layer").height.mean()
        panel.plot(line.index[-1:], line.iloc[-1:], "X", color=colours(names)[name], markersize=8)
    panel.set(xlabel="layer", ylabel="residual |res(X)| / |X|")
    label_towers([panel], float(by_seed.log10_residual.min()))


def label_towers(panels: Sequence[Axes], lowest: float) -> None:
    """Label heights of `log_twice`, down to the lowest log10 of a residual: 0.9, 10^-1, 10^-10, 10^-100, with the large at the top."""
    marks = space_ticks(0, int(np.log10(max(10.0, -lowest if lowest == lowest else 0.0))))
    high = [0.9, 0.99] if len(marks) > marks[-1] else []  # where there is room between the marks
    for panel in panels:
        panel.set_yticks(
            [*log_twice(np.log10(high)), *marks], [str(value) for value in high] + [tower(mark) for mark in marks]
        )
        if not panel.yaxis_inverted():
            panel.invert_yaxis()


def draw_references(panel: Axes, rows: DataFrame, by: str) -> None:
    """Draw below the lowest line a slope of log10(3) per layer, which is cubing on these axes, and the ends of plain passes."""
    rows = rows.dropna(subset="log10_residual").astype({"log10_residual": float}).sort_values("log10_residual")
    line = rows[rows[by].isin(rows[by][:1])].groupby("layer").log10_residual.mean()
    if len(line) >= 4 and line.iloc[-1] < -1:
        layers = line.index[2:].to_numpy(dtype=float)
        heights = log_twice(line.iloc[-1]) + 0.45 - (layers[-1] - layers) * np.log10(3)
        panel.plot(layers, heights, ":", color="black", linewidth=0.9, label="slope of a cubic law")
    for name in ("float64", "float32"):
        end = np.log10(-np.log10(16 * np.finfo(name).eps))
        panel.axhline(end, color="#bbbbbb", linewidth=0.8, label="ends of float32 and float64")


def draw_slack(panel: Axes, table: DataFrame, names: list[str]) -> None:
    """Draw the excess of each bound over the residual. A bound is null wherever its condition fails."""
    panel.set(xlabel="layer", ylabel="decades above the residual")
    long = table.melt(["architecture", "layer", "seed"], list(BOUNDS), "bound", "slack").dropna(subset="slack")
    long = long.assign(slack=long.slack.astype(float), bound=long.bound.map(BOUNDS))
    by_seed = long.groupby(["architecture", "bound", "layer", "seed"]).slack.mean().reset_index()
    shown = [name for name in names if name in set(by_seed.architecture)]
    dashes = dict(zip(BOUNDS.values(), ("", (3, 1.5))))
    palette = {name: colour for name, colour in colours(names).items() if name in shown}
    look: dict[str, Any] = {"style": "bound", "style_order": list(dashes), "dashes": dashes}
    on(panel, by_seed, "layer", "slack", "architecture", palette, **look)
    panel.set_ylim(bottom=min(0.0, panel.get_ylim()[0]))  # keeps a violated bound visible


def describe_finding(resolved: DataFrame, names: list[str]) -> str:
    """Write which architectures have the local exponent 3 at their last layer, and the smallest and largest residual there."""
    last = resolved[resolved.layer == resolved.groupby("architecture").layer.transform("max")]
    exponents = last.groupby("architecture").exponent.mean().dropna().astype(float).round(2)
    cubed = [label(name) for name in names if name in exponents and abs(exponents[name] - 3) < 0.05]
    examples = f" ({', '.join(cubed)})" if cubed else ""
    return (
        f"The last layer cubes the residual in {len(cubed)} of {many(len(exponents), 'architecture')}{examples}. "
        f"After it, the residual is {describe_ends(last, 'log10_residual', power)}."
    )


def model_figure(read: Read, *, variants: list[str] = []) -> Picture:
    """Draw medians over seeds and samples, with the values of an ordinary float64 pass, which stay at their floor.

    `variants`: which ones, in order; by default all that were measured.
    """
    table = read("model_law")
    variants = variants or [name for name in VARIANTS if name in set(table.variant)]
    table = table[table.variant.isin(variants)]
    if table.empty:
        raise RankfallError(
            "figure model_law: nothing was measured: no model of the run has these variants and layers that the law can be computed for"
        )
    table = table.assign(panel=name_measurements(table), direct=np.log10(table.direct.clip(lower=1e-300)))
    at = ["panel", "variant", "layer"]
    points = table.groupby(at)[["log10_residual", "direct", "exponent"]].median().reset_index()
    long = points.melt(at, ["log10_residual", "direct"], "pass", "log10")
    long = long[long.log10.notna() & ((long["pass"] != "direct") | (long.log10 > -299))]
    long = long.assign(height=log_twice(long.log10.astype(float)))
    names = sorted(points.panel.unique())
    grid = lines(
        long, "layer", "height", "variant", colours(variants), col="panel", col_order=names, col_wrap=3,
        height=2.3, errorbar=None, shared=(False, True),
        style="pass", style_order=["log10_residual", "direct"], dashes={"log10_residual": "", "direct": (1, 1.5)},
    )  # fmt: skip
    for name, panel in grid.axes_dict.items():
        draw_references(panel, points[points.panel == name], "variant")
    label_towers(list(grid.axes.flat), float(long.log10.min()))
    for panel in grid.axes[:, 0] if grid.axes.ndim > 1 else grid.axes[:1]:
        panel.set_ylabel("residual |res(X)| / |X|")
    legend_below(grid, 4, skip=("variant", "pass", "log10_residual", "direct"))
    known = table[table.log10_residual.notna()]
    by = ["panel", "variant"]
    caption = (
        f"Residuals of real models: medians over {describe_readings(known, 'panel')}. "
        "Solid: without a rounding floor. Dotted: an ordinary float64 pass, which ends at its floor (grey). On this axis, "
        "log10(-log10 residual), a cubic law has the black slope. "
    )
    caption += describe_models(points) + describe_missing(table, by, "log10_residual")
    return Picture(grid.figure, caption, points)


def describe_models(points: DataFrame) -> str:
    """Write the residual of each variant at the last layer of its model, and the local exponent of the lowest once it is below 0.01."""
    sentences = []
    for name, part in points.groupby("panel"):
        last = part[part.layer == part.layer.max()].dropna(subset="log10_residual").sort_values("log10_residual")
        ends = join(f"{power(float(row.log10_residual))} ({label(row.variant)})" for row in last.itertuples())
        lowest = part[(part.variant == last.variant.iloc[0]) & (part.log10_residual < -2)]
        pace = lowest.exponent.astype(float).median()
        exponent = f"; each layer takes the lowest to its power {pace:.2f}" if pace == pace else ""
        sentences.append(f"{name}, layer {last.layer.iloc[0]}: {ends}{exponent}")
    return f"{'. '.join(sentences)}."
