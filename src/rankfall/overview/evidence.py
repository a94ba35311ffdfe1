"""The measurements of the claims' experiments, and their figure: a panel per claim, with the numbers of its paper if there are any."""

import textwrap
from functools import partial

from rankfall.annotations import Axes, DataFrame, Read
from rankfall.errors import RankfallError
from rankfall.report.captions import describe_missing
from rankfall.report.claim import Claim, main_quantity
from rankfall.report.claim import claims as declared_claims
from rankfall.report.decision import SIDES, name_axes
from rankfall.report.lines import on, steps
from rankfall.report.page.chart import Chart, Level
from rankfall.report.schema import Table, declare_table
from rankfall.report.style import WIDTH, Picture, canvas


def columns() -> Table:
    """Declare the table of measurements of the claims' experiments."""
    return declare_table(
        "evidence",
        "each claim, quantity, line, x and seed",
        """
        claim text: the claim whose experiment it is of
        quantity text: what is measured, and over what: `spread, by layer`
        line text: which of the compared networks or settings
        x float: where on the axis that the quantity names
        seed int: names the random numbers of the experiment
        value float?: the number; null: see value_reason
        value_reason text?: why there is no number; null where there is one
        """,
        key="claim quantity line x seed",
        cells=False,
    )


MOST = 2  # thresholds of a rule on one side of a quantity, such as one for each of two kinds of models
# (name of the level and of its column, side, index of the threshold)
LEVELS = [(f"rule: {side}" + f" ({at + 1})" * (at > 0), side, at) for side in SIDES for at in range(MOST)]


def thresholds_of(rows: DataFrame, side: str, index: int) -> list[float]:
    """Return for each row of the evidence threshold number `index` of its claim's rule on its quantity and this side, or NaN."""
    by_quantity: dict[tuple[str, str], list[float]] = {}
    for claim in declared_claims():
        for number in claim.thresholds:
            if number.side == side:
                by_quantity.setdefault((claim.name, number.quantity), []).append(float(number))
    by_row = (by_quantity.get(key, []) for key in zip(rows.claim, rows.quantity, strict=True))
    return [numbers[index] if index < len(numbers) else float("nan") for numbers in by_row]


CHARTS = (
    Chart(
        "evidence",
        "What decides a claim",
        "The numbers that the experiment of a claim has measured. Choose the claim and the quantity, whose name says what is on both axes.",
        "x",
        "value",
        "what the quantity is by",
        "value",
        line="line",
        choose=("claim", "quantity"),
        named_by="quantity",
        scale="wide",
        beside=tuple(Level(name, name) for name, _, _ in LEVELS),
        derive={name: partial(thresholds_of, side=side, index=at) for name, side, at in LEVELS},
        study="claims",
        place=10,
    ),
)


TABLES = ["evidence", "claims"]
FINDS = ["claim"]
WIDE = 16  # a positive axis that spans this factor is logarithmic
PANELS = 12  # panels, if no claims are named
THEORY = ("limit", "recursion", "theory")  # first words of the names of lines that say what another line should be
LINES = 12  # of a legend
AMONG = 3  # the most lines whose names are placed among them
RULE = "rule: "
INK = "#444444"  # the colour of what is neither measured nor part of a line
FAR = 1e3  # values that span this factor beyond one are drawn by their logarithms


