"""Lines with bands in panels, drawn by seaborn from a tidy table with one row per network or seed at each point of a line, so that a band
shows the variation within a point."""

from collections.abc import Iterable, Mapping, Sequence
from textwrap import wrap
from typing import Any

from rankfall.annotations import Axes, DataFrame, FacetGrid, Figure, Series
from rankfall.report.colours import COLOURS, colours
from rankfall.report.labels import FLOOR as FLOOR
from rankfall.report.looks import label, own_colour
from rankfall.report.selection import among
from rankfall.report.style import WIDTH

Bounds = tuple[float | None, float | None]
SHARE: Bounds = (0.0, 1.0)
POSITIVE: Bounds = (0.0, None)
SINGLE = 4.6  # inches, the width of a figure with one panel
MIDDLE_HALF = ("pi", 50)  # from the first quartile to the third
LETTER = 0.066  # inches, the approximate width of a letter of a title
USUAL: dict[str, Any] = {
    "errorbar": "sd",
    "err_kws": {"alpha": 0.18, "linewidth": 0},
    "marker": "o",
    "markeredgewidth": 0,
}


def lines(
    table: DataFrame,
    x: str,
    y: str,
    hue: str,
    palette: Mapping[Any, str],
    *,
    width: float | None = None,
    height: float = 2.0,
    shared: tuple[Any, Any] = (True, True),
    log: str = "",
    bounds: Bounds = (None, None),
    **look: Any,
) -> FacetGrid:
    """Draw means with one standard deviation on both sides (or another `errorbar`), with a line for each name of the palette, in its order.

    `width`: of the figure in inches, by default that of a page, or less for a single panel; `height`: of a panel in inches; `shared`:
    whether panels share the axes x and y; `log`: logarithmic axes, such as `y`, along which means and deviations are those of the
    logarithm; `bounds`: the range of the quantity, (0, 1) for a share, to which bands are clipped. `look` has further arguments of
    `seaborn.relplot`, such as panels."""
    import matplotlib.pyplot as plt
    import seaborn as sns

    if look.get("col") and look.get("col_order") is None:
        look["col_order"] = sorted(table[look["col"]].dropna().unique())
    panels = len(look["col_order"]) if look.get("col") else 1
    # Number of columns for rows that are as full as possible.
    across = -(-panels // -(-panels // (look.pop("col_wrap", None) or panels)))
    if across < panels:
        look["col_wrap"] = across
    facets = {
        "sharex": shared[0],
        "sharey": shared[1],
        "legend_out": False,
        "subplot_kws": {f"{axis}scale": "log" for axis in log},
    }
    width = width or (WIDTH if across > 1 else SINGLE)
    grid = sns.relplot(
        table[table[hue].isin(list(palette))], kind="line", x=x, y=y, height=height, aspect=width / across / height, facet_kws=facets,
        **style_lines(hue, palette) | USUAL | look,
    )  # fmt: skip
    plt.close(grid.figure)  # otherwise pyplot keeps it
    for panel in grid.axes.flat:
        cut(panel, bounds)
        whole_ticks(panel, table[x])
    # Inches for a title, without the labels of the axis.
    room = width / across - 0.1 - (0.5 / across if shared[1] else 0.5)
    for names, panel in grid.axes_dict.items():
        title = ", ".join(label(name) for name in (names if isinstance(names, tuple) else (names,)))
        panel.set_title(fit_title(title, room))
    return grid


def fit_title(title: str, room: float) -> str:
    """Wrap a title to lines of at most `room` inches. The first of several parts has a separate line, and long words are broken."""
    letters = max(4, int(room / LETTER))
    pieces = title.replace(", ", ",\n", 1).split("\n") if len(title) > letters else [title]
    return "\n".join(line for piece in pieces for line in wrap(piece, letters))


def on(
    panel: Axes,
    table: DataFrame,
    x: str,
    y: str,
    hue: str,
    palette: Mapping[Any, str],
    bounds: Bounds = (None, None),
    **look: Any,
) -> None:
    """Draw lines as `lines` does, in one panel of a figure whose panels differ in more than their rows. `below` draws the legend."""
    import seaborn as sns

    sns.lineplot(table[table[hue].isin(list(palette))], x=x, y=y, ax=panel, **style_lines(hue, palette) | USUAL | look)
    cut(panel, bounds)
    whole_ticks(panel, table[x])
    legend = panel.get_legend()
    if legend is not None:
        legend.remove()


def cut(panel: Axes, bounds: Bounds, colour: str = "") -> None:
    """Clip bands at the bounds of their quantity; a share is never below 0, although its mean minus deviation can be. `colour`: the colour
    of the bands to clip, if a panel has several quantities."""
    import numpy as np
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import to_rgb

    if bounds == (None, None):
        return
    for band in panel.collections:
        if colour and tuple(np.asarray(band.get_facecolor())[0, :3]) != to_rgb(colour):
            continue
        for path in band.get_paths() if isinstance(band, PolyCollection) else ():
            corners = np.asarray(path.vertices)  # a view, not a copy
            corners[:, 1] = np.clip(corners[:, 1], *bounds)


def plain_ticks(panel: Axes) -> None:
    """Label a logarithmic axis of values with plain numbers, 0.05 and 0.1, at 1, 2 and 5 if it spans less than two decades."""
    from matplotlib.ticker import LogLocator, NullFormatter

    low, high = panel.get_ylim()
    panel.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 100 * low else (1.0,)))
    panel.yaxis.set_major_formatter("{x:g}")
    panel.yaxis.set_minor_formatter(NullFormatter())


