"""The page of a watched run, as one HTML text: events on the loss, each quantity over steps and layers, and the last log as a table."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from rankfall import __version__
from rankfall.check.bands import BOTH, CAUSAL, ReferenceBand, bands_of
from rankfall.report.style import WIDTH, WITHOUT_TIME, apply_style, canvas
from rankfall.watch.alarms import Event, events_of_run
from rankfall.watch.columns import ATTENTION, COLUMNS, CURVES, GRADIENT, UNITS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame, Series

TITLES = {
    "residual": "Residual",
    "norm": "Length of a token's vector",
    "effective_rank": "Effective rank",
    "participation_ratio": "Participation ratio",
    "entropy": "Entropy of attention",
    "largest_share": "Largest attention weight",
    "first_share": "Attention on the first token",
    "largest_logit": "Largest attention logit",
    "dead_units": "Dead units",
    "gradient_queries": "Gradient of the queries",
    "gradient_keys": "Gradient of the keys",
}
SAYS = {
    "residual": "What is left of the tokens' vectors after the vector that all share is taken away: near 1 for unrelated tokens, 0 "
    "for equal ones. "
    "A curve that falls to 0 is rank collapse; below the rounding of the number format (hollow points) nothing can be told.",
    "effective_rank": "How many directions the vectors of a sample really use, at most the smaller of tokens and width.",
    "first_share": "Weight on the first token in the rows of the others: near 1, attention is a sink and mixes nothing.",
    "gradient_queries": "Where tokens are equal, this vanishes: attention can no longer learn whom to look at.",
}  # fmt: skip
MAPPED = ("residual", "norm", "entropy")  # drawn as a map of layers and steps, too
EVENT_COLOUR = "#b3261e"
BANDED = ("residual",)  # the quantities whose bands ship with the package
BAND_COLOURS = ("#9ec9ea", "#f2c48d")  # at birth, after training
DIRECTIONS = {"causal": CAUSAL, "bidirectional": BOTH}  # column `mask` -> the band table's word
DECADES = 30.0  # ratio of largest to smallest value above which an axis is logarithmic
MOST_EVENTS = 20  # alarms in the list and in a picture; more are only counted
MOST = 13  # curves of a chart, for a readable legend; if there are more layers, an even selection is drawn


def page_of(table: DataFrame, name: str) -> str:
    """Return the page of the newest run in a table."""
    run = int(table.run.max())
    rows = table[table.run == run]
    events = events_of_run(rows.astype(object).where(rows.notna(), None).to_dict("records"))
    sections = "\n".join(quantity_section(rows, column, events) for column in CURVES)
    shown = [(column, TITLES[column]) for column in CURVES if rows[column].notna().any()]
    nav = "".join(f'<a href="#{column}">{title}</a>' for column, title in shown)
    style = files("rankfall.report.page").joinpath("page.css").read_text("utf-8")
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>Rankfall: {html.escape(name)}</title>
<style>
{style}
.chart svg {{ width: 100%; height: auto; background: #fff; border-radius: .4rem; }}
</style>
</head>
<body>
<a class="skip" href="#main">To the content</a>
<header><p class="brand">Rankfall</p><nav aria-label="Sections">{nav}<a href="#last">Last log</a></nav></header>
<main id="main">
<h1>{html.escape(name)}</h1>
<p class="lead">{html.escape(describe_run(table, rows))}</p>
<section id="events"><h2>What happened</h2>{list_events(events)}{draw_events(rows, events)}</section>
{sections}
<section id="last"><h2>The last log</h2>{last_log(rows)}</section>
</main>
<footer><p>Made by Rankfall {__version__} from {html.escape(name)}; this page opens from disk and loads nothing.</p></footer>
</body>
</html>
"""


def list_events(events: Sequence[Event]) -> str:
    lines = "".join(f"<li>Step {event.step}: {html.escape(event.text)}.</li>" for event in events[:MOST_EVENTS])
    more = f"<li>and {len(events) - MOST_EVENTS} more</li>" if len(events) > MOST_EVENTS else ""
    return f"<ul>{lines}{more}</ul>" if events else "<p>No alarm was raised.</p>"


def draw_events(rows: DataFrame, events: Sequence[Event]) -> str:
    """Draw the loss over steps with the events, or nothing without a loss."""
    first = rows[rows.layer == rows.layer.min()]
    if first.loss.isna().all():
        return ""
    with apply_style():
        figure, ((axes,),) = canvas(1, 1, WIDTH * 1.35, 2.0)
        axes.plot(first.step, first.loss, ".-", color="#222222")
        axes.set(xlabel="step", ylabel="loss", xlim=(0, max(rows.step.max(), 1)))
        mark_events(axes, events)
        return f'<figure class="chart">{as_svg(figure, "events", "The loss over steps, with events")}</figure>'


