"""Published numbers and ours: one row per number, the published as a ring, ours as dots with their deviation over seeds."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rankfall.report.style import CHANCE, COLOURS, Picture, canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

TABLES = ["reproduction"]
CURVES = " layer "  # in the name of a point of a curve by layer: those are drawn against each other, not listed
SIGN = {
    "equal": "=",
    "magnitude": "~",
    "floor": "≤",
    "above": ">",
    "below": "<",
    "all above": "all >",
    "all below": "all <",
}
FRAME = (-0.6, 1.6)  # where accuracies, residuals and their differences lie; what is beyond is drawn at the edge
FEW = 4  # settings that a caption says one by one


def reproduction(read: "Callable[[str], DataFrame]") -> Picture:
    """Left: single numbers. Right: all points of published curves, ours against theirs."""
    table = read("reproduction")
    measured = table[table.holds.notna()]
    curve = measured.name.str.contains(CURVES, regex=False)
    curves, single = measured[curve], measured[~curve]
    names = list(dict.fromkeys(single.name))
    height = max(3.0, 0.28 * len(names) + 1.0)
    columns = 2 if len(curves) else 1
    figure, axes = canvas(1, columns, 7.4 + 3.6 * (columns - 1), height, width_ratios=[1.6, 1.0][:columns])
    listed(axes[0][0], single, names)
    if columns == 2:
        against(axes[0][1], curves)
        axes[0][1].set_box_aspect(1)  # as high as wide, however long the list is
        axes[0][1].set_anchor("N")
    caption = (
        "Published numbers (rings; = and ~ are to be met, ~ in magnitude, < and > to stay below or above, all of them by every "
        "seed, ≤ to be rounding noise too) and ours (dots, one a setting, with one standard deviation over seeds; filled where the "
        f"comparison holds; beyond the frame at its edge). {counted(table)} " + " ".join(findings(single, names))
    )
    return Picture(figure, caption)


def counted(table: "DataFrame") -> str:
    """The number of comparisons that hold: at the published settings, and at other sizes, trainings or texts."""
    measured = table[table.holds.notna()]
    held, alike = measured.holds.astype(bool), measured.at_published.astype(bool)
    broken = int((measured.failed > 0).sum())
    parts = [
        f"{int(held.sum())} of {len(measured)} comparisons hold: {int((held & alike).sum())} of {int(alike.sum())} at the "
        f"published settings and {int((held & ~alike).sum())} of {int((~alike).sum())} at others"
    ]
    if broken:
        parts.append(f"{broken} have failed seeds (no finite number, not done, or out of bounds) and so do not")
    parts.append(f"{table[table.holds.isna()].name.nunique()} published numbers are not measured in this run")
    return "; ".join(parts) + "."


def listed(panel: "Axes", table: "DataFrame", names: list[str]) -> None:
    low, high = FRAME
    for place, name in enumerate(names):
        part = table[table.name == name]
        ring = min(max(part.iloc[0].published, low), high)
        panel.plot([ring], [place], "o", color="black", fillstyle="none", markersize=9, zorder=2)
        for shift, one in enumerate(part[part.ours.notna()].itertuples()):
            y = place + 0.5 * ((shift + 0.5) / len(part) - 0.5)
            good = bool(one.holds)
            look: dict[str, Any] = {"color": COLOURS[2 if good else 4], "fillstyle": "full" if good else "none"}
            width = float(one.deviation) if one.deviation == one.deviation else 0.0
            marker = "<" if one.ours < low else ">" if one.ours > high else "o"
            x = min(max(one.ours, low), high)
            panel.errorbar(x, y, xerr=width, fmt=marker, markersize=4, linewidth=1.0, zorder=3, **look)
    labels = [f"{name}  {SIGN[table[table.name == name].iloc[0].sense]}" for name in names]
    panel.set_yticks(range(len(names)), labels, fontsize=8)
    panel.set_ylim(len(names) - 0.4, -0.6)
    panel.set_xlim(low - 0.05, high + 0.05)
    panel.set_xlabel("value, difference or ratio")


def against(panel: "Axes", table: "DataFrame") -> None:
    """Logarithmic axes, because a collapse spans decades; points on the diagonal agree."""
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
    """A sentence a number; of many settings, only the range."""
    said = []
    for name in names:
        part = table[table.name == name]
        first = part.iloc[0]
        if len(part) <= FEW:
            ours = ", ".join(
                f"{'none' if one.ours != one.ours else format(one.ours, '.3g')} ({one.setting}{seeds(one)})"
                for one in part.itertuples()
            )
        else:
            held = int(part.holds.astype(bool).sum())
            ours = f"{part.ours.min():.3g} to {part.ours.max():.3g} at {len(part)} settings, {held} of which hold"
        said.append(f"{name}: published {SIGN[first.sense]} {first.published:.3g}, ours {ours}.")
    return said


def seeds(one: Any) -> str:
    """What the mean over seeds does not show."""
    if one.failed:
        return f"; {one.failed} of {one.failed + one.seeds} seeds failed"
    return f"; {one.held} of {one.seeds} seeds" if one.sense.startswith("all ") else ""
