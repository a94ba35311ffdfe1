"""Ours beside the published numbers: one row a number, the published as a ring, ours as dots with their deviation over seeds."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from rankfall.report.style import CHANCE, COLOURS, Picture, canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

TABLES = ["reproduction"]
CURVES = " layer "  # in the name of a point of a curve by layer: those are drawn against each other, not listed
SIGN = {"equal": "=", "above": ">", "below": "<"}


def reproduction(read: "Callable[[str], DataFrame]") -> Picture:
    """Left: single numbers. Right: all points of published curves, ours against theirs."""
    table = read("reproduction")
    measured = table[table.ours.notna()]
    curves = measured[measured.name.str.contains(CURVES, regex=False)]
    single = measured[~measured.name.str.contains(CURVES, regex=False)]
    names = list(dict.fromkeys(single.name))
    height = max(3.0, 0.34 * len(names) + 1.0)
    columns = 2 if len(curves) else 1
    figure, axes = canvas(1, columns, 7.4 + 3.6 * (columns - 1), height, width_ratios=[1.6, 1.0][:columns])
    listed(axes[0][0], single, names)
    if columns == 2:
        against(axes[0][1], curves)
    missing = table[table.ours.isna()].name.nunique()
    held = measured.holds.astype(bool)
    caption = (
        "Published numbers (rings; > and < mark claims that ours should lie above or below) and ours (dots, one a setting, with "
        "one standard deviation over seeds; filled where the published number is reproduced). "
        f"{int(held.sum())} of {len(measured)} comparisons hold; {missing} published numbers are not measured in this run. "
        + " ".join(findings(single, names))
    )
    return Picture(figure, caption)


def listed(panel: "Axes", table: "DataFrame", names: list[str]) -> None:
    for place, name in enumerate(names):
        part = table[table.name == name]
        first = part.iloc[0]
        panel.plot([first.published], [place], "o", color="black", fillstyle="none", markersize=9, zorder=2)
        for shift, (_, one) in enumerate(part.iterrows()):
            y = place + 0.5 * ((shift + 0.5) / len(part) - 0.5)
            colour = COLOURS[2] if bool(one.holds) else COLOURS[4]
            style = "full" if bool(one.holds) else "none"
            width = 0.0 if one.isna().deviation else float(one.deviation)
            panel.errorbar(
                one.ours, y, xerr=width, fmt="o", color=colour, fillstyle=style, markersize=4, linewidth=1.0, zorder=3
            )
    labels = [f"{name}  {SIGN[table[table.name == name].iloc[0].sense]}" for name in names]
    panel.set_yticks(range(len(names)), labels, fontsize=8)
    panel.set_ylim(len(names) - 0.4, -0.6)
    panel.set_xlabel("value")


def against(panel: "Axes", table: "DataFrame") -> None:
    """Logarithmic, since a collapse is; a straight line where both agree."""
    least = 1e-8
    for colour, (good, part) in zip((COLOURS[4], COLOURS[2]), table.groupby(table.holds.astype(bool))):
        label = "reproduced" if good else "not reproduced"
        panel.plot(
            part.published.clip(lower=least), part.ours.clip(lower=least), "o", color=colour, markersize=3, label=label
        )
    panel.plot([least, 1.0], [least, 1.0], color=CHANCE, linestyle="--", linewidth=0.8)
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xlabel("published relative residual")
    panel.set_ylabel("ours")
    panel.legend(fontsize=8)


def findings(table: "DataFrame", names: list[str]) -> list[str]:
    """A sentence a number."""
    said = []
    for name in names:
        part = table[table.name == name]
        ours = ", ".join(f"{one.ours:.3g} ({one.setting})" for one in part.itertuples())
        said.append(f"{name}: published {SIGN[part.iloc[0].sense]} {part.iloc[0].published:.3g}, ours {ours}.")
    return said