def mark_events(axes: Axes, events: Sequence[Event], label: bool = True) -> None:
    """Mark steps of events by lines, with the kind and the layer at the upper end."""
    for event in events[:MOST_EVENTS]:
        axes.axvline(event.step, color=EVENT_COLOUR, linewidth=0.8, linestyle=":", zorder=0)
        text = event.kind if event.layer is None else f"{event.kind} {event.layer}"
        if label:
            axes.annotate(text, (event.step, 1.0), xycoords=("data", "axes fraction"), rotation=90, va="top", ha="right",
                          fontsize=6, color=EVENT_COLOUR)  # fmt: skip


def describe_run(table: DataFrame, rows: DataFrame) -> str:
    """Return a sentence on the logs, layers, attention and number format of a run."""
    steps, runs = rows.step.unique(), table.run.nunique()
    last = rows[rows.step == steps[-1]]
    names = [name for name in last.block if name]
    kinds = f"{len(names)} layers, {names[0]} to {names[-1]}" if len(names) > 1 else names[0] if names else "no block"
    mask = ", ".join(sorted(set(last["mask"])))
    several = f" The file has {runs} runs; this is the last." if runs > 1 else ""
    return (
        f"{len(steps)} logs, steps {steps[0]} to {steps[-1]}: {kinds}; attention: {mask}; "
        f"states in {last['dtype'].iloc[-1]}.{several}"
    )


def quantity_section(rows: DataFrame, column: str, events: Sequence[Event]) -> str:
    """Return the section of a quantity: heading, description and picture, or the reason if there is no number."""
    meaning = next(entry.meaning for entry in COLUMNS if entry.name == column)
    says = SAYS.get(column, html.escape(f"{meaning[0].upper()}{meaning[1:]}."))
    head = f'<section id="{column}"><h2>{TITLES[column]}</h2><p>{says}</p>'
    if not rows[column].notna().any():
        kind = "attention" if column in ATTENTION else "gradient" if column in GRADIENT else "state"
        why = next((reason for reason in rows[rows.layer > 0][f"{kind}_reason"] if reason), "it was not measured")
        why = "no ReLU, GELU or SiLU was seen in a block" if column in UNITS else why
        return f'{head}<p class="note">No number: {html.escape(why)}.</p></section>'
    bands, source = bands_of_run(rows) if column in BANDED else ([], "")
    note = f'<p class="note">{html.escape(source)}</p>' if source else ""
    mapped = f'<figure class="chart">{heat_map(rows, column, events)}</figure>' if column in MAPPED else ""
    return f'{head}<figure class="chart">{draw_curves(rows, column, bands, events)}</figure>{note}{mapped}</section>'


def bands_of_run(rows: DataFrame) -> tuple[list[ReferenceBand], str]:
    """Return the bands at birth and after training, and a caption that names their networks or says why there are no bands.

    A run does not show the position of norms, so a band covers pre-norm and post-norm networks alike.
    """
    depth = int(rows.layer.max())
    masks = set(rows["mask"])
    direction = DIRECTIONS.get(masks.pop()) if len(masks) == 1 else None
    if direction is None:
        return [], "No band: the direction of attention is not known, by which networks are compared."
    bands = bands_of([f"{direction}, attention, {norm}-norm" for norm in ("pre", "post")], depth)
    if not bands:
        return [], f"No band: the table has no networks of about {depth} layers."
    networks = "; ".join(f"{band.when}, of {band.of}" for band in bands)
    return bands, f"Shaded: residuals of networks with attention in the same directions, {networks}."


def draw_curves(rows: DataFrame, column: str, bands: Sequence[ReferenceBand], events: Sequence[Event]) -> str:
    """Draw a quantity as SVG: over steps by layer, and over layers for the first, middle and last log, with bands behind the curves."""
    with apply_style():
        figure, ((over_steps, over_layers),) = canvas(1, 2, WIDTH * 1.35, 2.9)
        draw_steps(over_steps, rows, column)
        draw_layers(over_layers, rows, column)
        mark_events(over_steps, events, label=False)
        draw_bands(over_steps, over_layers, rows, bands)
        if spread_widely(rows[column]):
            over_steps.set_yscale("log")
            over_layers.set_yscale("log")
        return as_svg(figure, column, f"{TITLES[column]}: over steps by layer, and over layers by step")


def heat_map(rows: DataFrame, column: str, events: Sequence[Event]) -> str:
    """Draw a quantity as a map of layers and logged steps, with the layers of events."""
    with apply_style():
        figure, ((axes,),) = canvas(1, 1, WIDTH * 1.35, 2.4)
        draw_map(axes, rows, column)
        mark_events(axes, events)
        for event in events[:MOST_EVENTS]:
            if event.layer is not None:
                axes.plot(event.step, event.layer, "x", color=EVENT_COLOUR, markersize=5)
        return as_svg(figure, f"{column}-map", f"{TITLES[column]}: a map of layers and steps")