def figure(read: Read, *, claims: list[str] = []) -> Picture:
    """Draw `claims` in this order, by default the first twelve. If a claim has several quantities, its declared main quantity is drawn."""
    from pandas import concat

    table, verdicts = read("evidence"), read("claims")
    by_name = {claim.name: claim for claim in declared_claims()}
    present = set(table.claim) & set(verdicts.claim)
    shown = claims or [name for name in by_name if name in present][:PANELS]
    missing = [name for name in shown if name not in present]
    if missing or not shown:
        raise RankfallError(
            f"evidence: this run has no numbers of the claim {', '.join(missing) or 'it was asked for'}"
        )
    rows = -(-len(shown) // 2)
    figure, axes = canvas(rows, min(2, len(shown)), WIDTH if len(shown) > 1 else WIDTH * 0.7, 2.9 * rows)
    panels = [panel for line in axes for panel in line]
    verdict_of = dict(zip(verdicts.claim, verdicts.verdict))
    parts: list[DataFrame] = []
    left_out: list[str] = []
    for panel, name in zip(panels, shown):
        part = table[table.claim == name]
        part = part[part.quantity == main_quantity(part, by_name[name])]
        lines = lines_of(part)
        draw(panel, part, by_name[name], verdict_of[name], lines[:LINES])
        parts.append(part)
        left_out += [f"{name.replace('_', ' ')} {LINES} of {len(lines)}"] * (len(lines) > LINES)
    for panel in panels[len(shown) :]:
        panel.set_visible(False)
    main = concat(parts, ignore_index=True)
    return Picture(
        figure,
        "What decides claims: means over seeds, bands one standard deviation; dashed: what theory says; dotted: what rules compare with; "
        "crosses: published numbers. "
        + " ".join(f"{name.replace('_', ' ').capitalize()}: {by_name[name].says}" for name in shown)
        + f" Of the lines, {', '.join(left_out)} are drawn." * bool(left_out)
        + describe_missing(main.assign(claim=main.claim.str.replace("_", " ")), ["claim"], "value"),
        main[main.value.notna()],
    )


def lines_of(rows: DataFrame) -> list[str]:
    """Return the lines with their own colour. Theory of a line, `limit, NAME` or `recursion, NAME`, is drawn dashed in that line's
    colour."""
    names = set(rows[rows.value.notna()].line)
    return sorted(name for name in names if explained_line(name) not in names)


def explained_line(line: str) -> str | None:
    """Return the line whose theory this line is, or None."""
    kind, _, name = line.partition(", ")
    return name if kind in THEORY and name else None


def draw(panel: Axes, rows: DataFrame, claim: Claim, verdict: str, lines: list[str]) -> None:
    """Draw the numbers of a claim's main quantity."""
    from matplotlib.ticker import NullFormatter

    quantity = main_quantity(rows, claim)
    rows = rows[rows.value.notna()]
    axis, by = name_axes(quantity)
    palette = steps(lines)
    if palette:  # nothing was measured
        on(panel, rows, "x", "value", "line", palette)
    for name, part in rows.groupby("line"):
        colour = palette.get(explained_line(str(name)) or "")
        if colour:
            ends = part.groupby("x").value.mean()
            panel.plot(ends.index, ends.values, linestyle="--", linewidth=1.0, color=colour, label="_theory")
    for published in (number for number in claim.published if number.quantity == quantity and number.line in palette):
        panel.scatter(
            published.x, published.value, marker="x", s=22, color=palette[published.line], zorder=3, label="_published"
        )
    scale_values(panel, rows)
    heading = f"{claim.name.replace('_', ' ')}: {verdict}"
    panel.set(xlabel=by, ylabel=textwrap.fill(axis, 36), title=textwrap.fill(heading, 44))
    low, high = rows.x.min(), rows.x.max()
    if low > 0 and high >= WIDE * low:
        panel.set_xscale("log")
        panel.xaxis.set_minor_formatter(NullFormatter())
    draw_thresholds(panel, claim, quantity)
    handles = {str(line.get_label()): line for line in panel.get_lines()}
    handles = {name: line for name, line in handles.items() if name in palette or name.startswith(RULE)}
    # Many lines leave no room for their names among them.
    place = (
        {"loc": "upper center", "bbox_to_anchor": (0.45, -0.22), "ncols": 2, "columnspacing": 0.8, "handlelength": 1.2}
        if len(handles) > AMONG
        else {"loc": "best"}
    )
    panel.legend(list(handles.values()), list(handles), fontsize=6, **place)


def draw_thresholds(panel: Axes, claim: Claim, quantity: str) -> None:
    """Draw a line for each threshold of the rule on this quantity that the axis can show."""
    for number in claim.thresholds:
        if number.quantity == quantity and (number > 0 or panel.get_yscale() != "log"):
            name = f"{RULE}{number.side} {float(number):.3g}"
            panel.axhline(float(number), color=INK, linestyle=":", linewidth=1.0, label=name)


def scale_values(panel: Axes, rows: DataFrame) -> None:
    """Set a logarithmic axis if a few values are far larger than the others, with few enough ticks to be readable."""
    from matplotlib.ticker import SymmetricalLogLocator

    low, high = rows.value.min(), rows.value.max()
    if low > 0 and high > 10 * FAR * low:
        panel.set_yscale("log")
        return
    if rows.value.abs().max() <= FAR * max(1.0, rows.value.abs().median()) and rows.value.abs().max() <= 10 * FAR:
        return
    panel.set_yscale("symlog", linthresh=1.0)
    locator = SymmetricalLogLocator(base=10, linthresh=1.0)
    locator.set_params(numticks=7)
    panel.yaxis.set_major_locator(locator)