def label_ends(panel: Axes, ends: Mapping[str, tuple[float, float]], palette: Mapping[Any, str]) -> None:
    """Write the names of lines to the right of a panel, each beside the (x, y) at which its line ends, without overlap."""
    heights = {
        name: panel.transAxes.inverted().transform(panel.transData.transform(end))[1] for name, end in ends.items()
    }
    # Height of a name, as a share of the panel.
    step = 10.5 / (72 * panel.get_window_extent().height / panel.figure.dpi)
    order = sorted(heights, key=lambda name: heights[name])
    places, least, most = [heights[name] for name in order], -1.0, 1.0
    for at, place in enumerate(places):
        places[at] = least = max(place, least)
        least += step
    for at in reversed(range(len(places))):
        places[at] = most = min(places[at], most)
        most -= step
    for name, place in zip(order, places):
        panel.annotate(
            label(name), (1.02, place), xycoords="axes fraction", color=palette[name], fontsize=7.5, va="center"
        )


def whole_ticks(panel: Axes, values: Series) -> None:
    """Set whole-number ticks if all values are whole numbers, such as layers; with a single layer the ticks would read 0, 0, 1, 1."""
    from matplotlib.ticker import MaxNLocator

    present = values.dropna().astype(float)
    if panel.get_xscale() == "linear" and len(present) and (present == present.round()).all():
        panel.xaxis.set_major_locator(MaxNLocator("auto", integer=True, min_n_ticks=1))


def style_lines(hue: str, palette: Mapping[Any, str]) -> dict[str, Any]:
    """Return the arguments that distinguish lines. Each line is thinner than the one below it, so that coinciding lines are all visible."""
    names = list(palette)
    step = 1.5 / max(3, len(names) - 1)
    widths = {name: 1.1 + step * place for place, name in enumerate(reversed(names))}
    return {"hue": hue, "hue_order": names, "palette": dict(palette), "size": hue, "size_order": names, "sizes": widths}


def legend_below(grid: FacetGrid, columns: int = 4, title: str = "", skip: Sequence[str] = ()) -> None:
    """Draw one legend below all panels, with the lines and all other labels of the panels except those in `skip`."""
    handles: dict[str, Any] = {}
    if grid.legend is not None:
        handles = dict(zip([text.get_text() for text in grid.legend.texts], grid.legend.legend_handles))
        grid.legend.remove()
    handles |= collect_labels(grid.axes.flat, handles)
    handles = {name: handle for name, handle in handles.items() if name not in skip}
    grid.figure.set_layout_engine("constrained")  # seaborn changes it whenever a line is added
    rows = below(grid.figure, handles, columns, title)
    grid.figure.set_figheight(grid.figure.get_figheight() + 0.17 * rows)  # panels keep their height


def collect_labels(panels: Iterable[Axes], known: Iterable[str] = ()) -> dict[str, Any]:
    """Return label -> handle for all labels of the panels that are not known."""
    handles: dict[str, Any] = {}
    for panel in panels:
        for handle, name in zip(*panel.get_legend_handles_labels()):
            if name not in known:
                handles.setdefault(name, handle)
    return handles