def draw_map(axes: Axes, rows: DataFrame, column: str) -> None:
    """Draw a cell for each layer and log, as wide as the steps to the next log."""
    from matplotlib.colors import LogNorm

    cells = rows.pivot_table(index="layer", columns="step", values=column, aggfunc="last")  # (layers, logs)
    steps = list(cells.columns)
    edges = [*steps, steps[-1] + max(steps[-1] - steps[-2] if len(steps) > 1 else 1, 1)]
    lines = [cells.index.min() - 0.5, *(layer + 0.5 for layer in cells.index)]
    norm = LogNorm() if spread_widely(rows[column]) else None
    drawn = axes.pcolormesh(edges, lines, cells.to_numpy(float), norm=norm, cmap="viridis", rasterized=True)
    assert axes.figure is not None
    axes.figure.colorbar(drawn, ax=axes, label=TITLES[column])
    axes.set(xlabel="step", ylabel="layer")
    axes.locator_params(axis="y", integer=True)


def as_svg(figure: Figure, name: str, label: str) -> str:
    """Return a figure as an SVG element whose ids differ from those of the page's other pictures."""
    drawn = io.StringIO()
    figure.savefig(drawn, format="svg", metadata=WITHOUT_TIME["svg"])
    text = drawn.getvalue()
    named = re.sub(r'(\bid="|url\(#|href="#)', lambda match: f"{match[1]}{name}-", text[text.index("<svg") :])
    return named.replace("<svg ", f'<svg role="img" aria-label="{html.escape(label, quote=True)}" ', 1)


def spread_widely(values: Series) -> bool:
    """Return whether values are positive and spread so widely that a logarithmic axis shows more."""
    return bool(values.min() > 0 and values.max() > DECADES * values.min())


def draw_steps(axes: Axes, rows: DataFrame, column: str) -> None:
    from matplotlib import colormaps

    layers = pick_evenly(sorted(rows.loc[rows[column].notna(), "layer"].unique()), MOST)
    colours = colormaps["viridis"].resampled(max(len(layers), 2))
    for index, layer in enumerate(layers):
        part = rows[(rows.layer == layer) & rows[column].notna()]
        colour = colours(index / max(len(layers) - 1, 1) * 0.92)
        axes.plot(part.step, part[column], "-", color=colour, label=str(layer))
        low = part.residual_floor.eq(True) if column == "residual" else part.step < 0
        axes.plot(part.step[~low], part[column][~low], "o", color=colour, markersize=2.5)
        axes.plot(part.step[low], part[column][low], "o", color=colour, markersize=3.5, markerfacecolor="white")
    axes.set(title="over steps, by layer", xlabel="step", ylabel=TITLES[column])
    legend_of_layers(axes)


def draw_layers(axes: Axes, rows: DataFrame, column: str) -> None:
    from rankfall.report.colours import COLOURS

    for step, colour in zip(pick_evenly(sorted(rows.step.unique()), 3), COLOURS):
        part = rows[(rows.step == step) & rows[column].notna()]
        axes.plot(part.layer, part[column], "o-", color=colour, label=f"step {step}")
    axes.set(title="over layers", xlabel="layer")
    axes.legend()


def draw_bands(over_steps: Axes, over_layers: Axes, rows: DataFrame, bands: Sequence[ReferenceBand]) -> None:
    """Draw the bands behind the curves: over steps the band of the last layer, over layers that of each."""
    depth = int(rows.layer.max())
    for band, colour in zip(bands, BAND_COLOURS):
        sides = [band.at(layer, depth) for layer in range(depth + 1)]
        looks: dict[str, Any] = {"color": colour, "alpha": 0.35, "linewidth": 0, "zorder": 0}
        low, high = zip(*sides)
        over_layers.fill_between(range(depth + 1), low, high, label=f"band {band.when}", **looks)
        over_steps.axhspan(*sides[-1], label=f"last layer {band.when}", **looks)
    if bands:
        over_layers.legend()
        legend_of_layers(over_steps)


def legend_of_layers(axes: Axes) -> None:
    many = len(axes.get_legend_handles_labels()[0]) > 8
    axes.legend(title="layer", ncols=2 if many else 1, loc="center left", bbox_to_anchor=(1, 0.5))


def pick_evenly(values: Sequence[Any], most: int) -> list[Any]:
    """Pick at most `most` values, evenly, with the first and the last."""
    if len(values) <= most:
        return list(values)
    return [values[round(index * (len(values) - 1) / (most - 1))] for index in range(most)]


def last_log(rows: DataFrame) -> str:
    last = rows[rows.step == rows.step.max()]
    head = "".join(f'<th scope="col">{name}</th>' for name in ("layer", "block", *CURVES))
    lines = []
    for row in last.to_dict("records"):
        numbers = "".join(f"<td>{row[name]:.4g}</td>" if row[name] == row[name] else "<td></td>" for name in CURVES)
        lines.append(f'<tr><th scope="row">{row["layer"]}</th><td>{html.escape(row["block"])}</td>{numbers}</tr>')
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    return f'<div class="scroll" tabindex="0" role="region" aria-label="Last log">{table}</div>'
