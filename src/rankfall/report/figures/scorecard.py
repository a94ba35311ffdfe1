"""The scorecard as a picture: a row an architecture, a column a headline number, shaded from what loses most to what keeps most."""

from collections.abc import Callable
from textwrap import fill
from typing import TYPE_CHECKING

from rankfall.errors import RankfallError
from rankfall.report.headlines import HEADLINES, STUDIES, Headline
from rankfall.report.style import Picture, canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame, Series

TABLES = ["scorecard"]
WIDE, HIGH, LABELS, HEADER = 0.74, 0.235, 2.1, 1.75  # inches of a column, a row, the names and the headings


def scorecard(
    read: "Callable[[str], DataFrame]", *, architectures: list[str] = [], numbers: list[str] = [], most: int = 60
) -> Picture:
    """All architectures and all numbers if none are named; a number that no architecture has is left out. `most`: rows that are drawn."""
    table = read("scorecard")
    known = {headline.name: headline for headline in HEADLINES}
    for name in numbers:
        if name not in known:
            raise RankfallError(f"figure scorecard: there is no number {name!r}; allowed: {', '.join(known)}")
    chosen = [known[name] for name in numbers] or list(HEADLINES)
    shown = [headline for headline in chosen if table[headline.name].notna().any()]
    if architectures:
        table = table[table.architecture.isin(architectures)]
    if not shown or not len(table):
        raise RankfallError("figure scorecard: no architecture has any of the numbers, so there is nothing to draw")
    table = table.sort_values(["residual_last", "architecture", "variant"], na_position="last")
    left, table = len(table) - most, table.head(most)
    figure, ((panel,),) = canvas(
        1, 1, LABELS + WIDE * len(shown), HEADER + HIGH * len(table), gridspec_kw={"left": 0.2}
    )
    draw(panel, table, shown)
    return Picture(figure, caption(table, max(left, 0)))


def draw(panel: "Axes", table: "DataFrame", shown: list[Headline]) -> None:
    import numpy as np
    import seaborn

    shades = np.array([shade(table[headline.name], headline) for headline in shown]).T
    words: np.ndarray = np.array([[written(row, headline) for headline in shown] for _, row in table.iterrows()])
    seaborn.heatmap(
        shades,
        ax=panel,
        cmap=seaborn.light_palette("#0072B2", as_cmap=True),
        vmin=0,
        vmax=1.6,
        cbar=False,
        linewidths=0.6,
        linecolor="white",
        xticklabels=[fill(headline.title, 13) for headline in shown],
        yticklabels=[name_of(row) for _, row in table.iterrows()],
    )
    for y, line in enumerate(words):
        for x, word in enumerate(line):
            panel.text(x + 0.5, y + 0.5, word, ha="center", va="center", fontsize=7, color="#111111")
    panel.xaxis.tick_top()
    panel.tick_params(axis="x", labelsize=6.5, rotation=0, length=0, pad=2)
    panel.tick_params(axis="y", labelsize=7.5, rotation=0, length=0)
    panel.grid(visible=False)
    for study in STUDIES:
        of_study = [place for place, headline in enumerate(shown) if headline.study == study]
        if of_study and of_study[0]:
            panel.axvline(of_study[0], color="#444444", linewidth=1)


def name_of(row: "Series") -> str:
    return f"{row.architecture} ({row.variant})" if row.variant else str(row.architecture)


def shade(values: "Series", headline: Headline) -> "Series":
    """0 for what loses most in its column, 1 for what keeps most; by rank, so that one outlier does not hide the rest."""
    values = values.round(headline.digits)
    if headline.good is None:
        return values * 0.0
    return (values if headline.good == "high" else -values).rank(pct=True)


def written(row: "Series", headline: Headline) -> str:
    value, deviation = row[headline.name], row[f"{headline.name}_deviation"]
    if value != value:
        return "–" if isinstance(row[f"{headline.name}_at"], str) else ""
    number = f"{value:.{headline.digits}f}"
    number = number.removeprefix("-") if float(number) == 0 else number
    spread = f"{deviation:.{headline.digits}f}" if deviation == deviation else ""
    return f"{number}±{spread}" if spread.strip("0.") else number


def caption(table: "DataFrame", left: int) -> str:
    """Who loses most, in a sentence."""
    more = f" {left} more are in the table." if left else ""
    known = table[table.halving_depth.notna()]
    if not len(known):
        return f"Headline numbers of {len(table)} architectures, darker where more is kept; blank where there is none.{more}"
    first = known.loc[known.halving_depth.idxmin()]
    keep = table.residual_last[table.residual_last.notna()] >= 0.5
    return (
        f"Headline numbers of {len(table)} architectures with their deviation over seeds, darker where more is kept (grey where "
        "neither end is better), a dash where there "
        f"is no such number, blank where nothing was measured. {name_of(first)} loses rank fastest, half of its residual after "
        f"{first.halving_depth:.2f} layers; {keep.sum()} of {len(keep)} end with a residual of at least 0.5.{more}"
    )