def below(figure: Figure, handles: Mapping[str, Any], columns: int = 4, title: str = "") -> int:
    """Draw a legend below all panels, with at most `columns` columns and no wider than the figure, and return its number of rows."""
    from matplotlib.lines import Line2D

    # Seaborn's headings of hue and style would stand above entries of the other.
    strokes = {name: handle for name, handle in handles.items() if isinstance(handle, Line2D)}
    headings = {
        name for name, handle in strokes.items() if not handle.get_linewidth() and handle.get_marker() in ("", "None")
    }
    handles = {name: handle for name, handle in handles.items() if name not in headings}
    entry = 0.5 + 0.055 * max((len(label(name)) for name in handles), default=0)  # inches, about
    columns = max(1, min(columns, len(handles), int(figure.get_figwidth() / entry)))
    figure.legend(
        list(handles.values()),
        [label(name) for name in handles],
        loc="outside lower center",
        ncols=columns,
        title=title or None,
    )
    return -(-len(handles) // columns) + bool(title)


def summary(table: DataFrame, by: Sequence[str], *values: str, log: bool = False) -> DataFrame:
    """Return the numbers that are drawn: mean and standard deviation over the seeds of a point, and their count. `log`: the geometric mean,
    and the deviation of the decadic logarithm."""
    import numpy as np
    from pandas import concat

    groups, parts = [*by], []
    for value in values:
        part = table[[*groups, value]].assign(quantity=value, number=table[value].astype(float)).drop(columns=value)
        parts.append(part[(part.number > 0) if log else part.number.notna()])
    long = concat(parts)
    long = long.assign(number=np.log10(long.number)) if log else long
    points = long.groupby([*groups, "quantity"], sort=True, observed=True, dropna=False).number
    numbers = points.agg(["mean", "std", "count"]).reset_index()
    numbers["mean"] = 10 ** numbers["mean"] if log else numbers["mean"]
    return numbers.rename(columns={"std": f"deviation {'of log10 ' * log}over seeds", "count": "seeds"})


def raise_zeros(values: Series) -> Series:
    """Replace values of 0, which a logarithmic axis cannot show, by the smallest positive value. Without them the mean of a point would be
    that of the networks that have not collapsed yet, and a line would rise where networks drop out of it. Nulls stay null."""
    above = values[values > 0]
    return values.where(~(values <= 0), above.min()) if len(above) else values


def steps(names: Iterable[Any]) -> dict[Any, str]:
    """Return name -> colour for ordered lines other than architectures; a colour scale if there are too many to distinguish."""
    from seaborn import color_palette

    names = list(names)
    usual = COLOURS if len(names) <= len(COLOURS) else color_palette("viridis", len(names)).as_hex()
    return {name: own_colour(name) or colour for name, colour in zip(names, usual)}


def band_across(panel: Axes, values: Series, name: str, colour: str, style: str) -> None:
    """Draw a level across a panel: the mean of shares, with a band of their standard deviation clipped to [0, 1]."""
    import numpy as np

    mean, deviation = float(values.mean()), float(values.std()) if len(values) > 1 else 0.0
    panel.axhline(mean, color=colour, linestyle=style, linewidth=1.2, label=name, zorder=1.5)
    ends = np.clip([mean - deviation, mean + deviation], *SHARE)
    panel.axhspan(*ends, color=colour, alpha=0.12, linewidth=0)


def panels_of(table: DataFrame, figure: str, panels: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Return title -> architectures for the requested panels; by default one panel with all architectures."""
    chosen = dict(panels) or {"": sorted(map(str, among(table, figure, "architecture", []).architecture.unique()))}
    for names in chosen.values():
        among(table, figure, "architecture", names)
    return chosen


def draw_panels(panels: Mapping[str, list[str]], table: DataFrame, x: str, y: str, **look: Any) -> FacetGrid:
    """Draw lines with bands of the architectures in these panels."""
    from pandas import concat

    parts = [table[table.architecture.isin(names)].assign(panel=title) for title, names in panels.items()]
    architectures = dict.fromkeys(name for names in panels.values() for name in names)
    layout: dict[str, Any] = {"col": "panel", "col_order": list(panels)} if len(panels) > 1 else {"height": 2.6}
    return lines(concat(parts), x, y, "architecture", colours(architectures), **layout | look)
