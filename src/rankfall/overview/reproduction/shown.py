"""Declare the table `reproduction` and what is shown of it: results beside the published numbers.

The figure: published numbers: comparisons that hold by paper and experiment, worst first, and misses at published settings.
"""

import textwrap
from typing import Any

import numpy as np

from rankfall.annotations import Axes, DataFrame, Read
from rankfall.report.colours import CHANCE, GREEN, RED
from rankfall.report.labels import many
from rankfall.report.lines import below, collect_labels
from rankfall.report.page.question import Read as ReadIfThere
from rankfall.report.page.question import TableQuestion
from rankfall.report.part_numbers import is_missing
from rankfall.report.schema import Table, declare_table
from rankfall.report.style import WIDTH, Picture, canvas


def columns() -> Table:
    """Declare the table of published numbers and ours."""
    return declare_table(
        "reproduction",
        "each published number and each setting of ours",
        """
        name text: short name of the number
        setting text: which of our settings measures it: column=value, ...; empty if none does
        at_published bool?: whether that is what the published number was measured at; null: nothing measures it
        source text: word for the paper or code, which do not always agree, so a quantity may be here twice
        source_name text: its authors and year
        source_title text: its title
        source_link text: where it is
        place text: figure or section
        what text: what the number is
        kind text: measured; typed (a constant in a script); claimed (a statement); exact (a formula)
        sense text: how ours should lie: equal, magnitude, floor, above, below, all above or all below; said below
        published float: the published number
        tolerance float: by how much ours may differ; decades if the sense is magnitude, the most if it is floor
        ours float? nan: mean over seeds of our number; null: nothing in this run measures it, or every seed failed
        deviation float? nan: our standard deviation over seeds; null: fewer than two
        seeds int: seeds that ours is the mean of; 1 where nothing has a seed
        held int: of these, those whose own number lies as it should
        failed int: seeds without a finite number, not done, or out of bounds: no comparison holds with one
        difference float? nan: ours minus the published; null without ours
        holds bool?: whether ours lies as it should; null: nothing measures it
        """,
        key="name setting",
        cells=False,
    )


def say_published(read: ReadIfThere) -> tuple[str, str]:
    """Write how many comparisons with published numbers hold."""
    table = read("reproduction")
    if table is None or not table.holds.notna().any():
        return "", ""
    judged = table[table.holds.notna()]
    holds, others = int(judged.holds.astype(bool).sum()), int(table.holds.isna().sum())
    return (
        f"{holds} of {many(len(judged), 'comparison')} do, at the sizes and settings of this run; "
        f"published numbers without a counterpart here: {others}.",
        "",
    )


SENTENCES = (TableQuestion("Do published numbers hold?", say_published, place=140, study="published"),)


CURVES = " layer "  # in the name of a point of a curve by layer, which makes an experiment by itself
OUTCOMES = {  # whether ours lies as it should, and was measured at the published setting -> label and colour
    (True, True): ("holds", GREEN),
    (True, False): ("holds, at another setting", "#9AD1BD"),
    (False, False): ("misses, at another setting", "#F2C3A0"),
    (False, True): ("misses", RED),
}
FRAME = (-0.6, 1.6)  # the range of accuracies, residuals and their differences; values beyond are drawn at the edge
MOST = 14  # misses that are drawn individually


def figure(read: Read, *, most: int = MOST) -> Picture:
    """Draw counts by paper (above), and the worst misses at the published settings (below, at most `most`). The CSV has all."""
    table = read("reproduction")
    numbers = table.astype(dict.fromkeys(("ours", "difference"), float))  # NaN if there is no number
    numbered = numbers.assign(
        experiment=[experiment(row) for row in table.itertuples()], reason=[why(row) for row in numbers.itertuples()]
    )
    measured = numbered[numbered.holds.notna()].astype({"holds": bool, "at_published": bool})
    measured = measured.assign(outcome=[OUTCOMES[kind][0] for kind in zip(measured.holds, measured.at_published)])
    missed = measured[measured.outcome == "misses"]
    misses = worst(missed)
    shown = misses.head(most)
    counts = measured.groupby(["source_name", "outcome"]).size().unstack(fill_value=0)
    heights = [0.24 * max(2, len(counts)) + 0.5, 0.4 * max(2, len(shown)) + 0.5 if len(shown) else 0.2]
    figure, axes = canvas(2, 1, WIDTH, sum(heights) + 0.9, height_ratios=heights)
    bars(axes[0][0], counts)
    draw_list(axes[1][0], shown)
    below(figure, collect_labels([axes[0][0], axes[1][0]]), 3)
    return Picture(
        figure,
        describe_comparisons(measured, numbered, misses),
        numbered.sort_values(["experiment", "name", "setting"]),
    )


def experiment(row: Any) -> str:
    """Return the paper and the place in it where a number appears."""
    place = "curves by layer" if CURVES in row.name else row.place.partition(";")[0]
    return ", ".join(filter(None, (row.source, place)))


def why(row: Any) -> str:
    """Return why a comparison does not hold, or an empty text if it does."""
    if is_missing(row.holds):
        return "not measured in this run"
    if row.holds:
        return ""
    if row.failed:
        return f"{row.failed} of {row.failed + row.seeds} seeds failed"
    if row.sense.startswith("all "):
        return f"only {row.held} of {row.seeds} seeds are {row.sense.removeprefix('all ')}"
    if row.sense == "magnitude":
        return f"a factor {row.ours / row.published:.2g}, {10**row.tolerance:.2g} is allowed"
    if row.sense == "floor":
        return f"above the floor of {row.tolerance:.0e}"
    allowed = f", {row.tolerance:.2g} is allowed" if row.tolerance else ""
    return f"{abs(row.difference):.2g} too {'high' if row.difference > 0 else 'low'}{allowed}"


def worst(misses: DataFrame) -> DataFrame:
    """Sort misses, largest first: by failed seeds, then by the deviation relative to the published number."""
    off = (misses.ours.astype(float) - misses.published).abs() / misses.published.abs().clip(lower=0.05)
    places = misses.assign(off=np.where(misses.ours.isna(), np.inf, off)).sort_values(
        ["failed", "off", "name"], ascending=[False, False, True]
    )
    return places.drop_duplicates("name")  # keep the worst setting of each number


def bars(panel: Axes, counts: DataFrame) -> None:
    """Draw stacked counts, the experiment with the largest share of misses at the top."""
    missing = sum((counts[name] for name in ("misses", "misses, at another setting") if name in counts), start=0)
    order = (missing / counts.sum(axis=1)).sort_values(kind="stable").index if len(counts) else []
    start = 0.0
    for name, colour in OUTCOMES.values():
        if name in counts:
            panel.barh(range(len(order)), counts.loc[order, name], left=start, color=colour, label=name, height=0.72)
            start = start + counts.loc[order, name].to_numpy()
    panel.set_yticks(range(len(order)), list(order))
    panel.set_xlabel("comparisons")
    if not len(order):
        panel.set_axis_off()
        panel.text(0, 0.5, "nothing of this run is compared with a published number", transform=panel.transAxes)
    panel.grid(visible=False, axis="y")


def draw_list(panel: Axes, shown: DataFrame) -> None:
    """Draw a row per number: the published number as a ring, ours as a dot, and why it misses."""
    low, high = FRAME
    names = [f"{textwrap.fill(text, 48)}\n({source})" for text, source in zip(shown.what, shown.source_name)]
    for place, row in enumerate(shown.itertuples()):
        measured = row.ours == row.ours
        published, ours = np.clip([row.published, row.ours if measured else row.published], low, high)
        y = len(names) - 1 - place
        panel.plot([published, ours], [y, y], color="#bbbbbb", linewidth=1, zorder=1)
        panel.plot(
            [published], [y], "o", color=CHANCE, fillstyle="none", markersize=6, label="" if place else "published"
        )
        marker = "<" if row.ours < low else ">" if row.ours > high else "o"
        if measured:
            panel.plot([ours], [y], marker, color=RED, markersize=4.5, label="" if place else "ours")
        panel.text(high + 0.08, y, row.reason, fontsize=6.5, va="center")
    panel.set_yticks(range(len(names)), names[::-1], fontsize=7)
    panel.set(ylim=(-0.6, len(names) - 0.4), xlim=(low - 0.05, high + 1.5), xlabel="value, difference or ratio")
    panel.set_xticks([-0.5, 0, 0.5, 1, 1.5])
    panel.set_title(f"{len(names)} worst misses at the published settings")
    if not names:
        panel.set_axis_off()
    panel.grid(visible=False, axis="y")


def describe_comparisons(measured: DataFrame, numbered: DataFrame, misses: DataFrame) -> str:
    """Say how many comparisons hold, at the published settings and at other sizes, trainings or texts, and which misses most."""
    alike = measured[measured.at_published]
    unmeasured = many(numbered[numbered.holds.isna()].name.nunique(), "published number")
    text = (
        f"{measured.holds.sum()} of {many(len(measured), 'comparison')} with published numbers hold, {alike.holds.sum()} of "
        f"{len(alike)} at the published settings. Above: by paper, the largest share of misses first ({unmeasured} not measured in "
        f"this run). Below: the misses there, of {many(len(misses), 'number')}, the worst first"
    )
    if misses.empty:
        return f"{text}."
    first = misses.iloc[0]
    numbers = f"published {first.published:.3g}, ours {first.ours:.3g}, {first.reason}"
    return f"{text}: {first.what} ({first.source_name}), {numbers}."
